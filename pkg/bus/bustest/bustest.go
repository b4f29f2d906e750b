// Package bustest helps to test against the bus: a NATS server inside of the
// process, a bus on it with short waits, and a suite that every NATS server
// which metalbus is to run on passes.
package bustest

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/embedded"
)

// Cluster is the cluster token of test buses.
const Cluster = "test"

// Timing are waits for tests: those of production, a few tens of times shorter
// where nothing outside sets a limit.
func Timing() bus.Timing {
	return bus.Timing{
		Window: 300 * time.Millisecond, Quarantine: 800 * time.Millisecond, AckWait: time.Second,
		Handling: 700 * time.Millisecond, Reply: 2 * time.Second,
		Stale: 10 * time.Millisecond, Conflict: 3 * time.Millisecond, Refused: 50 * time.Millisecond,
		Poll: 10 * time.Millisecond,
		Busy: 20 * time.Millisecond, BusyMax: 100 * time.Millisecond,
		BackOff: 25 * time.Millisecond, BackOffMax: time.Second,
		Retry: 20 * time.Millisecond, RetryMax: 200 * time.Millisecond, Panic: 50 * time.Millisecond,
		Resume: 1200 * time.Millisecond, Forgotten: 1500 * time.Millisecond,
		Resync: time.Second, Power: time.Second,
	}
}

// Patient are waits for tests against servers of their own, which take their
// time on a busy machine.
func Patient() bus.Timing {
	t := Timing()
	t.Window, t.Quarantine, t.AckWait, t.Handling = time.Second, 2500*time.Millisecond, 3*time.Second, 2*time.Second
	t.Reply, t.Resume, t.Forgotten = 3*time.Second, 4*time.Second, 5*time.Second
	return t
}

// Rest is the least time between two writes of one step of an operation, if
// the first was not answered: the quarantine, less the window in which the
// first may have been made.
func Rest() time.Duration { return Timing().Quarantine - Timing().Window }

// Server starts a server for the time of the test.
func Server(tb testing.TB) *embedded.Server {
	tb.Helper()
	s, err := embedded.Start(embedded.Config{Dir: tb.TempDir()})
	if err != nil {
		tb.Fatalf("start NATS: %v", err)
	}
	tb.Cleanup(s.Stop)
	return s
}

// New is a bus on a server of its own, initialized, with the waits of Timing.
func New(tb testing.TB, opts ...bus.Option) *bus.Bus {
	tb.Helper()
	return On(tb, Server(tb), "test", opts...)
}

// On is another connection to a server, under the name of a service. The bus is
// initialized if it is not yet.
func On(tb testing.TB, s nats.InProcessConnProvider, name string, opts ...bus.Option) *bus.Bus {
	tb.Helper()
	b := Connect(tb, bus.Config{Cluster: Cluster, Name: name, Timing: Timing()}, append(opts, bus.WithServer(s))...)
	if _, err := b.Init(tb.Context(), bus.InitOptions{Replicas: 1, MaxBytes: 1 << 30, Memory: true}); err != nil {
		tb.Fatalf("initialize the bus: %v", err)
	}
	return b
}

// Connect connects for the time of the test.
func Connect(tb testing.TB, cfg bus.Config, opts ...bus.Option) *bus.Bus {
	tb.Helper()
	b, err := bus.Connect(tb.Context(), cfg, opts...)
	if err != nil {
		tb.Fatalf("connect to the bus: %v", err)
	}
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Errorf("close the bus: %v", err)
		}
	})
	return b
}

// Grep reports which subjects of all streams hold the text, in a header or in
// the data: a secret that was planted must not be found.
func Grep(ctx context.Context, nc *nats.Conn, text string) ([]string, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	var found []string
	names := js.StreamNames(ctx)
	for name := range names.Name() {
		hits, err := grepStream(ctx, js, name, []byte(text))
		if err != nil {
			return found, err
		}
		found = append(found, hits...)
	}
	return found, names.Err()
}

func grepStream(ctx context.Context, js jetstream.JetStream, name string, text []byte) (found []string, err error) {
	s, err := js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	state := s.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq && state.Msgs > 0; seq++ {
		m, err := s.GetMsg(ctx, seq)
		if err != nil {
			continue // deleted
		}
		if bytes.Contains(m.Data, text) || headerHolds(m.Header, text) {
			found = append(found, name+" "+m.Subject)
		}
	}
	return found, nil
}

func headerHolds(h nats.Header, text []byte) bool {
	for _, values := range h {
		for _, v := range values {
			if bytes.Contains([]byte(v), text) {
				return true
			}
		}
	}
	return false
}
