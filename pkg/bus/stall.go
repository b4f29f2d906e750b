package bus

import (
	"context"
	"errors"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Waker is a Worker that looks at more when it is woken than when something
// happened to the host.
type Waker interface {
	// Woken is Step on a wake.
	Woken(ctx context.Context, h lifecycle.Host) (lifecycle.Step, error)
}

// step asks the worker what is next.
func (v *visit) step(ctx context.Context) (lifecycle.Step, error) {
	ask := v.worker.Step
	if w, ok := v.worker.(Waker); ok && v.t.Wake {
		ask = w.Woken
	}
	step, err := ask(ctx, v.h)
	if err == nil && v.h.Work(v.section).Stalled != nil {
		step = v.recovered(step)
	}
	return step, err
}

// recovered tells that what had stalled goes on, unless the step tells it anyway.
func (v *visit) recovered(step lifecycle.Step) lifecycle.Step {
	switch step.(type) {
	case lifecycle.Nothing, lifecycle.Wait:
		return lifecycle.Record{Fact: lifecycle.Recovered{In: v.section}}
	default:
		return step
	}
}

// hindered is the verdict on an error of our own side, or of a service beside us.
// A host that its backend does not know is the registrar's to look at. What goes
// on for longer is told once, on hosts that wait for something.
func (v *visit) hindered(ctx context.Context, err error) verdict {
	switch {
	case errors.Is(err, lifecycle.ErrUnregistered):
		return trouble(errors.Join(err, v.b.Wake(ctx, event.SectionRegistration.Writer(), v.t.UID, "unregistered")))
	case v.mayTell():
		return v.record(ctx, lifecycle.Stalled{In: v.section, Message: brief(err)})
	default:
		return trouble(err)
	}
}

// mayTell reports whether trouble is to be told now: it is news, somebody waits
// for the host, and there were some tries already.
func (v *visit) mayTell() bool {
	section, newest := v.h.NewestFact()
	lasts := v.b.clock().Sub(newest.At) > 2*v.b.cfg.Timing.RetryMax
	return lasts && section != "" && v.h.Work(v.section).Stalled == nil && !settled(v.h, lifecycle.Stage(v.h))
}

// maxTold bounds a text that is for a status.
const maxTold = 512

func brief(err error) string {
	text := []rune(err.Error())
	if len(text) > maxTold {
		return string(text[:maxTold]) + "…"
	}
	return string(text)
}
