package powermonitor

import (
	"fmt"
	"slices"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// turn is whether the powermonitor has to look at a host, or a step that needs
// no look at the outside.
func turn(h lifecycle.Host) (look bool, step lifecycle.Step) {
	stage := lifecycle.Stage(h)
	switch {
	case h.Intent.Paused:
		return false, lifecycle.Nothing{}
	case stage == v1alpha1.StatePoweringOffBeforeDelete:
		return leave(h)
	case lifecycle.Apart(h) || !steady(stage):
		return false, stop(h, "the host is no longer at rest")
	case !lifecycle.Reachable(h) && h.Power.Op == nil:
		return false, lifecycle.Nothing{}
	case stage == v1alpha1.StateAvailable && h.Power.Op == nil && claimedByOthers(h):
		return false, lifecycle.Nothing{}
	default:
		return true, nil
	}
}

func steady(s v1alpha1.ProvisioningState) bool {
	return s == v1alpha1.StateAvailable || lifecycle.Used(s)
}

// claimedByOthers: an available host that is about to be used, prepared or
// inspected needs no power of its own before that.
func claimedByOthers(h lifecycle.Host) bool {
	return (lifecycle.WantsImage(h) && h.Provisioning.Problem == nil) || lifecycle.WantsInspection(h) ||
		lifecycle.Unsettled(h) || h.Intent.Spec.ExternallyProvisioned
}

// leave powers a host off before its deletion, or gives that up.
func leave(h lifecycle.Host) (bool, lifecycle.Step) {
	p := h.Power
	tooOften := p.Problem != nil && (p.Failures > lifecycle.GiveUpAfter || h.Intent.ForceDelete)
	switch {
	case p.Op != nil && p.Op.Kind != event.PowerOff:
		return false, stop(h, "the host is being deleted")
	case h.Intent.Spec.DisablePowerOff:
		return false, lifecycle.Record{Fact: lifecycle.LeftOn{}}
	case tooOften:
		return false, leftOn(p.Problem.Message)
	case lifecycle.Unreachable(h):
		return false, leftOn("the host could not be reached")
	case !lifecycle.Reachable(h) && p.Op == nil:
		return false, lifecycle.Nothing{}
	default:
		return true, nil
	}
}

func leftOn(why string) lifecycle.Step {
	return lifecycle.Record{Fact: lifecycle.LeftOn{Undone: fmt.Sprintf("deleted without powering off: %s", why)}}
}

// stop gives up an operation, if one is under way.
func stop(h lifecycle.Host, reason string) lifecycle.Step {
	if op := h.Power.Op; op != nil {
		return lifecycle.Record{Fact: lifecycle.Aborted{Kind: op.Kind, Reason: reason}}
	}
	return lifecycle.Nothing{}
}

// compare says what a look at the power means: a fact to be recorded, a task,
// or nothing for now.
func compare(h lifecycle.Host, now backend.PowerState) (lifecycle.Task, lifecycle.Step) {
	want := wanted(h)
	op := h.Power.Op
	switch {
	case op != nil && op.Kind != want:
		return lifecycle.Task{}, stop(h, "the opposite is wanted now")
	case op != nil:
		return lifecycle.Task{Kind: op.Kind, Mode: op.Mode, Reason: op.Reason}, nil
	case changed(h.Power, now) != "":
		return record(lifecycle.Observed{What: changed(h.Power, now), On: now.On, Fault: now.Fault, Health: now.Health})
	case now.On != nil && !*now.On && unserved(h):
		return record(lifecycle.Served{})
	case now.On == nil || now.Fault != "":
		return lifecycle.Task{}, lifecycle.Nothing{}
	case want == event.PowerOff && (*now.On || lifecycle.Leaving(h)):
		return lifecycle.Task{Kind: want, Mode: lifecycle.OffMode(h), Reason: offReason(h)}, nil
	case want == event.Reboot:
		return lifecycle.Task{Kind: want, Mode: lifecycle.OffMode(h), Reason: offReason(h)}, nil
	case want == event.PowerOn && !*now.On:
		return lifecycle.Task{Kind: want, Reason: "spec.online is true"}, nil
	case h.Power.Problem != nil && want != "": // somebody else did what we could not
		return record(lifecycle.Switched{Kind: want, On: *now.On})
	default:
		return lifecycle.Task{}, lifecycle.Nothing{}
	}
}

// unserved reports whether a plain reboot was asked for that is not served yet.
func unserved(h lifecycle.Host) bool {
	return slices.ContainsFunc(h.Intent.Reboots, func(r event.RebootRequest) bool { return r.Key == "" && !slices.Contains(h.Power.Handled, r.ID) })
}

// changed is what a look found to be other than it was known, "" if nothing.
func changed(was event.Power, now backend.PowerState) string {
	switch {
	case now.On != nil && (was.On == nil || *was.On != *now.On):
		return event.PowerChanged
	case now.Fault != was.Fault:
		return event.FaultChanged
	case now.Health != was.Health:
		return event.HealthChanged
	default:
		return ""
	}
}

func record(f lifecycle.Fact) (lifecycle.Task, lifecycle.Step) {
	return lifecycle.Task{}, lifecycle.Record{Fact: f}
}

// wanted is the operation that would bring the host to the power that is asked
// for, "" if it may be either.
func wanted(h lifecycle.Host) event.Kind {
	switch {
	case lifecycle.Stage(h) == v1alpha1.StatePoweringOffBeforeDelete:
		return event.PowerOff
	case !lifecycle.WantsOff(h) && !h.Intent.Spec.Online:
		return "" // it must not be switched off, and need not be on
	case !lifecycle.WantsOff(h):
		return event.PowerOn
	case h.Intent.Spec.DisablePowerOff:
		return event.Reboot
	default:
		return event.PowerOff
	}
}

func offReason(h lifecycle.Host) string {
	switch {
	case lifecycle.Leaving(h):
		return "the host is being deleted"
	case !h.Intent.Spec.Online:
		return "spec.online is false"
	default:
		return "annotation " + v1alpha1.RebootAnnotationPrefix
	}
}
