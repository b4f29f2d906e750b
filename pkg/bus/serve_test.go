package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// enrollIn takes a host through an operation of the named writes.
func enrollIn(writes ...string) func(lifecycle.Host) (lifecycle.Step, error) {
	return func(h lifecycle.Host) (lifecycle.Step, error) {
		op := h.Registration.Op
		switch {
		case h.Registration.Registered:
			return lifecycle.Nothing{}, nil
		case op == nil:
			return write(writes[0]), nil
		case !op.Answered || op.Refusals > 0:
			return write(op.Step), nil
		}
		for i, name := range writes[:len(writes)-1] {
			if op.Step == name {
				return write(writes[i+1]), nil
			}
		}
		return enrolled(), nil
	}
}

func TestServeCarriesAnOperationThrough(t *testing.T) {
	b := bustest.New(t)
	w := bustest.Registrar(enrollIn("create", "manage"))
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	h := bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")

	want := []string{
		"intent.created", "registration.enroll.started", "registration.enroll.accepted",
		"registration.enroll.claimed", "registration.enroll.accepted", "registration.enroll.succeeded",
	}
	if diff := cmp.Diff(want, bustest.Facts(t, b, "u1")); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	if got := names(w.Writes()); got != "create manage" {
		t.Errorf("writes %q, want each once", got)
	}
	if h.Rev != 6 || lifecycle.Stage(h) != v1alpha1.StateInspecting {
		t.Errorf("host at revision %d in %s", h.Rev, lifecycle.Stage(h))
	}
	if took := h.Newest(event.SectionRegistration).At.Sub(h.Newest(event.SectionIntent).At); took >= bustest.Timing().Quarantine {
		t.Errorf("it took %s: an answered claim must not wait for the quarantine", took)
	}
	bustest.Clean(t, b)
}

func TestUncaredTriggersAreNotLoaded(t *testing.T) {
	b := bustest.New(t)
	w := bustest.Registrar(func(lifecycle.Host) (lifecycle.Step, error) { return lifecycle.Nothing{}, nil })
	w.OnCares = func(t bus.Trigger) bool { return t.Stage == v1alpha1.StateInspecting }
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")), bustest.The(observed(true)))
	bustest.Append(t, b, "u2", bustest.The(created("u2")), bustest.The(enrolled().Fact))
	bustest.Await(t, "a step", func() bool { return len(w.Steps()) > 0 })
	for _, s := range w.Steps() {
		if s.UID != "u2" {
			t.Errorf("host %s was looked at", s.UID)
		}
	}
}

func TestAClaimWithoutAnswerRests(t *testing.T) {
	for name, lost := range map[string]error{
		"a time-out":             context.DeadlineExceeded,
		"a connection that died": fmt.Errorf("PUT: %w", errReset()),
	} {
		t.Run(name, func(t *testing.T) {
			b := bustest.New(t)
			w := bustest.Registrar(enrollIn("create"))
			w.OnDo = func(context.Context, lifecycle.Host, lifecycle.Write) error {
				if len(w.Writes()) == 1 {
					return lost
				}
				return nil
			}
			bustest.Serve(t, b, w)
			bustest.Append(t, b, "u1", bustest.The(created("u1")))
			bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
			if writes := w.Writes(); len(writes) != 2 || bustest.Gap(writes, 0, 1) < bustest.Rest() {
				t.Errorf("writes %v: want two, %s between them", writes, bustest.Rest())
			}
			bustest.Clean(t, b)
		})
	}
}

func TestNobodyTouchesAClaimThatIsNotAnswered(t *testing.T) {
	b := bustest.New(t)
	var during []bustest.Call
	w := bustest.Registrar(enrollIn("create"))
	w.OnDo = func(context.Context, lifecycle.Host, lifecycle.Write) error {
		before := len(w.Steps())
		bustest.Append(t, b, "u1", bustest.The(observed(true)), again)
		deadline := time.Now().Add(bustest.Timing().Window / 2)
		for time.Now().Before(deadline) && len(w.Steps()) == before {
			time.Sleep(time.Millisecond)
		}
		during = w.Steps()[before:]
		return nil
	}
	bustest.Serve(t, b, w)
	bustest.Serve(t, b, w) // a second replica, which holds no lane of the first
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	if len(during) > 0 {
		t.Errorf("looked at while the claim was in use: %v", during)
	}
	if len(w.Writes()) != 1 {
		t.Errorf("writes %v, want one", w.Writes())
	}
	bustest.Clean(t, b)
}

func TestBusyIsAskedAgainLater(t *testing.T) {
	b := bustest.New(t)
	w := bustest.Registrar(enrollIn("create"))
	w.OnDo = func(context.Context, lifecycle.Host, lifecycle.Write) error {
		switch len(w.Writes()) {
		case 1:
			return fmt.Errorf("locked: %w", lifecycle.ErrBusy)
		case 2:
			return errors.New("an error that is an answer all the same")
		default:
			return nil
		}
	}
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	h := bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	writes, busy := w.Writes(), bustest.Timing().Busy
	if len(writes) != 3 || bustest.Gap(writes, 0, 1) < busy*8/10 || bustest.Gap(writes, 1, 2) < 2*busy*8/10 {
		t.Errorf("writes %v: want three, at least %s and %s apart", writes, busy, 2*busy)
	}
	if h.Registration.Failures != 0 {
		t.Errorf("%d failures: being busy is none", h.Registration.Failures)
	}
	bustest.Clean(t, b)
}

func TestAProblemBacksOff(t *testing.T) {
	b := bustest.New(t)
	w := bustest.Registrar(enrollIn("create"))
	w.OnDo = func(context.Context, lifecycle.Host, lifecycle.Write) error {
		if len(w.Writes()) < 3 {
			return &lifecycle.ProblemError{Problem: event.Problem{Type: v1alpha1.RegistrationError, Message: "no route to BMC"}}
		}
		return nil
	}
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	writes, first := w.Writes(), bustest.Timing().BackOff
	if len(writes) != 3 || bustest.Gap(writes, 0, 1) < 2*first*8/10 || bustest.Gap(writes, 1, 2) < 4*first*8/10 {
		t.Errorf("writes %v: want three, at least %s and %s apart", writes, 2*first, 4*first)
	}
	bustest.Clean(t, b)
}

func TestOnlyTheUserEndsABackOffEarly(t *testing.T) {
	timing := bustest.Timing()
	timing.BackOff, timing.BackOffMax = time.Minute, time.Minute
	s := bustest.Server(t)
	bustest.On(t, s, "init")
	b := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "registrar", Timing: timing}, bus.WithServer(s))
	fixed := atomic.Bool{}
	w := bustest.Registrar(enrollIn("create"))
	w.OnDo = func(context.Context, lifecycle.Host, lifecycle.Write) error {
		if fixed.Load() {
			return nil
		}
		return &lifecycle.ProblemError{Problem: event.Problem{Type: v1alpha1.RegistrationError, Message: "wrong password"}}
	}
	_, js := raw(t, s)
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	h := bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.failed")
	if h.Registration.Problem.Message != "wrong password" || h.Registration.Failures != 1 {
		t.Fatalf("registration %+v", h.Registration)
	}
	steps := len(w.Steps())
	h = bustest.Append(t, b, "u1", bustest.The(observed(true)), bustest.The(observed(false)))
	bustest.Await(t, "both to be handled", func() bool {
		c, err := js.Consumer(t.Context(), bus.StreamHost, "registrar-"+bustest.Cluster)
		return err == nil && c.CachedInfo().NumPending == 0 && c.CachedInfo().NumAckPending == 1 && c.CachedInfo().AckFloor.Stream >= 1
	})
	if got := len(w.Steps()); got != steps {
		t.Errorf("looked at %d times in the back-off", got-steps)
	}
	fixed.Store(true)
	bustest.Append(t, b, "u1", again)
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	bustest.Clean(t, b)
}

func TestAWaitKeepsOneToken(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "registrar")
	_, js := raw(t, s)
	ready := atomic.Bool{}
	w := bustest.Registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
		if !ready.Load() {
			return lifecycle.Wait{For: "a test", Every: 40 * time.Millisecond}, nil
		}
		return enrollIn("create")(h)
	})
	w.OnCares = func(t bus.Trigger) bool { return t.Section == event.SectionIntent }
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.Await(t, "five looks", func() bool { return len(w.Steps()) >= 5 })
	looks := w.Steps()
	if bustest.Gap(looks, 0, 1) >= 40*time.Millisecond || bustest.Gap(looks, 3, 4) < 30*time.Millisecond {
		t.Errorf("gaps %s and %s: want the first short and the later ones long", bustest.Gap(looks, 0, 1), bustest.Gap(looks, 3, 4))
	}

	bustest.Append(t, b, "u1", bustest.The(observed(true))) // not cared for: the wait must outlive it
	before := len(w.Steps())
	bustest.Await(t, "looks after another's event", func() bool { return len(w.Steps()) >= before+3 })
	bustest.Append(t, b, "u1", again)
	before = len(w.Steps())
	bustest.Await(t, "looks after an event that counts", func() bool { return len(w.Steps()) >= before+4 })
	bustest.Await(t, "one token", func() bool { return pending(t, js, "registrar") == 1 })

	ready.Store(true)
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	bustest.Clean(t, b)
}

func TestASteadyWaitDoesNotHurry(t *testing.T) {
	b := bustest.New(t)
	w := bustest.Registrar(func(lifecycle.Host) (lifecycle.Step, error) {
		return lifecycle.Wait{For: "a test", Every: 60 * time.Millisecond, Steady: true}, nil
	})
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.Await(t, "two looks", func() bool { return len(w.Steps()) >= 2 })
	if got := bustest.Gap(w.Steps(), 0, 1); got < 50*time.Millisecond {
		t.Errorf("looked again after %s", got)
	}
}

func TestAnOperationKeepsItsTokenWhateverTheStepSays(t *testing.T) {
	b := bustest.New(t)
	calls := atomic.Int64{}
	w := bustest.Registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
		if h.Registration.Op != nil && calls.Add(1) < 4 {
			return lifecycle.Nothing{}, nil
		}
		return enrollIn("create")(h)
	})
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
}

func TestWhatIsRecordedBesideAnOperationCarriesItOn(t *testing.T) {
	b := bustest.New(t)
	told := atomic.Bool{}
	w := bustest.Registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
		switch {
		case h.Registration.Op == nil && !h.Registration.Registered:
			return write("create"), nil
		case h.Registration.Op != nil && told.Load():
			return enrolled(), nil
		case h.Registration.Op != nil:
			return lifecycle.Wait{For: "a test", Every: 20 * time.Millisecond}, nil
		default:
			return lifecycle.Nothing{}, nil
		}
	})
	w.OnCares = func(t bus.Trigger) bool { return t.Section == event.SectionIntent }
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.accepted")
	bustest.Append(t, b, "u1", bustest.The(lifecycle.Stalled{In: event.SectionRegistration, Message: "the backend is away"}))
	told.Store(true)
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	bustest.Clean(t, b)
}

func TestWhatIsRecordedBesideABackOffDoesNotEndIt(t *testing.T) {
	b := bustest.New(t)
	w := bustest.Registrar(enrollIn("create"))
	w.OnDo = func(context.Context, lifecycle.Host, lifecycle.Write) error {
		if len(w.Writes()) < 3 {
			return &lifecycle.ProblemError{Problem: event.Problem{Message: "no"}}
		}
		return nil
	}
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.Await(t, "the second problem", func() bool { return bustest.Load(t, b, "u1").Registration.Failures == 2 })
	bustest.Append(t, b, "u1", bustest.The(lifecycle.Stalled{In: event.SectionRegistration, Message: "besides"}))
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	if least := 4 * bustest.Timing().BackOff * 8 / 10; bustest.Gap(w.Writes(), 1, 2) < least {
		t.Errorf("tried again after %s, want at least %s", bustest.Gap(w.Writes(), 1, 2), least)
	}
}

func TestOneOperationAtATime(t *testing.T) {
	s := bustest.Server(t)
	r, p := bustest.On(t, s, "registrar"), bustest.On(t, s, "powermonitor")
	reg := bustest.Registrar(enrollIn("create", "manage"))
	blocked := atomic.Int64{}
	reg.OnDo = func(_ context.Context, _ lifecycle.Host, w lifecycle.Write) error {
		if w.Name == "create" {
			bustest.Await(t, "the other service to want something", func() bool { return blocked.Load() > 0 })
		}
		return nil
	}
	power := &bustest.Worker{Own: event.SectionPower, OnStep: func(h lifecycle.Host) (lifecycle.Step, error) {
		op, section := h.Op()
		switch {
		case op != nil && section == event.SectionRegistration:
			if h.Power.On == nil { // needs no operation, so it is recorded beside the other's
				return lifecycle.Record{Fact: observed(false)}, nil
			}
			blocked.Add(1)
			return lifecycle.Write{Kind: event.PowerOn, Name: "on"}, nil
		case h.Registration.Registered && op == nil && !*h.Power.On:
			return lifecycle.Write{Kind: event.PowerOn, Name: "on"}, nil
		case op != nil:
			return lifecycle.Record{Fact: lifecycle.Switched{Kind: event.PowerOn, On: true}}, nil
		default:
			return lifecycle.Nothing{}, nil
		}
	}}
	bustest.Serve(t, r, reg)
	bustest.Serve(t, p, power)
	wish := created("u1")
	wish.Intent.Spec.ExternallyProvisioned = true
	bustest.Append(t, r, "u1", bustest.The(wish))
	bustest.AwaitFact(t, r, "u1", event.SectionPower, "on.succeeded")
	if len(power.Writes()) != 1 {
		t.Errorf("writes %v, want one", power.Writes())
	}
	bustest.Clean(t, r)
}

func TestARecordSurvivesAForeignEvent(t *testing.T) {
	b := bustest.New(t)
	decided := atomic.Int64{}
	w := bustest.Registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
		if h.Registration.Registered {
			return lifecycle.Nothing{}, nil
		}
		decided.Add(1)
		bustest.Append(t, b, "u1", bustest.The(observed(true))) // a race
		return enrolled(), nil
	})
	w.OnCares = func(t bus.Trigger) bool { return t.Section == event.SectionIntent }
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	if decided.Load() != 1 {
		t.Errorf("decided %d times, want once", decided.Load())
	}
	bustest.Clean(t, b)
}

func TestARecordIsDecidedAnewWhenTheWishChanged(t *testing.T) {
	b := bustest.New(t)
	w := bustest.Registrar(nil)
	w.OnStep = func(h lifecycle.Host) (lifecycle.Step, error) {
		switch {
		case h.Registration.Registered:
			return lifecycle.Nothing{}, nil
		case h.Intent.Hash == "1":
			bustest.Append(t, b, "u1", again)
		}
		return lifecycle.Record{Fact: lifecycle.Enrolled{Backend: "lab", Node: h.Intent.Hash}}, nil
	}
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	h := bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	if h.Registration.Node != "2" {
		t.Errorf("recorded what was decided from the old wish: %q", h.Registration.Node)
	}
	bustest.Clean(t, b)
}

func TestAClaimThatLostARaceIsNotUsed(t *testing.T) {
	b := bustest.New(t)
	raced := atomic.Bool{}
	w := bustest.Registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
		if raced.CompareAndSwap(false, true) {
			bustest.Append(t, b, "u1", bustest.The(observed(true)))
			return write("stale"), nil
		}
		return enrollIn("create")(h)
	})
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	if got := names(w.Writes()); got != "create" {
		t.Errorf("writes %q", got)
	}
}

func TestAnAnswerIsRecordedThoughTheHostChanged(t *testing.T) {
	b := bustest.New(t)
	w := bustest.Registrar(enrollIn("create"))
	w.OnDo = func(context.Context, lifecycle.Host, lifecycle.Write) error {
		bustest.Append(t, b, "u1", bustest.The(observed(true)), again)
		return nil
	}
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	want := []string{
		"intent.created", "registration.enroll.started", "power.changed", "intent.changed",
		"registration.enroll.accepted", "registration.enroll.succeeded",
	}
	if diff := cmp.Diff(want, bustest.Facts(t, b, "u1")); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

func TestAnotherWishIsLookedAtInTheMiddleOfAnOperation(t *testing.T) {
	timing := bustest.Timing()
	timing.Poll = 10 * time.Second
	s := bustest.Server(t)
	bustest.On(t, s, "init")
	b := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "registrar", Timing: timing}, bus.WithServer(s))
	w := bustest.Registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
		switch op := h.Registration.Op; {
		case lifecycle.Leaving(h) && op != nil:
			return lifecycle.Record{Fact: lifecycle.Aborted{Kind: op.Kind, Reason: "the host is being deleted"}}, nil
		case lifecycle.Leaving(h):
			return lifecycle.Nothing{}, nil
		case op == nil:
			return write("create"), nil
		default:
			return lifecycle.Wait{For: "a test", Every: 10 * time.Second}, nil
		}
	})
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.accepted")
	began := time.Now()
	bustest.Append(t, b, "u1", func(h lifecycle.Host) lifecycle.Fact {
		w := changed(h, "2")
		w.Fact, w.Intent.DeletedAt = event.Deleting, time.Now()
		return w
	})
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.aborted")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("pre-empted after %s: it waited for the poll", took)
	}
	bustest.Clean(t, b)
}

func TestWhatTheTableForbidsIsNotAppended(t *testing.T) {
	b := bustest.New(t)
	w := bustest.Registrar(func(lifecycle.Host) (lifecycle.Step, error) {
		return lifecycle.Record{Fact: lifecycle.Removed{}}, nil // of a host that stays
	})
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.Await(t, "three looks", func() bool { return len(w.Steps()) >= 3 })
	if got := bustest.Gap(w.Steps(), 0, 1); got < bustest.Timing().Refused*8/10 {
		t.Errorf("looked again after %s", got)
	}
	if h := bustest.Load(t, b, "u1"); h.Rev != 1 {
		t.Errorf("revision %d: something was appended", h.Rev)
	}
	bustest.Await(t, "all to be counted", func() bool { return counter(t, b, "metalbus_not_allowed_total") >= 3 })
}

func TestAServiceRecordsItsOwnSectionOnly(t *testing.T) {
	for name, step := range map[string]lifecycle.Step{
		"another's fact":               lifecycle.Record{Fact: observed(true)},
		"another's write":              lifecycle.Write{Kind: event.PowerOn, Name: "on"},
		"a claim without the bus":      lifecycle.Record{Fact: lifecycle.Started{Kind: event.Enroll, Step: "create"}},
		"a step that there is not yet": nil,
	} {
		t.Run(name, func(t *testing.T) {
			b := bustest.New(t)
			w := bustest.Registrar(func(lifecycle.Host) (lifecycle.Step, error) { return step, nil })
			bustest.Serve(t, b, w)
			bustest.Append(t, b, "u1", bustest.The(created("u1")))
			bustest.Await(t, "two looks", func() bool { return len(w.Steps()) >= 2 })
			if h := bustest.Load(t, b, "u1"); h.Rev != 1 {
				t.Errorf("revision %d: something was appended", h.Rev)
			}
		})
	}
}

func TestTroubleOfOurOwnLeavesTheHostAlone(t *testing.T) {
	b := bustest.New(t)
	w := bustest.Registrar(nil)
	w.OnStep = func(h lifecycle.Host) (lifecycle.Step, error) {
		if len(w.Steps()) < 4 {
			return nil, errors.New("the backend is down")
		}
		return enrollIn("create")(h)
	}
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	h := bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	steps, first := w.Steps(), bustest.Timing().Retry
	if bustest.Gap(steps, 0, 1) < first*8/10 || bustest.Gap(steps, 2, 3) < 4*first*8/10 {
		t.Errorf("gaps %s and %s: want them to grow from %s", bustest.Gap(steps, 0, 1), bustest.Gap(steps, 2, 3), first)
	}
	if h.Registration.Failures != 0 || h.Rev != 4 {
		t.Errorf("host %+v", h.Registration)
	}
}

func TestServeFinishesWhatIsInHand(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "registrar")
	began, finish := make(chan struct{}), make(chan struct{})
	w := bustest.Registrar(enrollIn("create"))
	w.OnDo = func(ctx context.Context, _ lifecycle.Host, _ lifecycle.Write) error {
		close(began)
		<-finish
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Serve(ctx, w) }()
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	<-began
	cancel()
	close(finish)
	if err := <-ended; err != nil {
		t.Fatalf("serve: %v", err)
	}
	if got := bustest.Load(t, b, "u1").Newest(event.SectionRegistration).Fact; got != "enroll.accepted" {
		t.Errorf("the newest fact is %s", got)
	}
	if len(w.Steps()) != 1 {
		t.Errorf("%d steps: new work was begun", len(w.Steps()))
	}

	next := bustest.Registrar(enrollIn("create")) // another replica goes on at once
	bustest.Serve(t, bustest.On(t, s, "registrar"), next)
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	if len(next.Writes()) != 0 {
		t.Errorf("written again: %v", next.Writes())
	}
	bustest.Clean(t, b)
}

func TestOneSlowHostDelaysNoOther(t *testing.T) {
	b := bustest.New(t)
	release := make(chan struct{})
	w := bustest.Registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
		if h.UID == "slow" {
			<-release
		}
		return enrollIn("create")(h)
	})
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "slow", bustest.The(created("slow")))
	for range 10 {
		bustest.Append(t, b, "slow", bustest.The(observed(true)), bustest.The(observed(false)))
	}
	bustest.Await(t, "the slow host to be in hand", func() bool { return len(w.Steps()) > 0 })
	for i := range 20 {
		uid := fmt.Sprintf("u%d", i)
		bustest.Append(t, b, uid, bustest.The(created(uid)))
	}
	for i := range 20 {
		bustest.AwaitFact(t, b, fmt.Sprintf("u%d", i), event.SectionRegistration, "enroll.succeeded")
	}
	slow := 0
	for _, c := range w.Steps() {
		if c.UID == "slow" {
			slow++
		}
	}
	if slow != 1 {
		t.Errorf("the slow host was handled %d times side by side", slow)
	}
	close(release)
	bustest.AwaitFact(t, b, "slow", event.SectionRegistration, "enroll.succeeded")
}
