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
	w := registrar(enrollIn("create", "manage"))
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	h := awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")

	want := []string{
		"intent.created", "registration.enroll.started", "registration.enroll.accepted",
		"registration.enroll.claimed", "registration.enroll.accepted", "registration.enroll.succeeded",
	}
	if diff := cmp.Diff(want, facts(t, b, "u1")); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	if got := names(w.wrote()); got != "create manage" {
		t.Errorf("writes %q, want each once", got)
	}
	if h.Rev != 6 || lifecycle.Stage(h) != v1alpha1.StateInspecting {
		t.Errorf("host at revision %d in %s", h.Rev, lifecycle.Stage(h))
	}
	if took := h.Newest(event.SectionRegistration).At.Sub(h.Newest(event.SectionIntent).At); took >= bustest.Timing().Quarantine {
		t.Errorf("it took %s: an answered claim must not wait for the quarantine", took)
	}
	clean(t, b)
}

func TestUncaredTriggersAreNotLoaded(t *testing.T) {
	b := bustest.New(t)
	w := registrar(func(lifecycle.Host) (lifecycle.Step, error) { return lifecycle.Nothing{}, nil })
	w.cares = func(t bus.Trigger) bool { return t.Stage == v1alpha1.StateInspecting }
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")), the(observed(true)))
	mustAppend(t, b, "u2", the(created("u2")), the(enrolled().Fact))
	await(t, "a step", func() bool { return len(w.stepped()) > 0 })
	for _, s := range w.stepped() {
		if s.host != "u2" {
			t.Errorf("host %s was looked at", s.host)
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
			w := registrar(enrollIn("create"))
			w.do = func(context.Context, lifecycle.Host, lifecycle.Write) error {
				if len(w.wrote()) == 1 {
					return lost
				}
				return nil
			}
			serve(t, b, w)
			mustAppend(t, b, "u1", the(created("u1")))
			awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
			writes, rest := w.wrote(), bustest.Timing().Quarantine
			if len(writes) != 2 || gap(writes, 0, 1) < rest*9/10 {
				t.Errorf("writes %v: want two, the quarantine of %s between them", writes, rest)
			}
			clean(t, b)
		})
	}
}

func TestNobodyTouchesAClaimThatIsNotAnswered(t *testing.T) {
	b := bustest.New(t)
	var during []call
	w := registrar(enrollIn("create"))
	w.do = func(context.Context, lifecycle.Host, lifecycle.Write) error {
		before := len(w.stepped())
		mustAppend(t, b, "u1", func(h lifecycle.Host) lifecycle.Fact { return changed(h, "2") }, the(observed(true)))
		deadline := time.Now().Add(bustest.Timing().Window / 2)
		for time.Now().Before(deadline) && len(w.stepped()) == before {
			time.Sleep(time.Millisecond)
		}
		during = w.stepped()[before:]
		return nil
	}
	serve(t, b, w)
	serve(t, b, w) // a second replica, which holds no lane of the first
	mustAppend(t, b, "u1", the(created("u1")))
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	if len(during) > 0 {
		t.Errorf("looked at while the claim was in use: %v", during)
	}
	if len(w.wrote()) != 1 {
		t.Errorf("writes %v, want one", w.wrote())
	}
	clean(t, b)
}

func TestBusyIsAskedAgainLater(t *testing.T) {
	b := bustest.New(t)
	w := registrar(enrollIn("create"))
	w.do = func(context.Context, lifecycle.Host, lifecycle.Write) error {
		switch len(w.wrote()) {
		case 1:
			return fmt.Errorf("locked: %w", lifecycle.ErrBusy)
		case 2:
			return errors.New("an error that is an answer all the same")
		default:
			return nil
		}
	}
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	h := awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	writes, busy := w.wrote(), bustest.Timing().Busy
	if len(writes) != 3 || gap(writes, 0, 1) < busy*8/10 || gap(writes, 1, 2) < 2*busy*8/10 {
		t.Errorf("writes %v: want three, at least %s and %s apart", writes, busy, 2*busy)
	}
	if h.Registration.Failures != 0 {
		t.Errorf("%d failures: being busy is none", h.Registration.Failures)
	}
	clean(t, b)
}

func TestAProblemBacksOff(t *testing.T) {
	b := bustest.New(t)
	w := registrar(enrollIn("create"))
	w.do = func(context.Context, lifecycle.Host, lifecycle.Write) error {
		if len(w.wrote()) < 3 {
			return &lifecycle.ProblemError{Problem: event.Problem{Type: v1alpha1.RegistrationError, Message: "no route to BMC"}}
		}
		return nil
	}
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	writes, first := w.wrote(), bustest.Timing().BackOff
	if len(writes) != 3 || gap(writes, 0, 1) < 2*first*8/10 || gap(writes, 1, 2) < 4*first*8/10 {
		t.Errorf("writes %v: want three, at least %s and %s apart", writes, 2*first, 4*first)
	}
	clean(t, b)
}

func TestOnlyTheUserEndsABackOffEarly(t *testing.T) {
	timing := bustest.Timing()
	timing.BackOff, timing.BackOffMax = time.Minute, time.Minute
	s := bustest.Server(t)
	bustest.On(t, s, "init")
	b := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "registrar", Timing: timing}, bus.WithServer(s))
	fixed := atomic.Bool{}
	w := registrar(enrollIn("create"))
	w.do = func(context.Context, lifecycle.Host, lifecycle.Write) error {
		if fixed.Load() {
			return nil
		}
		return &lifecycle.ProblemError{Problem: event.Problem{Type: v1alpha1.RegistrationError, Message: "wrong password"}}
	}
	_, js := raw(t, s)
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	h := awaitFact(t, b, "u1", event.SectionRegistration, "enroll.failed")
	if h.Registration.Problem.Message != "wrong password" || h.Registration.Failures != 1 {
		t.Fatalf("registration %+v", h.Registration)
	}
	steps := len(w.stepped())
	h = mustAppend(t, b, "u1", the(observed(true)), the(observed(false)))
	await(t, "both to be handled", func() bool {
		c, err := js.Consumer(t.Context(), bus.StreamHost, "registrar-"+bustest.Cluster)
		return err == nil && c.CachedInfo().NumPending == 0 && c.CachedInfo().NumAckPending == 1 && c.CachedInfo().AckFloor.Stream >= 1
	})
	if got := len(w.stepped()); got != steps {
		t.Errorf("looked at %d times in the back-off", got-steps)
	}
	fixed.Store(true)
	mustAppend(t, b, "u1", func(h lifecycle.Host) lifecycle.Fact { return changed(h, "2") })
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	clean(t, b)
}

func TestAWaitKeepsOneToken(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "registrar")
	_, js := raw(t, s)
	ready := atomic.Bool{}
	w := registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
		if !ready.Load() {
			return lifecycle.Wait{For: "a test", Every: 40 * time.Millisecond}, nil
		}
		return enrollIn("create")(h)
	})
	w.cares = func(t bus.Trigger) bool { return t.Section == event.SectionIntent }
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	await(t, "five looks", func() bool { return len(w.stepped()) >= 5 })
	looks := w.stepped()
	if gap(looks, 0, 1) >= 40*time.Millisecond || gap(looks, 3, 4) < 30*time.Millisecond {
		t.Errorf("gaps %s and %s: want the first short and the later ones long", gap(looks, 0, 1), gap(looks, 3, 4))
	}

	mustAppend(t, b, "u1", the(observed(true))) // not cared for: the wait must outlive it
	before := len(w.stepped())
	await(t, "looks after another's event", func() bool { return len(w.stepped()) >= before+3 })
	mustAppend(t, b, "u1", func(h lifecycle.Host) lifecycle.Fact { return changed(h, "2") })
	before = len(w.stepped())
	await(t, "looks after an event that counts", func() bool { return len(w.stepped()) >= before+4 })
	await(t, "one token", func() bool { return pending(t, js, "registrar") == 1 })

	ready.Store(true)
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	clean(t, b)
}

func TestASteadyWaitDoesNotHurry(t *testing.T) {
	b := bustest.New(t)
	w := registrar(func(lifecycle.Host) (lifecycle.Step, error) {
		return lifecycle.Wait{For: "a test", Every: 60 * time.Millisecond, Steady: true}, nil
	})
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	await(t, "two looks", func() bool { return len(w.stepped()) >= 2 })
	if got := gap(w.stepped(), 0, 1); got < 50*time.Millisecond {
		t.Errorf("looked again after %s", got)
	}
}

func TestAnOperationKeepsItsTokenWhateverTheStepSays(t *testing.T) {
	b := bustest.New(t)
	calls := atomic.Int64{}
	w := registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
		if h.Registration.Op != nil && calls.Add(1) < 4 {
			return lifecycle.Nothing{}, nil
		}
		return enrollIn("create")(h)
	})
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
}

func TestOneOperationAtATime(t *testing.T) {
	s := bustest.Server(t)
	r, p := bustest.On(t, s, "registrar"), bustest.On(t, s, "powermonitor")
	reg := registrar(enrollIn("create", "manage"))
	blocked := atomic.Int64{}
	reg.do = func(_ context.Context, _ lifecycle.Host, w lifecycle.Write) error {
		if w.Name == "create" {
			await(t, "the other service to want something", func() bool { return blocked.Load() > 0 })
		}
		return nil
	}
	power := &worker{section: event.SectionPower, step: func(h lifecycle.Host) (lifecycle.Step, error) {
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
	serve(t, r, reg)
	serve(t, p, power)
	wish := created("u1")
	wish.Intent.Spec.ExternallyProvisioned = true
	mustAppend(t, r, "u1", the(wish))
	awaitFact(t, r, "u1", event.SectionPower, "on.succeeded")
	if len(power.wrote()) != 1 {
		t.Errorf("writes %v, want one", power.wrote())
	}
	clean(t, r)
}

func TestARecordSurvivesAForeignEvent(t *testing.T) {
	b := bustest.New(t)
	w := registrar(nil)
	w.step = func(h lifecycle.Host) (lifecycle.Step, error) {
		if h.Registration.Registered {
			return lifecycle.Nothing{}, nil
		}
		mustAppend(t, b, "u1", the(observed(len(w.stepped())%2 == 0))) // a race
		return enrolled(), nil
	}
	w.cares = func(t bus.Trigger) bool { return t.Section == event.SectionIntent }
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	if got := len(w.stepped()); got != 1 {
		t.Errorf("decided %d times, want once", got)
	}
	clean(t, b)
}

func TestARecordIsDecidedAnewWhenTheWishChanged(t *testing.T) {
	b := bustest.New(t)
	w := registrar(nil)
	w.step = func(h lifecycle.Host) (lifecycle.Step, error) {
		switch {
		case h.Registration.Registered:
			return lifecycle.Nothing{}, nil
		case h.Intent.Hash == "1":
			mustAppend(t, b, "u1", func(h lifecycle.Host) lifecycle.Fact { return changed(h, "2") })
		}
		return lifecycle.Record{Fact: lifecycle.Enrolled{Backend: "lab", Node: h.Intent.Hash}}, nil
	}
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	h := awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	if h.Registration.Node != "2" {
		t.Errorf("recorded what was decided from the old wish: %q", h.Registration.Node)
	}
	clean(t, b)
}

func TestAClaimThatLostARaceIsNotUsed(t *testing.T) {
	b := bustest.New(t)
	raced := atomic.Bool{}
	w := registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
		if raced.CompareAndSwap(false, true) {
			mustAppend(t, b, "u1", the(observed(true)))
			return write("stale"), nil
		}
		return enrollIn("create")(h)
	})
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	if got := names(w.wrote()); got != "create" {
		t.Errorf("writes %q", got)
	}
}

func TestAnAnswerIsRecordedThoughTheHostChanged(t *testing.T) {
	b := bustest.New(t)
	w := registrar(enrollIn("create"))
	w.do = func(context.Context, lifecycle.Host, lifecycle.Write) error {
		mustAppend(t, b, "u1", the(observed(true)), func(h lifecycle.Host) lifecycle.Fact { return changed(h, "2") })
		return nil
	}
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	want := []string{
		"intent.created", "registration.enroll.started", "power.changed", "intent.changed",
		"registration.enroll.accepted", "registration.enroll.succeeded",
	}
	if diff := cmp.Diff(want, facts(t, b, "u1")); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

func TestAnotherWishIsLookedAtInTheMiddleOfAnOperation(t *testing.T) {
	timing := bustest.Timing()
	timing.Poll = 10 * time.Second
	s := bustest.Server(t)
	bustest.On(t, s, "init")
	b := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "registrar", Timing: timing}, bus.WithServer(s))
	w := registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
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
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.accepted")
	began := time.Now()
	mustAppend(t, b, "u1", func(h lifecycle.Host) lifecycle.Fact {
		w := changed(h, "2")
		w.Fact, w.Intent.DeletedAt = event.Deleting, time.Now()
		return w
	})
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.aborted")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("pre-empted after %s: it waited for the poll", took)
	}
	clean(t, b)
}

func TestWhatTheTableForbidsIsNotAppended(t *testing.T) {
	b := bustest.New(t)
	w := registrar(func(lifecycle.Host) (lifecycle.Step, error) {
		return lifecycle.Record{Fact: lifecycle.Removed{}}, nil // of a host that stays
	})
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	await(t, "three looks", func() bool { return len(w.stepped()) >= 3 })
	if got := gap(w.stepped(), 0, 1); got < bustest.Timing().Refused*8/10 {
		t.Errorf("looked again after %s", got)
	}
	if h := mustLoad(t, b, "u1"); h.Rev != 1 {
		t.Errorf("revision %d: something was appended", h.Rev)
	}
	if got := counter(t, b, "metalbus_not_allowed_total"); got < 3 {
		t.Errorf("metalbus_not_allowed_total %v", got)
	}
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
			w := registrar(func(lifecycle.Host) (lifecycle.Step, error) { return step, nil })
			serve(t, b, w)
			mustAppend(t, b, "u1", the(created("u1")))
			await(t, "two looks", func() bool { return len(w.stepped()) >= 2 })
			if h := mustLoad(t, b, "u1"); h.Rev != 1 {
				t.Errorf("revision %d: something was appended", h.Rev)
			}
		})
	}
}

func TestTroubleOfOurOwnLeavesTheHostAlone(t *testing.T) {
	b := bustest.New(t)
	w := registrar(nil)
	w.step = func(h lifecycle.Host) (lifecycle.Step, error) {
		if len(w.stepped()) < 4 {
			return nil, errors.New("the backend is down")
		}
		return enrollIn("create")(h)
	}
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	h := awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	steps, first := w.stepped(), bustest.Timing().Retry
	if gap(steps, 0, 1) < first*8/10 || gap(steps, 2, 3) < 4*first*8/10 {
		t.Errorf("gaps %s and %s: want them to grow from %s", gap(steps, 0, 1), gap(steps, 2, 3), first)
	}
	if h.Registration.Failures != 0 || h.Rev != 4 {
		t.Errorf("host %+v", h.Registration)
	}
}

func TestServeFinishesWhatIsInHand(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "registrar")
	began, finish := make(chan struct{}), make(chan struct{})
	w := registrar(enrollIn("create"))
	w.do = func(ctx context.Context, _ lifecycle.Host, _ lifecycle.Write) error {
		close(began)
		<-finish
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Serve(ctx, w) }()
	mustAppend(t, b, "u1", the(created("u1")))
	<-began
	cancel()
	close(finish)
	if err := <-ended; err != nil {
		t.Fatalf("serve: %v", err)
	}
	if got := mustLoad(t, b, "u1").Newest(event.SectionRegistration).Fact; got != "enroll.accepted" {
		t.Errorf("the newest fact is %s", got)
	}
	if len(w.stepped()) != 1 {
		t.Errorf("%d steps: new work was begun", len(w.stepped()))
	}

	next := registrar(enrollIn("create")) // another replica goes on at once
	serve(t, bustest.On(t, s, "registrar"), next)
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	if len(next.wrote()) != 0 {
		t.Errorf("written again: %v", next.wrote())
	}
	clean(t, b)
}

func TestOneSlowHostDelaysNoOther(t *testing.T) {
	b := bustest.New(t)
	release := make(chan struct{})
	w := registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
		if h.UID == "slow" {
			<-release
		}
		return enrollIn("create")(h)
	})
	serve(t, b, w)
	mustAppend(t, b, "slow", the(created("slow")))
	for range 10 {
		mustAppend(t, b, "slow", the(observed(true)), the(observed(false)))
	}
	await(t, "the slow host to be in hand", func() bool { return len(w.stepped()) > 0 })
	for i := range 20 {
		uid := fmt.Sprintf("u%d", i)
		mustAppend(t, b, uid, the(created(uid)))
	}
	for i := range 20 {
		awaitFact(t, b, fmt.Sprintf("u%d", i), event.SectionRegistration, "enroll.succeeded")
	}
	slow := 0
	for _, c := range w.stepped() {
		if c.host == "slow" {
			slow++
		}
	}
	if slow != 1 {
		t.Errorf("the slow host was handled %d times side by side", slow)
	}
	close(release)
	awaitFact(t, b, "slow", event.SectionRegistration, "enroll.succeeded")
}
