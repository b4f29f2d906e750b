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
			bustest.Append(t, b, "u1", bustest.The(created("u1")), bustest.The(lifecycle.Started{Kind: event.Enroll, Step: "create"}))
			if answered {
				bustest.Append(t, b, "u1", bustest.The(lifecycle.Accepted{Kind: event.Enroll}))
			}
			loseTokens(t, js, "registrar")
			poll := lifecycle.Wait{For: "a test", Every: 20 * time.Millisecond}
			w := bustest.Registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
				if h.Newest(event.SectionRegistration).Fact != "enroll.resumed" {
					return poll, nil
				}
				return enrolled(), nil
			})
			bustest.Serve(t, b, w)
			began := time.Now()
			if err := b.Wake(t.Context(), "registrar", "u1", "test"); err != nil {
				t.Fatal(err)
			}
			bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
			if took := time.Since(began); took < bustest.Timing().Resume/2 {
				t.Errorf("resumed after %s: its own token might have been alive", took)
			}
			bustest.Clean(t, b)
		})
	}
}

func TestAWakeDoesNotDisturb(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "registrar")
	_, js := raw(t, s)
	done := atomic.Bool{}
	w := bustest.Registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
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
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.accepted")
	for _, uid := range []string{"u1", "u1", "nobody"} {
		if err := b.Wake(t.Context(), "registrar", uid, "test"); err != nil {
			t.Fatal(err)
		}
	}
	done.Store(true)
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	bustest.Await(t, "all wakes to be done with", func() bool {
		c, err := js.Consumer(t.Context(), bus.StreamWake, "registrar-"+bustest.Cluster)
		return err == nil && c.CachedInfo().NumAckPending == 0 && c.CachedInfo().NumPending == 0
	})
	if len(w.Writes()) != 1 {
		t.Errorf("writes %v, want one", w.Writes())
	}
	bustest.Clean(t, b)
}

func TestAWakeEndsABackOff(t *testing.T) {
	timing := bustest.Timing()
	timing.BackOff, timing.BackOffMax = time.Minute, time.Minute
	s := bustest.Server(t)
	bustest.On(t, s, "init")
	b := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "registrar", Timing: timing}, bus.WithServer(s))
	w := bustest.Registrar(enrollIn("create"))
	w.OnDo = func(context.Context, lifecycle.Host, lifecycle.Write) error {
		if len(w.Writes()) == 1 {
			return &lifecycle.ProblemError{Problem: event.Problem{Message: "not today"}}
		}
		return nil
	}
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.failed")
	if err := b.Wake(t.Context(), "registrar", "u1", "test"); err != nil {
		t.Fatal(err)
	}
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
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
		w := &bustest.Worker{Own: event.SectionPower, OnTick: tick}
		bustest.Serve(t, bustest.On(t, s, "powermonitor"), w)
	}
	bustest.Await(t, "three ticks", func() bool { mu.Lock(); defer mu.Unlock(); return len(times) >= 3 })
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
	bustest.Append(t, b, "begun", bustest.The(created("begun")), bustest.The(lifecycle.Started{Kind: event.Enroll, Step: "create"}), bustest.The(lifecycle.Accepted{Kind: event.Enroll}))
	bustest.Append(t, b, "new", bustest.The(created("new")))
	bustest.Append(t, b, "settled", bustest.The(created("settled")), bustest.The(enrolled().Fact))
	loseTokens(t, js, "registrar")
	w := bustest.Registrar(enrollIn("create"))
	w.OnCares = func(t bus.Trigger) bool { return t.Stage == "registering" }
	bustest.Serve(t, b, w)
	bustest.AwaitFact(t, b, "begun", event.SectionRegistration, "enroll.succeeded")
	bustest.AwaitFact(t, b, "new", event.SectionRegistration, "enroll.succeeded")
	for _, c := range w.Steps() {
		if c.UID == "settled" {
			t.Error("a settled host was woken")
		}
	}
	if counter(t, b, "metalbus_wakes_total") < 2 {
		t.Error("nobody was woken")
	}
	bustest.Clean(t, b)
}
