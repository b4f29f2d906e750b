package lifecycle

import (
	"slices"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

// WantsOff reports whether the host is to be off, if only for a reboot. A host
// that must not be switched off is rebooted once for each request instead.
func WantsOff(h Host) bool {
	spec := h.Intent.Spec
	if !spec.Online {
		return !spec.DisablePowerOff
	}
	used := Used(Stage(h))
	return slices.ContainsFunc(h.Intent.Reboots, func(r event.RebootRequest) bool {
		served := r.Key == "" && booted(h, r) || spec.DisablePowerOff && slices.Contains(h.Power.Handled, r.ID)
		return !served && (used || r.Force)
	})
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

// Interrupted reports whether a reboot was asked for that may interrupt the
// section's inspection or deployment, and did not yet: its next write serves the
// request.
func Interrupted(h Host, s event.Section) bool {
	if !h.Doing(event.Inspect) && !h.Doing(event.Deploy) {
		return false
	}
	return h.Work(s).Op != nil && slices.ContainsFunc(h.Intent.Reboots, func(r event.RebootRequest) bool {
		return r.Force && !slices.Contains(rebooted(h, s), r.ID)
	})
}

// rebooted are the reboot requests that a section has served.
func rebooted(h Host, s event.Section) []string {
	switch s {
	case event.SectionInspection:
		return h.Inspection.Rebooted
	case event.SectionProvisioning:
		return h.Provisioning.Rebooted
	case event.SectionPower:
		return h.Power.Handled
	default:
		return nil
	}
}

// serve notes that the section's own boots serve the reboot requests that are there.
func serve(h *Host, s event.Section) {
	switch s {
	case event.SectionInspection:
		h.Inspection.Rebooted = rebootIDs(h.Intent)
	case event.SectionProvisioning:
		h.Provisioning.Rebooted = rebootIDs(h.Intent)
	default: // the powermonitor serves them by what it sees
	}
}

// ServedReboot reports whether a plain reboot request is done with: the host
// has been off since it was made, or boots anyway.
func ServedReboot(h Host, r event.RebootRequest) bool {
	if r.Key != "" {
		return false // its client takes it away
	}
	if Stage(h) == provision && !r.Force {
		return true
	}
	return booted(h, r)
}

// booted reports whether the host has booted for a request, whichever section
// let it boot. The request may still be there: it is taken away afterwards.
func booted(h Host, r event.RebootRequest) bool {
	return slices.ContainsFunc(event.Sections(), func(s event.Section) bool { return slices.Contains(rebooted(h, s), r.ID) })
}

func rebootIDs(i event.Intent) []string {
	var ids []string
	for _, r := range i.Reboots {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return ids
}
