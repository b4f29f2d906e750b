package bus

import (
	"context"
	"time"

	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Observer follows the hosts and writes nothing to the bus on its triggers'
// account: the projector.
type Observer interface {
	// Observe looks at the trigger's host. again above 0 asks for the trigger
	// once more after that time; an error does so with a growing delay.
	Observe(ctx context.Context, t Trigger) (again time.Duration, err error)
}

// Watch runs a service that follows every event until ctx ends. Several
// replicas share the events; those of one host come one at a time to a process.
func (b *Bus) Watch(ctx context.Context, service string, o Observer) error {
	return b.serve(ctx, service, &watch{observer: o})
}

// watch is the handler of an observer.
type watch struct{ observer Observer }

func (*watch) early(delivery) (verdict, bool) { return verdict{}, false }

func (w *watch) handle(ctx context.Context, d delivery) verdict {
	delay, err := w.observer.Observe(ctx, d.t)
	switch {
	case err != nil:
		return trouble(err)
	case delay > 0:
		return again("asked again", delay)
	default:
		return done("observed")
	}
}

func (w *watch) tick(ctx context.Context, name string) error {
	if t, ok := w.observer.(Ticker); ok {
		return t.Tick(ctx, name)
	}
	return nil
}

// forgotten: an observer has a trigger for each event, and its own resync.
func (*watch) forgotten(lifecycle.Host) bool { return false }
