package inspector

import (
	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// decide says what the inspector's turn is for a host: a task, or a step that
// needs no look at the outside.
func decide(h lifecycle.Host) (lifecycle.Task, lifecycle.Step) {
	stage := lifecycle.Stage(h)
	inspecting := stage == v1alpha1.StateInspecting
	switch op := h.Inspection.Op; {
	case h.Intent.Paused || !h.Exists():
		return rest()
	case op != nil && (!inspecting || h.Intent.InspectionDisabled || lifecycle.Apart(h)):
		return record(lifecycle.Aborted{Kind: event.Inspect, Reason: "the inspection is no longer wanted"})
	case op != nil && lifecycle.Orphaned(h):
		return record(lifecycle.Aborted{Kind: event.Inspect, Reason: "the backend lost the node"})
	case op != nil:
		return inspect(op.Reason)
	case supplied(h):
		return lifecycle.Task{}, nil
	case lifecycle.Apart(h):
		return rest()
	case !h.Inspection.Done && h.Intent.InspectionDisabled && stage == v1alpha1.StatePreparing:
		return record(lifecycle.Skipped{})
	case !lifecycle.Reachable(h), lifecycle.Refused(h, v1alpha1.InspectionError):
		return rest()
	case inspecting:
		return inspect("the hardware is not known yet")
	case stage == v1alpha1.StateAvailable && lifecycle.WantsInspection(h):
		return inspect("annotation " + v1alpha1.InspectAnnotationPrefix)
	default:
		return rest()
	}
}

// supplied reports whether the user gave hardware details that are to be used:
// they serve a host that has none, and always where inspection is disabled.
func supplied(h lifecycle.Host) bool {
	i, known := h.Intent, h.Inspection
	return i.Hardware != "" && i.Hardware != known.Digest && (known.Digest == "" || i.InspectionDisabled)
}

func rest() (lifecycle.Task, lifecycle.Step) { return lifecycle.Task{}, lifecycle.Nothing{} }

func record(f lifecycle.Fact) (lifecycle.Task, lifecycle.Step) {
	return lifecycle.Task{}, lifecycle.Record{Fact: f}
}

func inspect(reason string) (lifecycle.Task, lifecycle.Step) {
	return lifecycle.Task{Kind: event.Inspect, Reason: reason}, nil
}
