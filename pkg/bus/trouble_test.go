package bus_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func letters(tb testing.TB, b *bus.Bus) []bus.DeadLetter {
	tb.Helper()
	var all []bus.DeadLetter
	for l, err := range b.DeadLetters(tb.Context()) {
		if err != nil {
			tb.Fatalf("dead letters: %v", err)
		}
		all = append(all, l)
	}
	return all
}

func TestPoisonIsSetAsideAndDelaysNobody(t *testing.T) {
	for name, c := range map[string]struct {
		section event.Section
		body    string
		header  map[string]string
		reason  string
	}{
		"bad JSON":                   {event.SectionIntent, `{"state":`, nil, "unreadable"},
		"a section of somebody else": {event.SectionPower, `{"state":{}}`, map[string]string{"ce-source": "/metal/test/evil"}, "unreadable"},
		"no revision":                {event.SectionIntent, `{"state":{}}`, map[string]string{"ce-hostrev": ""}, "unreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			s := bustest.Server(t)
			b := bustest.On(t, s, "registrar")
			nc, js := raw(t, s)
			w := registrar(enrollIn("create"))
			serve(t, b, w)
			intrude(t, nc, "bad", c.section, c.body, c.header)
			mustAppend(t, b, "u1", the(created("u1")))
			awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
			await(t, "a dead letter", func() bool { return len(letters(t, b)) == 1 })
			l := letters(t, b)[0]
			if l.Service != "registrar" || l.UID != "bad" || l.Reason != c.reason || l.Sequence != 1 || string(l.Body) != c.body || l.Error == "" || l.Attempts != 1 {
				t.Errorf("dead letter %+v", l)
			}
			await(t, "the message to be done with", func() bool { return pending(t, js, "registrar") == 0 })
			await(t, "the server's word of it", func() bool { return messages(t, js, bus.StreamAdvisory) > 0 })
		})
	}
}

func messages(tb testing.TB, js jetstream.JetStream, stream string) uint64 {
	tb.Helper()
	s, err := js.Stream(tb.Context(), stream)
	if err != nil {
		tb.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

func TestAHostWithABadEventIsLeftAlone(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "registrar")
	nc, _ := raw(t, s)
	mustAppend(t, b, "u1", the(created("u1")))
	intrude(t, nc, "u1", event.SectionPower, `{"state":7}`, nil)
	w := registrar(enrollIn("create"))
	serve(t, b, w)
	await(t, "a dead letter", func() bool { return len(letters(t, b)) == 1 })
	if got := letters(t, b)[0].Sequence; got != 2 {
		t.Errorf("message %d was set aside, want the bad one alone", got)
	}
	if len(w.stepped()) > 0 {
		t.Error("the host was looked at")
	}
	if err := b.Purge(t.Context(), "u1"); err != nil { // as the error says
		t.Fatal(err)
	}
	mustAppend(t, b, "u1", the(created("u1")))
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
}

func TestANewerClaimRestsBeforeItIsLeftToNewerReaders(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "registrar")
	nc, js := raw(t, s)
	serve(t, b, registrar(enrollIn("create")))
	began := time.Now()
	intrude(t, nc, "u1", event.SectionRegistration, `{"state":{}}`, map[string]string{
		"ce-minreader": "7", "ce-type": event.Type(event.SectionRegistration, "enroll.claimed"),
	})
	await(t, "the old reader to give it up", func() bool { return counter(t, b, "metalbus_schema_newer_total") > 0 })
	if took := time.Since(began); took < bustest.Timing().Quarantine*9/10 {
		t.Errorf("given up after %s: a newer reader would act upon the claim", took)
	}
	if pending(t, js, "registrar") != 1 || len(letters(t, b)) != 0 {
		t.Error("the message is not kept for newer readers")
	}
}

func TestAPanicIsSurvived(t *testing.T) {
	b := bustest.New(t)
	for name, c := range map[string]func(w *worker){
		"in Step":  func(w *worker) { w.step = panicFor("bad", w.step) },
		"in Cares": func(w *worker) { w.cares = func(t bus.Trigger) bool { return t.UID != "bad" || boom() } },
	} {
		t.Run(name, func(t *testing.T) {
			b = bustest.New(t)
			w := registrar(enrollIn("create"))
			c(w)
			serve(t, b, w)
			mustAppend(t, b, "bad", the(created("bad")))
			mustAppend(t, b, "u1", the(created("u1")))
			awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
			await(t, "a dead letter", func() bool { return len(letters(t, b)) == 1 })
			if l := letters(t, b)[0]; l.Reason != "panic" || l.Attempts != 5 || l.UID != "bad" {
				t.Errorf("dead letter %+v", l)
			}
		})
	}
}

func boom() bool { panic("boom") }

func panicFor(uid string, step func(lifecycle.Host) (lifecycle.Step, error)) func(lifecycle.Host) (lifecycle.Step, error) {
	return func(h lifecycle.Host) (lifecycle.Step, error) {
		if h.UID == uid {
			boom()
		}
		return step(h)
	}
}

func TestAPanicInAWriteRestsLikeAnyClaim(t *testing.T) {
	b := bustest.New(t)
	w := registrar(enrollIn("create"))
	w.do = func(context.Context, lifecycle.Host, lifecycle.Write) error {
		if len(w.wrote()) == 1 {
			boom()
		}
		return nil
	}
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	if writes := w.wrote(); len(writes) != 2 || gap(writes, 0, 1) < bustest.Timing().Quarantine*9/10 {
		t.Errorf("writes %v: want two, a quarantine apart", writes)
	}
}

func TestAMessageThatKillsProcessesIsSetAside(t *testing.T) {
	s := bustest.Server(t)
	dir := t.TempDir()
	b := bustest.On(t, s, "test")
	mustAppend(t, b, "u1", the(created("u1")))
	die := func() { // what a process leaves that dies with message 1 in hand
		var note [24]byte
		binary.LittleEndian.PutUint64(note[8:], 1)
		if err := os.WriteFile(filepath.Join(dir, "registrar.inhand"), note[:], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start := func(step func(lifecycle.Host) (lifecycle.Step, error)) (*worker, func()) {
		w := registrar(step)
		replica := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "registrar", Timing: bustest.Timing(), StateDir: dir}, bus.WithServer(s))
		return w, serve(t, replica, w)
	}
	_, js := raw(t, s)
	kv, err := js.KeyValue(t.Context(), bus.BucketCrashed)
	if err != nil {
		t.Fatal(err)
	}
	deaths := func() string {
		e, err := kv.Get(t.Context(), bustest.Cluster+".registrar.1")
		if err != nil {
			return ""
		}
		return string(e.Value())
	}
	hold := func(lifecycle.Host) (lifecycle.Step, error) { return nil, errors.New("not yet") }

	die()
	w, stop := start(enrollIn("create"))
	awaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	await(t, "the message to be cleared, since it killed nobody", func() bool { return deaths() == "" })
	stop()

	mustAppend(t, b, "u2", the(created("u2")))
	for n := range 3 {
		die()
		_, stop = start(func(h lifecycle.Host) (lifecycle.Step, error) { return hold(h) })
		await(t, "another death to be counted", func() bool { return deaths() != "" && deaths() >= string(rune('1'+n)) })
		stop()
	}
	if len(w.stepped()) == 0 || deaths() != "3" {
		t.Errorf("%q deaths counted, want 3", deaths())
	}
}

func TestACondemnedMessageIsNotTouched(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "test")
	mustAppend(t, b, "u1", the(created("u1")))
	_, js := raw(t, s)
	kv, err := js.KeyValue(t.Context(), bus.BucketCrashed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), bustest.Cluster+".registrar.1", []byte("3")); err != nil {
		t.Fatal(err)
	}
	w := registrar(enrollIn("create"))
	replica := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "registrar", Timing: bustest.Timing(), StateDir: t.TempDir()}, bus.WithServer(s))
	serve(t, replica, w)
	await(t, "a dead letter", func() bool { return len(letters(t, b)) == 1 })
	if l := letters(t, b)[0]; l.Reason != "deadly" || len(w.stepped()) != 0 {
		t.Errorf("dead letter %+v after %d steps", l, len(w.stepped()))
	}
}

func TestDeadLettersAreReplayedByAWake(t *testing.T) {
	b := bustest.New(t)
	fixed := atomic.Bool{}
	w := registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
		if !fixed.Load() {
			boom()
		}
		return enrollIn("create")(h)
	})
	serve(t, b, w)
	mustAppend(t, b, "u1", the(created("u1")))
	mustAppend(t, b, "u2", the(created("u2")))
	await(t, "two dead letters", func() bool { return len(letters(t, b)) == 2 })
	all := letters(t, b)
	if l, err := b.DeadLetter(t.Context(), all[0].ID); err != nil || l.UID != all[0].UID {
		t.Errorf("dead letter %+v, %v", l, err)
	}
	fixed.Store(true)
	if err := b.ReplayDeadLetter(t.Context(), all[0].ID); err != nil {
		t.Fatal(err)
	}
	awaitFact(t, b, all[0].UID, event.SectionRegistration, "enroll.succeeded")
	if err := b.DropDeadLetter(t.Context(), all[1].ID); err != nil {
		t.Fatal(err)
	}
	if left := letters(t, b); len(left) != 0 {
		t.Errorf("left over: %+v", left)
	}
	for name, err := range map[string]error{
		"show": second(b.DeadLetter(t.Context(), 99)), "replay": b.ReplayDeadLetter(t.Context(), all[0].ID), "drop": b.DropDeadLetter(t.Context(), all[0].ID),
	} {
		if !errors.Is(err, bus.ErrNoDeadLetter) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
