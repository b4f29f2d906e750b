package lifecycle

import (
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Task is an operation that a service wants brought to its end.
type Task struct {
	Kind   event.Kind
	Mode   v1alpha1.RebootMode
	Reason string
}

// Next is the step that follows from how a task of the host stands. done says
// which fact its end is.
//
// A host enters the state of its operation with the first write for it. Where
// there is nothing to write, it enters that state by word: each state is seen,
// and an image is on its way out as soon as that was decided. What cannot even
// be begun leaves the host where it is.
func Next(h Host, t Task, o Outlook, done func(Result) Fact) Step {
	enters := enters(h, t.Kind)
	switch o := o.(type) {
	case Finished:
		if enters {
			return Record{Fact: Begun{Kind: t.Kind, Reason: t.Reason}}
		}
		return Record{Fact: done(o.Result)}
	case Underway:
		if enters {
			return Record{Fact: Begun{Kind: t.Kind, Reason: t.Reason}}
		}
		return Wait{For: o.For, Every: o.Every}
	case Needs:
		return Write{Kind: t.Kind, Name: o.Write, Mode: t.Mode, Reason: t.Reason}
	case Broken:
		if enters && t.Kind == event.Undeploy {
			return Record{Fact: Begun{Kind: t.Kind, Reason: t.Reason}}
		}
		return Record{Fact: Failed{Kind: t.Kind, Problem: o.Problem}}
	default:
		return Nothing{}
	}
}

// enters reports whether the host changes its state by the start of the operation.
func enters(h Host, k event.Kind) bool {
	after := h
	begin(&after, k, time.Time{})
	return Stage(after) != Stage(h)
}
