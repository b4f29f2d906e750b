package lifecycle

import (
	"sync"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

// rule says that a host for which When holds, and no rule before it, is in State.
type rule struct {
	State v1alpha1.ProvisioningState
	Why   string
	When  func(Host) bool
}

// rules derive a host's state from its sections. The first that holds decides.
//
//nolint:gochecknoglobals // a constant in all but name: Go has none of this type
var rules = sync.OnceValue(func() []rule {
	return []rule{
		{v1alpha1.StateNone, "the bus does not know the host", func(h Host) bool { return !h.Exists() }},
		{v1alpha1.StateDeleting, "it is being deleted while detached", func(h Host) bool { return Leaving(h) && h.Intent.Detached != nil }},
		{v1alpha1.StateDeleting, "it is being deleted and was never registered", func(h Host) bool { return Leaving(h) && !h.Registration.Registered }},
		{v1alpha1.StateUnmanaged, "it has no BMC details", func(h Host) bool { return !h.Registration.Registered && !Managed(h.Intent) }},
		{v1alpha1.StateRegistering, "its BMC has not been reached yet", func(h Host) bool { return !h.Registration.Registered }},
		{v1alpha1.StateDeprovisioning, "it is being deleted and its disk is not clean", func(h Host) bool { return Leaving(h) && unclean(h) }},
		{v1alpha1.StateProvisioned, "its image is on the disk", on(event.Deployed)},
		{v1alpha1.StateProvisioning, "its image is being brought to the disk", on(event.Deploying)},
		{v1alpha1.StateDeprovisioning, "its disk is being cleaned", on(event.Undeploying)},
		{v1alpha1.StatePoweringOffBeforeDelete, "it is being deleted and may still be on", func(h Host) bool { return Leaving(h) && !h.Power.OffForDelete }},
		{v1alpha1.StateDeleting, "it is being deleted and nothing else is left to do", Leaving},
		{v1alpha1.StateExternallyProvisioned, "its disk is somebody else's", external},
		{v1alpha1.StateInspecting, "its hardware is not known yet", inspecting},
		{v1alpha1.StatePreparing, "its settings are not applied yet", on(event.Unprepared)},
		{v1alpha1.StateAvailable, "it waits for an image", on(event.Prepared)},
	}
})

// Stage is the provisioning state of the host.
func Stage(h Host) v1alpha1.ProvisioningState {
	for _, r := range rules() {
		if r.When(h) {
			return r.State
		}
	}
	return v1alpha1.StateNone
}

func on(p event.PhaseOfDisk) func(Host) bool {
	return func(h Host) bool { return h.Provisioning.Phase == p }
}

// unclean: an image is on the disk, or on its way there or off.
func unclean(h Host) bool {
	switch h.Provisioning.Phase {
	case event.Deploying, event.Deployed, event.Undeploying:
		return true
	default:
		return false
	}
}

func external(h Host) bool {
	p := h.Provisioning.Phase
	return p == event.External || (p == event.Unprepared && h.Registration.External)
}

func inspecting(h Host) bool {
	first := h.Provisioning.Phase == event.Unprepared && !h.Inspection.Done && !h.Intent.InspectionDisabled
	return first || h.Inspection.Again || h.Doing(event.Inspect)
}

// Used reports whether a machine in this state may be running somebody's work:
// it must not be touched unless its user asks for it.
func Used(s v1alpha1.ProvisioningState) bool {
	return s == v1alpha1.StateProvisioned || s == v1alpha1.StateExternallyProvisioned
}
