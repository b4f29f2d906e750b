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
			w := bustest.Registrar(enrollIn("create"))
			bustest.Serve(t, b, w)
			intrude(t, nc, "bad", c.section, c.body, c.header)
			bustest.Append(t, b, "u1", bustest.The(created("u1")))
			bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
			bustest.Await(t, "a dead letter", func() bool { return len(bustest.DeadLetters(t, b)) == 1 })
			l := bustest.DeadLetters(t, b)[0]
			if l.Service != "registrar" || l.UID != "bad" || l.Reason != c.reason || l.Sequence != 1 || string(l.Body) != c.body || l.Error == "" || l.Attempts != 1 {
				t.Errorf("dead letter %+v", l)
			}
			bustest.Await(t, "the message to be done with", func() bool { return pending(t, js, "registrar") == 0 })
			bustest.Await(t, "the server's word of it", func() bool { return messages(t, js, bus.StreamAdvisory) > 0 })
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
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	intrude(t, nc, "u1", event.SectionPower, `{"state":7}`, nil)
	w := bustest.Registrar(enrollIn("create"))
	bustest.Serve(t, b, w)
	bustest.Await(t, "a dead letter", func() bool { return len(bustest.DeadLetters(t, b)) == 1 })
	if got := bustest.DeadLetters(t, b)[0].Sequence; got != 2 {
		t.Errorf("message %d was set aside, want the bad one alone", got)
	}
	if len(w.Steps()) > 0 {
		t.Error("the host was looked at")
	}
	if err := b.Purge(t.Context(), "u1"); err != nil { // as the error says
		t.Fatal(err)
	}
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
}

func TestANewerClaimRestsBeforeItIsLeftToNewerReaders(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "registrar")
	nc, js := raw(t, s)
	bustest.Serve(t, b, bustest.Registrar(enrollIn("create")))
	began := time.Now()
	intrude(t, nc, "u1", event.SectionRegistration, `{"state":{}}`, map[string]string{
		"ce-minreader": "7", "ce-type": event.Type(event.SectionRegistration, "enroll.claimed"),
	})
	bustest.Await(t, "the old reader to give it up", func() bool { return counter(t, b, "metalbus_schema_newer_total") > 0 })
	if took := time.Since(began); took < bustest.Timing().Quarantine*9/10 {
		t.Errorf("given up after %s: a newer reader would act upon the claim", took)
	}
	if pending(t, js, "registrar") != 1 || len(bustest.DeadLetters(t, b)) != 0 {
		t.Error("the message is not kept for newer readers")
	}
}

func TestAPanicIsSurvived(t *testing.T) {
	b := bustest.New(t)
	for name, c := range map[string]func(w *bustest.Worker){
		"in Step":  func(w *bustest.Worker) { w.OnStep = panicFor("bad", w.OnStep) },
		"in Cares": func(w *bustest.Worker) { w.OnCares = func(t bus.Trigger) bool { return t.UID != "bad" || boom() } },
	} {
		t.Run(name, func(t *testing.T) {
			b = bustest.New(t)
			w := bustest.Registrar(enrollIn("create"))
			c(w)
			bustest.Serve(t, b, w)
			bustest.Append(t, b, "bad", bustest.The(created("bad")))
			bustest.Append(t, b, "u1", bustest.The(created("u1")))
			bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
			bustest.Await(t, "a dead letter", func() bool { return len(bustest.DeadLetters(t, b)) == 1 })
			if l := bustest.DeadLetters(t, b)[0]; l.Reason != "panic" || l.Attempts != 5 || l.UID != "bad" {
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
	w := bustest.Registrar(enrollIn("create"))
	w.OnDo = func(context.Context, lifecycle.Host, lifecycle.Write) error {
		if len(w.Writes()) == 1 {
			boom()
		}
		return nil
	}
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	if writes := w.Writes(); len(writes) != 2 || bustest.Gap(writes, 0, 1) < bustest.Rest() {
		t.Errorf("writes %v: want two, a quarantine apart", writes)
	}
}

func TestAMessageThatKillsProcessesIsSetAside(t *testing.T) {
	s := bustest.Server(t)
	dir := t.TempDir()
	b := bustest.On(t, s, "test")
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	die := func() { // what a process leaves that dies with message 1 in hand
		var note [24]byte
		binary.LittleEndian.PutUint64(note[8:], 1)
		if err := os.WriteFile(filepath.Join(dir, "registrar.inhand"), note[:], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start := func(step func(lifecycle.Host) (lifecycle.Step, error)) (*bustest.Worker, func()) {
		w := bustest.Registrar(step)
		replica := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "registrar", Timing: bustest.Timing(), StateDir: dir}, bus.WithServer(s))
		return w, bustest.Serve(t, replica, w)
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
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	bustest.Await(t, "the message to be cleared, since it killed nobody", func() bool { return deaths() == "" })
	stop()

	bustest.Append(t, b, "u2", bustest.The(created("u2")))
	for n := range 3 {
		die()
		_, stop = start(func(h lifecycle.Host) (lifecycle.Step, error) { return hold(h) })
		bustest.Await(t, "another death to be counted", func() bool { return deaths() != "" && deaths() >= string(rune('1'+n)) })
		stop()
	}
	if len(w.Steps()) == 0 || deaths() != "3" {
		t.Errorf("%q deaths counted, want 3", deaths())
	}
}

func TestACondemnedMessageIsNotTouched(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "test")
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	_, js := raw(t, s)
	kv, err := js.KeyValue(t.Context(), bus.BucketCrashed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), bustest.Cluster+".registrar.1", []byte("3")); err != nil {
		t.Fatal(err)
	}
	w := bustest.Registrar(enrollIn("create"))
	replica := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "registrar", Timing: bustest.Timing(), StateDir: t.TempDir()}, bus.WithServer(s))
	bustest.Serve(t, replica, w)
	bustest.Await(t, "a dead letter", func() bool { return len(bustest.DeadLetters(t, b)) == 1 })
	if l := bustest.DeadLetters(t, b)[0]; l.Reason != "deadly" || len(w.Steps()) != 0 {
		t.Errorf("dead letter %+v after %d steps", l, len(w.Steps()))
	}
}

func TestDeadLettersAreReplayedByAWake(t *testing.T) {
	b := bustest.New(t)
	fixed := atomic.Bool{}
	w := bustest.Registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
		if !fixed.Load() {
			boom()
		}
		return enrollIn("create")(h)
	})
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.Append(t, b, "u2", bustest.The(created("u2")))
	bustest.Await(t, "two dead letters", func() bool { return len(bustest.DeadLetters(t, b)) == 2 })
	all := bustest.DeadLetters(t, b)
	if l, err := b.DeadLetter(t.Context(), all[0].ID); err != nil || l.UID != all[0].UID {
		t.Errorf("dead letter %+v, %v", l, err)
	}
	fixed.Store(true)
	if err := b.ReplayDeadLetter(t.Context(), all[0].ID); err != nil {
		t.Fatal(err)
	}
	bustest.AwaitFact(t, b, all[0].UID, event.SectionRegistration, "enroll.succeeded")
	if err := b.DropDeadLetter(t.Context(), all[1].ID); err != nil {
		t.Fatal(err)
	}
	if left := bustest.DeadLetters(t, b); len(left) != 0 {
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

// A stream takes a thousand consumers: whoever reads one often must not use them up.
func TestReadingLeavesNoConsumers(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "test")
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.Serve(t, b, bustest.Registrar(func(lifecycle.Host) (lifecycle.Step, error) { boom(); return nil, nil }))
	bustest.Await(t, "a dead letter", func() bool { return len(bustest.DeadLetters(t, b)) == 1 })
	for range 5 {
		bustest.DeadLetters(t, b)
		bustest.Clean(t, b)
	}
	_, js := raw(t, s)
	for _, name := range []string{bus.StreamDead, bus.StreamHost} {
		stream, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for c := range stream.ListConsumers(t.Context()).Info() {
			if c.Config.Durable == "" {
				t.Errorf("stream %s has kept consumer %s", name, c.Name)
			}
		}
	}
}
