package bustest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Conform checks that the bus keeps its promises on a NATS server or cluster.
// connect gives another connection to the same, initialized bus under the name
// of a service, with the given waits. The suite brings hosts of its own and
// leaves them there; nobody else may serve the bus meanwhile.
func Conform(t *testing.T, timing bus.Timing, connect func(tb testing.TB, name string) *bus.Bus) {
	t.Helper()
	s := suite{connect: connect, timing: timing, run: uuid.NewString()[:8]}
	for name, test := range map[string]func(*testing.T){
		"a load reads what was appended":                  s.loadReadsAppends,
		"of equal appends one succeeds":                   s.equalAppends,
		"many writers leave no gap":                       s.manyWriters,
		"every revision has its snapshot":                 s.snapshots,
		"an operation is carried through by one replica":  s.operation,
		"a claim without an answer rests":                 s.claimRests,
		"a problem backs off until the wish changes":      s.backOff,
		"what panics is set aside and replayed by a wake": s.deadLetter,
		"a tick reaches one replica":                      s.tick,
		"documents are kept by their digest":              s.documents,
		"the history follows the log":                     s.history,
		"a purged host may come back":                     s.purge,
	} {
		t.Run(name, test)
	}
	t.Run("the audit finds nothing", func(t *testing.T) { Clean(t, connect(t, "audit")) })
}

type suite struct {
	connect func(tb testing.TB, name string) *bus.Bus
	timing  bus.Timing
	run     string
}

// uid is one that no other run has.
func (s suite) uid(name string) string { return s.run + "-" + name }

func wish(uid string) lifecycle.Wish {
	return lifecycle.Wish{Fact: event.Created, Intent: event.Intent{
		Namespace: "conform", Name: uid, UID: uid, Hash: "1",
		Spec: v1alpha1.BareMetalHostSpec{
			Online: true, BMC: v1alpha1.BMCDetails{Address: "redfish://192.0.2.1/redfish/v1/Systems/1", CredentialsName: "bmc"},
		},
	}}
}

func seen(on bool) func(lifecycle.Host) lifecycle.Fact {
	return The(lifecycle.Observed{What: event.PowerChanged, On: &on})
}

// outside is what the workers of a test have written.
type outside struct{ written sync.Map }

func (o *outside) has(uid, name string) bool {
	_, ok := o.written.Load(uid + " " + name)
	return ok
}

// worker enrols the hosts of this test in two writes, and leaves all others
// alone. As a worker should, it goes by what it sees outside.
func (s suite) worker(prefix string, o *outside) *Worker {
	w := Registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
		switch {
		case h.Registration.Registered, !strings.HasPrefix(h.UID, s.uid(prefix)):
			return lifecycle.Nothing{}, nil
		case !o.has(h.UID, "create"):
			return lifecycle.Write{Kind: event.Enroll, Name: "create"}, nil
		case !o.has(h.UID, "manage"):
			return lifecycle.Write{Kind: event.Enroll, Name: "manage"}, nil
		default:
			return lifecycle.Record{Fact: lifecycle.Enrolled{Backend: "lab", Node: "n"}}, nil
		}
	})
	w.OnCares = func(t bus.Trigger) bool { return strings.HasPrefix(t.UID, s.uid(prefix)) }
	w.OnDo = func(_ context.Context, h lifecycle.Host, x lifecycle.Write) error {
		o.written.Store(h.UID+" "+x.Name, true)
		return nil
	}
	return w
}

func (s suite) loadReadsAppends(t *testing.T) {
	t.Helper()
	b, uid := s.connect(t, "test"), s.uid("load")
	h := Append(t, b, uid, The(wish(uid)), seen(true), The(lifecycle.Started{Kind: event.Enroll, Step: "create"}))
	Await(t, "any replica to answer", func() bool { return Load(t, b, uid).Rev == h.Rev })
	got := Load(t, b, uid)
	if got.Head != h.Head || got.Registration.Op == nil || got.Registration.Op.ID != "enroll-3" || !*got.Power.On || got.Epoch != h.Epoch {
		t.Errorf("read %+v after %+v", got, h)
	}
}

func (s suite) equalAppends(t *testing.T) {
	t.Helper()
	replicas := []*bus.Bus{s.connect(t, "registrar"), s.connect(t, "registrar"), s.connect(t, "registrar")}
	for round := range 10 {
		uid := s.uid(fmt.Sprintf("equal-%d", round))
		h := Append(t, replicas[0], uid, The(wish(uid)))
		var won atomic.Int64
		var wg sync.WaitGroup
		for _, b := range replicas {
			wg.Go(func() {
				_, err := b.Append(t.Context(), h, lifecycle.Started{Kind: event.Enroll, Step: "create"})
				if err == nil {
					won.Add(1)
				} else if !errors.Is(err, bus.ErrConflict) {
					t.Errorf("append: %v", err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("%d replicas believe that the claim is theirs", won.Load())
		}
	}
}

func (s suite) manyWriters(t *testing.T) {
	t.Helper()
	b, uid := s.connect(t, "test"), s.uid("many")
	Append(t, b, uid, The(wish(uid)))
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := range 10 {
				Append(t, b, uid, seen((i+n)%2 == 0))
			}
		})
	}
	wg.Wait()
	Await(t, "revision 41", func() bool { return Load(t, b, uid).Rev == 41 })
}

func (s suite) snapshots(t *testing.T) {
	t.Helper()
	b, uid := s.connect(t, "test"), s.uid("snapshots")
	Append(t, b, uid, The(wish(uid)), seen(true), seen(false), seen(true))
	Await(t, "all snapshots", func() bool {
		hosts, err := b.Snapshots(t.Context(), Load(t, b, uid), 1)
		if err != nil {
			t.Fatal(err)
		}
		return len(hosts) == 3 && *hosts[0].Power.On && !*hosts[1].Power.On && *hosts[2].Power.On
	})
}

func (s suite) operation(t *testing.T) {
	t.Helper()
	b := s.connect(t, "test")
	workers, o := make([]*Worker, 3), &outside{}
	for i := range workers {
		workers[i] = s.worker("operation", o)
		Serve(t, s.connect(t, "registrar"), workers[i])
	}
	const hosts = 20
	for i := range hosts {
		uid := s.uid(fmt.Sprintf("operation-%d", i))
		Append(t, b, uid, The(wish(uid)))
	}
	for i := range hosts {
		AwaitFact(t, b, s.uid(fmt.Sprintf("operation-%d", i)), event.SectionRegistration, "enroll.succeeded")
	}
	writes := 0
	for _, w := range workers {
		writes += len(w.Writes())
	}
	if writes != 2*hosts {
		t.Errorf("%d writes, want %d", writes, 2*hosts)
	}
}

func (s suite) claimRests(t *testing.T) {
	t.Helper()
	b, uid := s.connect(t, "registrar"), s.uid("rests")
	w := s.worker("rests", &outside{})
	do := w.OnDo
	w.OnDo = func(ctx context.Context, h lifecycle.Host, x lifecycle.Write) error {
		if len(w.Writes()) == 1 {
			return context.DeadlineExceeded
		}
		return do(ctx, h, x)
	}
	Serve(t, b, w)
	Append(t, b, uid, The(wish(uid)))
	AwaitFact(t, b, uid, event.SectionRegistration, "enroll.succeeded")
	if got, least := Gap(w.Writes(), 0, 1), s.timing.Quarantine-s.timing.Window; got < least {
		t.Errorf("written again after %s, want at least %s", got, least)
	}
}

func (s suite) backOff(t *testing.T) {
	t.Helper()
	b, uid := s.connect(t, "registrar"), s.uid("backoff")
	w := s.worker("backoff", &outside{})
	do := w.OnDo
	w.OnDo = func(ctx context.Context, h lifecycle.Host, x lifecycle.Write) error {
		if h.Intent.Hash == "2" {
			return do(ctx, h, x)
		}
		return &lifecycle.ProblemError{Problem: event.Problem{Type: v1alpha1.RegistrationError, Message: "wrong password"}}
	}
	Serve(t, b, w)
	Append(t, b, uid, The(wish(uid)))
	AwaitFact(t, b, uid, event.SectionRegistration, "enroll.failed")
	Append(t, b, uid, func(h lifecycle.Host) lifecycle.Fact {
		f := lifecycle.Wish{Fact: event.Changed, Intent: h.Intent}
		f.Intent.Hash = "2"
		return f
	})
	AwaitFact(t, b, uid, event.SectionRegistration, "enroll.succeeded")
}

func (s suite) deadLetter(t *testing.T) {
	t.Helper()
	b, uid := s.connect(t, "registrar"), s.uid("dead")
	var fixed atomic.Bool
	w := s.worker("dead", &outside{})
	step := w.OnStep
	w.OnStep = func(h lifecycle.Host) (lifecycle.Step, error) {
		if !fixed.Load() && h.UID == uid {
			panic("a fault of ours")
		}
		return step(h)
	}
	Serve(t, b, w)
	Append(t, b, uid, The(wish(uid)))
	var letter bus.DeadLetter
	Await(t, "a dead letter", func() bool {
		for _, l := range DeadLetters(t, b) {
			if l.UID == uid {
				letter = l
			}
		}
		return letter.UID == uid
	})
	fixed.Store(true)
	if err := b.ReplayDeadLetter(t.Context(), letter.ID); err != nil {
		t.Fatal(err)
	}
	AwaitFact(t, b, uid, event.SectionRegistration, "enroll.succeeded")
}

func (s suite) tick(t *testing.T) {
	t.Helper()
	ticks := make(chan time.Time, 100)
	for range 3 {
		Serve(t, s.connect(t, "powermonitor"), &Worker{
			Own: event.SectionPower, OnCares: func(bus.Trigger) bool { return false },
			OnTick: func(name string) error {
				if name == bus.TickPower {
					ticks <- time.Now() //nolint:forbidigo // tests measure real time
				}
				return nil
			},
		})
	}
	<-ticks // one that waited for us
	last := <-ticks
	for range 2 {
		next := <-ticks
		if d := next.Sub(last); d < s.timing.Power/2 {
			t.Errorf("two ticks within %s", d)
		}
		last = next
	}
}

func (s suite) documents(t *testing.T) {
	t.Helper()
	b, uid := s.connect(t, "test"), s.uid("documents")
	digest, err := b.PutData(t.Context(), uid, event.DataHardware, map[string]int{"cpus": 8})
	if err != nil {
		t.Fatal(err)
	}
	Await(t, "the document", func() bool {
		var got map[string]int
		err := b.GetData(t.Context(), uid, event.DataHardware, digest, &got)
		return err == nil && got["cpus"] == 8
	})
}

func (s suite) history(t *testing.T) {
	t.Helper()
	b, uid := s.connect(t, "test"), s.uid("history")
	Append(t, b, uid, The(wish(uid)), seen(true))
	Await(t, "both events", func() bool {
		n := 0
		for e, err := range b.History(t.Context(), bus.HistoryFilter{UID: uid}, false) {
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Validate(); err != nil {
				t.Errorf("event %s: %v", e.ID(), err)
			}
			n++
		}
		return n == 2
	})
}

func (s suite) purge(t *testing.T) {
	t.Helper()
	b, uid := s.connect(t, "test"), s.uid("purge")
	Append(t, b, uid, The(wish(uid)), seen(true))
	if err := b.Purge(t.Context(), uid); err != nil {
		t.Fatal(err)
	}
	Await(t, "the host to be gone", func() bool { return !Load(t, b, uid).Exists() })
	if h := Append(t, b, uid, The(wish(uid))); h.Rev != 1 {
		t.Errorf("it came back at revision %d", h.Rev)
	}
}
