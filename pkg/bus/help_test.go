package bus_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// created is the wish that brings a host to the bus, in the state registering.
func created(uid string) lifecycle.Wish {
	return lifecycle.Wish{Fact: event.Created, Intent: event.Intent{
		Namespace: "metal", Name: "host-" + uid, UID: uid, Hash: "1",
		Spec: v1alpha1.BareMetalHostSpec{
			Online:         true,
			BootMACAddress: "02:00:00:00:00:01",
			BMC:            v1alpha1.BMCDetails{Address: "redfish://192.0.2.1/redfish/v1/Systems/1", CredentialsName: "bmc"},
		},
	}}
}

// changed is a wish like the host's own with another hash.
func changed(h lifecycle.Host, hash string) lifecycle.Wish {
	intent := h.Intent
	intent.Hash = hash
	return lifecycle.Wish{Fact: event.Changed, Intent: intent}
}

func observed(on bool) lifecycle.Observed {
	return lifecycle.Observed{What: event.PowerChanged, On: &on}
}

func write(name string) lifecycle.Write { return lifecycle.Write{Kind: event.Enroll, Name: name} }

func enrolled() lifecycle.Record {
	return lifecycle.Record{Fact: lifecycle.Enrolled{Backend: "lab", Node: "node-1", Address: "redfish://192.0.2.1/redfish/v1/Systems/1"}}
}

// mustAppend appends facts to a host as it is now, whatever else goes on.
func mustAppend(tb testing.TB, b *bus.Bus, uid string, facts ...func(lifecycle.Host) lifecycle.Fact) lifecycle.Host {
	tb.Helper()
	h, err := b.Load(tb.Context(), uid)
	for _, f := range facts {
		for try := 0; err == nil; try++ {
			var next lifecycle.Host
			if next, err = b.Append(tb.Context(), h, f(h)); err == nil {
				h = next
				break
			}
			if try < 500 {
				h, err = b.Load(tb.Context(), uid)
			}
		}
	}
	if err != nil {
		tb.Fatalf("append to host %s: %v", uid, err)
	}
	return h
}

func the(f lifecycle.Fact) func(lifecycle.Host) lifecycle.Fact {
	return func(lifecycle.Host) lifecycle.Fact { return f }
}

func mustLoad(tb testing.TB, b *bus.Bus, uid string) lifecycle.Host {
	tb.Helper()
	h, err := b.Load(tb.Context(), uid)
	if err != nil {
		tb.Fatalf("load host %s: %v", uid, err)
	}
	return h
}

// facts are the names of all facts of a host in order.
func facts(tb testing.TB, b *bus.Bus, uid string) []string {
	tb.Helper()
	hosts, err := b.Snapshots(tb.Context(), uid, 0)
	if err != nil {
		tb.Fatalf("snapshots of host %s: %v", uid, err)
	}
	var names []string
	for _, h := range hosts {
		section, m := h.NewestFact()
		names = append(names, string(section)+"."+m.Fact)
	}
	return names
}

// worker is a stage service by script.
type worker struct {
	section event.Section
	cares   func(bus.Trigger) bool
	step    func(lifecycle.Host) (lifecycle.Step, error)
	do      func(context.Context, lifecycle.Host, lifecycle.Write) error
	tick    func(name string) error

	mu     sync.Mutex
	steps  []call
	writes []call
}

type call struct {
	at   time.Time
	host string
	rev  uint64
	name string
}

func registrar(step func(lifecycle.Host) (lifecycle.Step, error)) *worker {
	return &worker{section: event.SectionRegistration, step: step}
}

func (w *worker) Section() event.Section { return w.section }

func (w *worker) Cares(t bus.Trigger) bool { return w.cares == nil || w.cares(t) }

func (w *worker) Step(_ context.Context, h lifecycle.Host) (lifecycle.Step, error) {
	w.mu.Lock()
	w.steps = append(w.steps, call{at: time.Now(), host: h.UID, rev: h.Rev})
	w.mu.Unlock()
	return w.step(h)
}

func (w *worker) Do(ctx context.Context, h lifecycle.Host, x lifecycle.Write) error {
	w.mu.Lock()
	w.writes = append(w.writes, call{at: time.Now(), host: h.UID, rev: h.Rev, name: x.Name})
	w.mu.Unlock()
	if w.do == nil {
		return nil
	}
	return w.do(ctx, h, x)
}

func (w *worker) Tick(_ context.Context, name string) error {
	if w.tick == nil {
		return nil
	}
	return w.tick(name)
}

func (w *worker) stepped() []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]call(nil), w.steps...)
}

func (w *worker) wrote() []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]call(nil), w.writes...)
}

// serve runs the worker until the test ends, or stop is called.
func serve(tb testing.TB, b *bus.Bus, w bus.Worker) (stop func()) {
	tb.Helper()
	return background(tb, func(ctx context.Context) error { return b.Serve(ctx, w) })
}

func background(tb testing.TB, run func(context.Context) error) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				tb.Errorf("serve: %v", err)
			}
		case <-time.After(20 * time.Second):
			tb.Error("serve did not end")
		}
	})
	tb.Cleanup(stop)
	return stop
}

// await waits for a condition.
func await(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			tb.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// awaitFact waits until the host's newest fact of a section is this one.
func awaitFact(tb testing.TB, b *bus.Bus, uid string, s event.Section, fact string) lifecycle.Host {
	tb.Helper()
	var h lifecycle.Host
	await(tb, fmt.Sprintf("%s.%s of host %s", s, fact, uid), func() bool {
		h = mustLoad(tb, b, uid)
		return h.Newest(s).Fact == fact
	})
	return h
}

// raw is a connection of its own to look behind the bus, or to do it harm.
func raw(tb testing.TB, s nats.InProcessConnProvider) (*nats.Conn, jetstream.JetStream) {
	tb.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		tb.Fatal(err)
	}
	return nc, js
}

// pending is how many messages the service has in hand or delayed.
func pending(tb testing.TB, js jetstream.JetStream, service string) int {
	tb.Helper()
	c, err := js.Consumer(tb.Context(), bus.StreamHost, service+"-"+bustest.Cluster)
	if err != nil {
		tb.Fatal(err)
	}
	return c.CachedInfo().NumAckPending
}

// clean audits the log.
func clean(tb testing.TB, b *bus.Bus) {
	tb.Helper()
	report, err := b.Audit(tb.Context())
	if err != nil {
		tb.Fatalf("audit: %v", err)
	}
	for _, f := range report.Findings {
		tb.Errorf("audit: %s", f)
	}
}

// gap is the time between two calls.
func gap(calls []call, i, j int) time.Duration { return calls[j].at.Sub(calls[i].at) }

func names(calls []call) string {
	var all []string
	for _, c := range calls {
		all = append(all, c.name)
	}
	return strings.Join(all, " ")
}
