package bus_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// loseTokens makes the service's consumer forget all that it had in hand.
func loseTokens(tb testing.TB, js jetstream.JetStream, service string) {
	tb.Helper()
	name := service + "-" + bustest.Cluster
	c, err := js.Consumer(tb.Context(), bus.StreamHost, name)
	if err != nil {
		tb.Fatal(err)
	}
	cfg := c.CachedInfo().Config
	if err := js.DeleteConsumer(tb.Context(), bus.StreamHost, name); err != nil {
		tb.Fatal(err)
	}
	cfg.DeliverPolicy = jetstream.DeliverNewPolicy
	if _, err := js.CreateConsumer(tb.Context(), bus.StreamHost, cfg); err != nil {
		tb.Fatal(err)
	}
}

func TestAWakeBringsALostOperationBack(t *testing.T) {
	for name, answered := range map[string]bool{"between two writes": true, "with a claim that nobody answered": false} {
		t.Run(name, func(t *testing.T) {
			s := bustest.Server(t)
			b := bustest.On(t, s, "registrar")
			_, js := raw(t, s)
			mustAppend(t, b, "u1", the(created("u1")), the(lifecycle.Started{Kind: event.Enroll, Step: "create"}))
			if answered {
				mustAppend(t, b, "u1", the(lifecycle.Accepted{Kind: event.Enroll}))
			}
			loseTokens(t, js, "registrar")
			poll := lifecycle.Wait{For: "a test", Every: 20 * time.Millisecond}
			w := registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
				if h.Newest(event.SectionRegistration).Fact != "enroll.resumed" {
					return poll, nil
				}
				return enrolled(), nil
			})
			serve(t, b, w)
			began := time.Now()
			if err := b.Wake(t.Context(), "registrar", "u1", "test"); err != nil {
				t.Fatal(err)
			}
			awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
			if took := time.Since(began); took < bustest.Timing().Resume/2 {
				t.Errorf("resumed after %s: its own token might have been alive", took)
			}
			clean(t, b)
		})
	}
}

func TestAWakeDoesNotDisturb(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "registrar")
	_, js := raw(t, s)
	done := atomic.Bool{}
	w := registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
		switch {
		case h.Registration.Registered:
			return lifecycle.Nothing{}, nil
		case h.Registration.Op == nil:
			return write("create"), nil
		case done.Load():
			return enrolled(), nil
		default:
			return lifecycle.Wait{For: "a test", Every: 20 * time.Millisecond}, nil
		}
	})
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.accepted")
	for _, uid := range []string{"u1", "u1", "nobody"} {
		if err := b.Wake(t.Context(), "registrar", uid, "test"); err != nil {
			t.Fatal(err)
		}
	}
	done.Store(true)
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	await(t, "all wakes to be done with", func() bool {
		c, err := js.Consumer(t.Context(), bus.StreamWake, "registrar-"+bustest.Cluster)
		return err == nil && c.CachedInfo().NumAckPending == 0 && c.CachedInfo().NumPending == 0
	})
	if len(w.wrote()) != 1 {
		t.Errorf("writes %v, want one", w.wrote())
	}
	clean(t, b)
}

func TestAWakeEndsABackOff(t *testing.T) {
	timing := bustest.Timing()
	timing.BackOff, timing.BackOffMax = time.Minute, time.Minute
	s := bustest.Server(t)
	bustest.On(t, s, "init")
	b := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "registrar", Timing: timing}, bus.WithServer(s))
	w := registrar(enrollIn("create"))
	w.do = func(context.Context, lifecycle.Host, lifecycle.Write) error {
		if len(w.wrote()) == 1 {
			return &lifecycle.ProblemError{Problem: event.Problem{Message: "not today"}}
		}
		return nil
	}
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.failed")
	if err := b.Wake(t.Context(), "registrar", "u1", "test"); err != nil {
		t.Fatal(err)
	}
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
}

func TestATickReachesOneReplica(t *testing.T) {
	s := bustest.Server(t)
	var mu sync.Mutex
	var times []time.Time
	tick := func(name string) error {
		mu.Lock()
		defer mu.Unlock()
		if name == bus.TickPower {
			times = append(times, time.Now())
		}
		return errors.New("a tick that goes wrong is not repeated")
	}
	for range 3 {
		w := &worker{section: event.SectionPower, tick: tick}
		serve(t, bustest.On(t, s, "powermonitor"), w)
	}
	await(t, "three ticks", func() bool { mu.Lock(); defer mu.Unlock(); return len(times) >= 3 })
	mu.Lock()
	defer mu.Unlock()
	for i := range times[1:] {
		if d := times[i+1].Sub(times[i]); d < bustest.Timing().Power/2 {
			t.Errorf("two ticks within %s", d)
		}
	}
}

func TestResyncFindsWhatWasForgotten(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "registrar")
	_, js := raw(t, s)
	mustAppend(t, b, "begun", the(created("begun")), the(lifecycle.Started{Kind: event.Enroll, Step: "create"}), the(lifecycle.Accepted{Kind: event.Enroll}))
	mustAppend(t, b, "new", the(created("new")))
	mustAppend(t, b, "settled", the(created("settled")), the(enrolled().Fact))
	loseTokens(t, js, "registrar")
	w := registrar(enrollIn("create"))
	w.cares = func(t bus.Trigger) bool { return t.Stage == "registering" }
	serve(t, b, w)
	awaitFact(t, b, "begun", event.SectionRegistration, "enroll.succeeded")
	awaitFact(t, b, "new", event.SectionRegistration, "enroll.succeeded")
	for _, c := range w.stepped() {
		if c.host == "settled" {
			t.Error("a settled host was woken")
		}
	}
	if counter(t, b, "metalbus_wakes_total") < 2 {
		t.Error("nobody was woken")
	}
	clean(t, b)
}
