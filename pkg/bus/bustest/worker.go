package bustest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Worker is a stage service by script, which remembers its calls. Set its
// functions before it is served.
type Worker struct {
	// Own is the section that it writes.
	Own event.Section
	// OnCares is nil for a worker that cares for everything.
	OnCares func(bus.Trigger) bool
	OnStep  func(lifecycle.Host) (lifecycle.Step, error)
	// OnDo is nil for writes that succeed.
	OnDo   func(context.Context, lifecycle.Host, lifecycle.Write) error
	OnTick func(name string) error

	mu     sync.Mutex
	steps  []Call
	writes []Call
}

// Call is one call of a Worker.
type Call struct {
	At   time.Time
	UID  string
	Rev  uint64
	Name string // of the write
}

// Registrar is a worker on the registration section.
func Registrar(step func(lifecycle.Host) (lifecycle.Step, error)) *Worker {
	return &Worker{Own: event.SectionRegistration, OnStep: step}
}

// Section implements bus.Worker.
func (w *Worker) Section() event.Section { return w.Own }

// Cares implements bus.Worker.
func (w *Worker) Cares(t bus.Trigger) bool { return w.OnCares == nil || w.OnCares(t) }

// Step implements bus.Worker.
func (w *Worker) Step(_ context.Context, h lifecycle.Host) (lifecycle.Step, error) {
	w.mu.Lock()
	w.steps = append(w.steps, Call{At: time.Now(), UID: h.UID, Rev: h.Rev}) //nolint:forbidigo // tests measure real time
	w.mu.Unlock()
	return w.OnStep(h)
}

// Do implements bus.Worker.
func (w *Worker) Do(ctx context.Context, h lifecycle.Host, x lifecycle.Write) error {
	w.mu.Lock()
	w.writes = append(w.writes, Call{At: time.Now(), UID: h.UID, Rev: h.Rev, Name: x.Name}) //nolint:forbidigo // tests measure real time
	w.mu.Unlock()
	if w.OnDo == nil {
		return nil
	}
	return w.OnDo(ctx, h, x)
}

// Tick implements bus.Ticker.
func (w *Worker) Tick(_ context.Context, name string) error {
	if w.OnTick == nil {
		return nil
	}
	return w.OnTick(name)
}

// Steps are the calls of Step so far.
func (w *Worker) Steps() []Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Call(nil), w.steps...)
}

// Writes are the calls of Do so far.
func (w *Worker) Writes() []Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Call(nil), w.writes...)
}

// Gap is the time between two calls.
func Gap(calls []Call, i, j int) time.Duration { return calls[j].At.Sub(calls[i].At) }

// Serve runs a worker until the test ends, or stop is called.
func Serve(tb testing.TB, b *bus.Bus, w bus.Worker) (stop func()) {
	tb.Helper()
	return Background(tb, func(ctx context.Context) error { return b.Serve(ctx, w) })
}

// Watch runs an observer until the test ends, or stop is called.
func Watch(tb testing.TB, b *bus.Bus, service string, o bus.Observer) (stop func()) {
	tb.Helper()
	return Background(tb, func(ctx context.Context) error { return b.Watch(ctx, service, o) })
}

// Background runs a function until the test ends, or stop is called, and fails
// the test if it ends with an error or not at all.
func Background(tb testing.TB, run func(context.Context) error) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				tb.Errorf("serve: %v", err)
			}
		case <-time.After(patience):
			tb.Error("serve did not end")
		}
	})
	tb.Cleanup(stop)
	return stop
}
