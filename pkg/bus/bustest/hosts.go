package bustest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// patience is how long the helpers wait for what must come.
const patience = time.Minute

// Await waits until the condition holds, and fails the test if it does not in time.
func Await(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	deadline := time.Now().Add(patience) //nolint:forbidigo // tests measure real time
	for !cond() {
		if time.Now().After(deadline) { //nolint:forbidigo // tests measure real time
			tb.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Load is the host as it is now.
func Load(tb testing.TB, b *bus.Bus, uid string) lifecycle.Host {
	tb.Helper()
	h, err := b.Load(tb.Context(), uid)
	if err != nil {
		tb.Fatalf("load host %s: %v", uid, err)
	}
	return h
}

// Append appends facts to the host one after another, each made from the host
// as it is then, whoever else appends to it. A fact that is not allowed is
// tried again for a while: the read before it may have been an old one.
func Append(tb testing.TB, b *bus.Bus, uid string, facts ...func(lifecycle.Host) lifecycle.Fact) lifecycle.Host {
	tb.Helper()
	h, err := b.Load(tb.Context(), uid)
	for _, f := range facts {
		deadline := time.Now().Add(patience) //nolint:forbidigo // tests measure real time
		for {
			if err == nil {
				h, err = b.Append(tb.Context(), h, f(h))
			}
			if err == nil {
				break
			}
			var refused *lifecycle.NotAllowedError
			again := errors.Is(err, bus.ErrConflict) || errors.As(err, &refused) || transient(err)
			if !again || time.Now().After(deadline) { //nolint:forbidigo // tests measure real time
				tb.Fatalf("append to host %s: %v", uid, err)
			}
			time.Sleep(2 * time.Millisecond)
			h, err = b.Load(tb.Context(), uid)
		}
	}
	return h
}

// transient errors go by themselves when a server dies or a leader is chosen.
func transient(err error) bool {
	return errors.Is(err, bus.ErrUnanswered) || errors.Is(err, bus.ErrUnavailable)
}

// The is a fact for Append that does not depend on the host.
func The(f lifecycle.Fact) func(lifecycle.Host) lifecycle.Fact {
	return func(lifecycle.Host) lifecycle.Fact { return f }
}

// AwaitFact waits until the host's newest fact of a section is this one.
func AwaitFact(tb testing.TB, b *bus.Bus, uid string, s event.Section, fact string) lifecycle.Host {
	tb.Helper()
	var h lifecycle.Host
	Await(tb, fmt.Sprintf("%s.%s of host %s", s, fact, uid), func() bool {
		var err error
		h, err = b.Load(tb.Context(), uid)
		if err != nil && !transient(err) {
			tb.Fatalf("load host %s: %v", uid, err)
		}
		return h.Newest(s).Fact == fact
	})
	return h
}

// Facts are the names of a host's facts, the oldest first.
func Facts(tb testing.TB, b *bus.Bus, uid string) []string {
	tb.Helper()
	hosts, err := b.Snapshots(tb.Context(), Load(tb, b, uid), 0)
	if err != nil {
		tb.Fatalf("snapshots of host %s: %v", uid, err)
	}
	names := make([]string, 0, len(hosts))
	for _, h := range hosts {
		section, m := h.NewestFact()
		names = append(names, string(section)+"."+m.Fact)
	}
	return names
}

// Clean fails the test if the auditor finds anything.
func Clean(tb testing.TB, b *bus.Bus) {
	tb.Helper()
	report, err := b.Audit(tb.Context())
	if err != nil {
		tb.Fatalf("audit: %v", err)
	}
	for _, f := range report.Findings {
		tb.Errorf("audit: %s", f)
	}
}

// DeadLetters are the dead letters there are.
func DeadLetters(tb testing.TB, b *bus.Bus) []bus.DeadLetter {
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
