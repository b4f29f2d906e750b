package ironic_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// attempt makes one look at an operation, and the write that it asks for, whatever
// comes of it: what the bus does with a host when everything around it fails.
func (l *lab) attempt(h lifecycle.Host, k event.Kind) lifecycle.Host {
	l.Helper()
	o, err := l.backend.Look(l.Context(), k, h)
	if errors.Is(err, lifecycle.ErrUnregistered) {
		return l.lost(h)
	}
	switch o := o.(type) {
	case lifecycle.Finished:
		return l.record(h, l.end(h, k, o.Result))
	case lifecycle.Broken:
		return l.record(h, lifecycle.Failed{Kind: k, Problem: o.Problem})
	case lifecycle.Needs:
		return l.tryWrite(h, k, o.Write)
	default:
		return h
	}
}

// lost records that the node is gone, which must be so.
func (l *lab) lost(h lifecycle.Host) lifecycle.Host {
	l.Helper()
	if _, there := l.ironic.Node(h.Registration.Node); there {
		l.Errorf("node %s is told to be gone, and is there", h.Registration.Node)
	}
	return l.record(h, lifecycle.Lost{})
}

func (l *lab) tryWrite(h lifecycle.Host, k event.Kind, write string) lifecycle.Host {
	l.Helper()
	claim := lifecycle.Fact(lifecycle.Started{Kind: k, Step: write, Mode: lifecycle.OffMode(h)})
	if h.Doing(k) {
		claim = lifecycle.Claimed{Kind: k, Step: write}
	}
	h = l.record(h, claim)
	err := l.backend.Do(l.Context(), h, lifecycle.Write{Kind: k, Name: write})
	problem, is := errors.AsType[*lifecycle.ProblemError](err)
	switch {
	case is:
		return l.record(h, lifecycle.Failed{Kind: k, Problem: problem.Problem})
	case err != nil:
		return l.record(h, lifecycle.Accepted{Kind: k, Busy: true})
	default:
		return l.record(h, lifecycle.Accepted{Kind: k})
	}
}

func (*lab) end(h lifecycle.Host, k event.Kind, r lifecycle.Result) lifecycle.Fact {
	switch k {
	case event.Enroll:
		return lifecycle.Enrolled{Node: r.Node, Address: h.Intent.Spec.BMC.Address, Profile: "unknown", Credentials: lifecycle.Credentials(h.Intent)}
	case event.Adopt:
		return lifecycle.Adopted{}
	default:
		return lifecycle.Switched{Kind: k, On: k == event.PowerOn}
	}
}

// turn is the operation that a host in use, which is to be on, wants next.
func turn(h lifecycle.Host, dice *rand.Rand) event.Kind {
	op, _ := h.Op()
	switch {
	case op != nil:
		return op.Kind
	case !lifecycle.Current(h):
		return event.Enroll
	case lifecycle.Unadopted(h):
		return event.Adopt
	case dice.IntN(3) == 0:
		return event.Enroll
	default:
		return event.PowerOn
	}
}

// A machine in use is never touched by an Ironic that answers at random: errors,
// nothing at all, half answers, old ones, answers that get lost, and databases that
// are emptied again and again.
func TestChaosNeverTouchesAMachineInUse(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			l := newLab(t, ironictest.Config{Seed: uint64(seed)}, nil)
			dice := rand.New(rand.NewPCG(uint64(seed), 1))
			h := running(l)
			m := l.machine(h)
			before := m.View()
			h = l.chaos(h, dice)
			h = l.settles(h, dice)
			if after := m.View(); after.Changes != before.Changes {
				t.Errorf("the machine was touched: %v", m.Acts()[len(m.Acts())-(after.Changes-before.Changes):])
			}
			if n := l.node(h); n["provision_state"] != "active" || n["maintenance"] != false {
				t.Errorf("in the end its node is %v, in maintenance %v", n["provision_state"], n["maintenance"])
			}
		})
	}
}

// chaos goes on with a host in use for some minutes in which nothing can be relied on.
func (l *lab) chaos(h lifecycle.Host, dice *rand.Rand) lifecycle.Host {
	l.Helper()
	l.ironic.SetChaos(ironictest.Chaos{Error: .1, Unavailable: .1, Busy: .1, Empty: .1, Garbage: .05, Drop: .05, Lost: .1, Stale: .2})
	for range 200 {
		switch dice.IntN(30) {
		case 0:
			l.ironic.Forget()
		case 1:
			l.ironic.SyncPower()
		case 2:
			if _, err := l.backend.Power(l.Context(), h); errors.Is(err, lifecycle.ErrUnregistered) {
				h = l.lost(h)
			}
		}
		h = l.attempt(h, turn(h, dice))
		l.passed.Add(int64(time.Second))
		if s := lifecycle.Stage(h); s != v1alpha1.StateProvisioned {
			l.Fatalf("the host is %s", s)
		}
	}
	l.ironic.SetChaos(ironictest.Chaos{})
	l.passed.Add(int64(time.Hour)) // whatever pause there is, is over
	return h
}

// settles goes on until the host is registered, adopted and at rest.
func (l *lab) settles(h lifecycle.Host, dice *rand.Rand) lifecycle.Host {
	l.Helper()
	for range 300 {
		if op, _ := h.Op(); op == nil && lifecycle.Reachable(h) {
			return h
		}
		k := turn(h, dice)
		if k == event.PowerOn {
			k = event.Enroll
		}
		h = l.attempt(h, k)
		l.pass(time.Second)
	}
	l.Fatalf("the host does not come to rest: %+v", h.Registration)
	return h
}
