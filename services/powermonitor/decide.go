package powermonitor

import (
	"slices"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// look is what the powermonitor has to ask for a host.
type look string

// The looks.
const (
	lookNowhere look = ""      // the step is known
	lookAtPower look = "power" // how the power is, and then what that means
	lookAtOff   look = "off"   // how switching off for a deletion stands

	lookAtSubscription look = "subscription" // how the next subscription stands
)

// turn is what the powermonitor has to look at, or a step that needs no look at
// the outside.
func turn(h lifecycle.Host, now time.Time) (look, lifecycle.Step) {
	stage := lifecycle.Stage(h)
	switch {
	case h.Intent.Paused:
		return lookNowhere, lifecycle.Nothing{}
	case stage == v1alpha1.StatePoweringOffBeforeDelete:
		return leave(h, now)
	case lifecycle.Apart(h) || !lifecycle.AtRest(stage):
		return lookNowhere, stop(h, "the host is no longer at rest")
	case lifecycle.Orphaned(h):
		return lookNowhere, stop(h, "the backend lost the node")
	case h.Provisioning.Op != nil: // whoever works on the host switches it too
		return lookNowhere, lifecycle.Nothing{}
	case stage == v1alpha1.StateProvisioned && h.Power.Op == nil && lifecycle.Unwanted(h):
		return lookNowhere, lifecycle.Nothing{} // it is about to be cleaned
	case !lifecycle.Reachable(h) && h.Power.Op == nil:
		return lookNowhere, lifecycle.Nothing{}
	case stage == v1alpha1.StateAvailable && h.Power.Op == nil && claimedByOthers(h):
		return lookNowhere, lifecycle.Nothing{}
	case h.Doing(event.Subscribe):
		return lookAtSubscription, nil
	default:
		return lookAtPower, nil
	}
}

// claimedByOthers: an available host that is about to be used, prepared or
// inspected needs no power of its own before that, unless it is to be tried again
// later only.
func claimedByOthers(h lifecycle.Host) bool {
	soon := func(k event.Kind) bool { return h.Newest(k.Section()).Fact != k.Fact(event.Failed) }
	return (lifecycle.WantsImage(h) && soon(event.Deploy)) || (lifecycle.WantsInspection(h) && soon(event.Inspect)) ||
		(lifecycle.Unsettled(h) && soon(event.Prepare)) || h.Intent.Spec.ExternallyProvisioned
}

// leave powers a host off before its deletion, or gives that up.
func leave(h lifecycle.Host, now time.Time) (look, lifecycle.Step) {
	p := h.Power
	ending := h.Doing(event.Subscribe) || (p.Op == nil && lifecycle.SubscriptionDue(h, now))
	switch {
	case ending && !lifecycle.Orphaned(h) && !lifecycle.Overdue(h, now):
		return lookAtSubscription, nil
	case p.Op != nil && (p.Op.Kind != event.PowerOff || lifecycle.Orphaned(h)):
		return lookNowhere, stop(h, "the host is being deleted")
	case p.Op == nil && (lifecycle.MediaDue(h) || h.Doing(event.Media)) && !lifecycle.Overdue(h, now):
		return lookNowhere, lifecycle.Nothing{} // the end of that is a trigger
	case h.Intent.Spec.DisablePowerOff:
		return lookNowhere, leftOn("spec.disablePowerOff says so")
	case lifecycle.GaveUp(h, p.Work):
		return lookNowhere, leftOn(p.Problem.Message)
	case lifecycle.Unreachable(h):
		return lookNowhere, leftOn("the host could not be reached")
	case lifecycle.Overdue(h, now):
		return lookNowhere, leftOn("it took too long to switch it off")
	case !lifecycle.Reachable(h) && p.Op == nil:
		return lookNowhere, lifecycle.Nothing{}
	default:
		return lookAtOff, nil
	}
}

func leftOn(why string) lifecycle.Step {
	return lifecycle.Record{Fact: lifecycle.LeftOn{Undone: "the machine was not powered off: " + why}}
}

// stop gives up an operation, if one is under way.
func stop(h lifecycle.Host, reason string) lifecycle.Step {
	if op := h.Power.Op; op != nil {
		return lifecycle.Record{Fact: lifecycle.Aborted{Kind: op.Kind, Reason: reason}}
	}
	return lifecycle.Nothing{}
}

// found is what a look found.
type found struct {
	backend.PowerState
	// ours: an operation of ours may be why it is other than it was known.
	ours bool
	// anew: the node may be another one than that it was seen by.
	anew bool
}

// compare says what a look at the power means: a fact to be recorded, a task,
// or nothing for now.
func compare(h lifecycle.Host, now found) (lifecycle.Task, lifecycle.Step) {
	want := wanted(h)
	op := h.Power.Op
	switch {
	case op != nil && op.Kind != want:
		return lifecycle.Task{}, stop(h, "the opposite is wanted now")
	case op != nil:
		return lifecycle.Task{Kind: op.Kind, Mode: op.Mode, Reason: op.Reason}, nil
	case changed(h.Power, now.PowerState) != "":
		return record(observed(h.Power, now))
	case now.On != nil && !*now.On && unserved(h):
		return record(lifecycle.Served{})
	case now.On == nil || now.Fault != "":
		return lifecycle.Task{}, lifecycle.Nothing{}
	case want == event.PowerOff && *now.On:
		return lifecycle.Task{Kind: want, Mode: lifecycle.OffMode(h), Reason: offReason(h)}, nil
	case want == event.Reboot:
		return lifecycle.Task{Kind: want, Mode: lifecycle.OffMode(h), Reason: offReason(h)}, nil
	case want == event.PowerOn && !*now.On && lifecycle.BeforeBoot(h) != "":
		return lifecycle.Task{}, lifecycle.Nothing{} // the end of that is a trigger
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
	case now.Maintenance != was.Maintenance:
		return event.MaintenanceChanged
	case now.Astray != was.Astray && (!now.Passing || was.Astray == ""): // on its way it goes through several
		return event.StateChanged
	case now.Health != was.Health:
		return event.HealthChanged
	default:
		return ""
	}
}

// observed is the fact that something is other than it was known: one thing at a
// time, so that each is told.
func observed(was event.Power, now found) lifecycle.Observed {
	f := lifecycle.Observed{
		What: changed(was, now.PowerState), On: now.On, Fault: now.Fault, Health: now.Health, Maintenance: was.Maintenance, Astray: was.Astray,
	}
	others := now.Others
	if others == "" {
		others = "another client of its backend"
	}
	switch f.What {
	case event.PowerChanged:
		if was.On != nil && !now.ours {
			f.Suspect = suspects(now)
		}
	case event.MaintenanceChanged:
		if f.Maintenance = now.Maintenance; f.Maintenance != "" || (!now.ours && !now.anew) {
			f.Suspect = others
		}
	case event.StateChanged:
		if f.Astray = now.Astray; f.Astray != "" || (!now.ours && !now.anew) {
			f.Suspect = others
		}
	}
	return f
}

// suspects are who may have changed the power of a machine.
func suspects(now found) string {
	text := "somebody at the machine or its BMC"
	if !*now.On {
		text = "its own system, " + text
	}
	if now.Others != "" {
		text += ", or " + now.Others
	}
	return text
}

func record(f lifecycle.Fact) (lifecycle.Task, lifecycle.Step) {
	return lifecycle.Task{}, lifecycle.Record{Fact: f}
}

// wanted is the operation that would bring the host to the power that is asked
// for, "" if it may be either.
func wanted(h lifecycle.Host) event.Kind {
	switch {
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
	if !h.Intent.Spec.Online {
		return "spec.online is false"
	}
	return "annotation " + v1alpha1.RebootAnnotationPrefix
}

func subscribeReason(t lifecycle.SubscriptionTurn) string {
	if t.Wish == nil {
		return "the subscription to the BMC's events is not wanted any more"
	}
	return "a subscription to the BMC's events is wanted"
}
