package lifecycle

import (
	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Task is an operation that a service wants brought to its end.
type Task struct {
	Kind   event.Kind
	Mode   v1alpha1.RebootMode
	Reason string
}

// Next is the step that follows from how a task stands. done says which fact
// its end is.
func Next(t Task, o Outlook, done func(Result) Fact) Step {
	switch o := o.(type) {
	case Finished:
		return Record{Fact: done(o.Result)}
	case Underway:
		return Wait{For: o.For, Every: o.Every}
	case Needs:
		return Write{Kind: t.Kind, Name: o.Write, Mode: t.Mode, Reason: t.Reason}
	case Broken:
		return Record{Fact: Failed{Kind: t.Kind, Problem: o.Problem}}
	default:
		return Nothing{}
	}
}

// GiveUpAfter is how many failures in a row end the attempts to undo a host
// that has to go.
const GiveUpAfter = 3

// Reachable reports whether the backend holds the host and its BMC accepts the
// credentials that are asked for now. Where not, it is the registrar's turn,
// and the others wait.
func Reachable(h Host) bool {
	r := h.Registration
	return r.Registered && !r.Lost && !r.Detached && r.Problem == nil && SameCredentials(r.Good, Credentials(h.Intent))
}

// Unreachable reports whether the host has to go and its BMC or backend has
// been tried in vain often enough.
func Unreachable(h Host) bool {
	return Leaving(h) && !Reachable(h) && (h.Registration.Failures > GiveUpAfter || h.Intent.ForceDelete)
}

// OffMode is how the host is to be switched off: hard where somebody asked for
// it, where a softer try failed, or before it is deleted.
func OffMode(h Host) v1alpha1.RebootMode {
	if Stage(h) == poweringOff || h.Power.Failures > 0 {
		return v1alpha1.RebootModeHard
	}
	for _, r := range h.Intent.Reboots {
		if r.Mode == v1alpha1.RebootModeHard {
			return v1alpha1.RebootModeHard
		}
	}
	return v1alpha1.RebootModeSoft
}
