package lifecycle

import "github.com/metalbus/metalbus/api/event"

// BeforeBoot is the operation that a host in use has to go through before it is
// powered on; "" if it may be powered on. Nothing that it is about was ever begun
// on a host without its user's word.
func BeforeBoot(h Host) event.Kind {
	switch {
	case MediaDue(h), h.Doing(event.Media):
		return event.Media
	case serviceDue(h):
		return event.Service
	default:
		return ""
	}
}

// booting reports whether a host in use was seen off and is about to be
// powered on: what may only be done between two boots can be done now. What was seen
// before the host's deployment ended says nothing of the machine that runs since.
func booting(h Host) bool {
	on := h.Power.On
	off := on != nil && !*on && !h.Power.SeenAt.Before(h.Provisioning.InUseSince)
	return Used(Stage(h)) && off && h.Power.Fault == "" && h.Intent.Spec.Online && !WantsOff(h)
}

// serviceDue reports whether the firmware of a host in use is to be changed now. A
// change that failed is brought to its end, also if nothing is wanted any more.
func serviceDue(h Host) bool {
	if !inUse(h) || !stays(h) || Leaving(h) {
		return false
	}
	if p := h.Provisioning.Problem; p != nil && p.Kind == event.Service {
		return true
	}
	return booting(h) && !FirmwareChanges(h).Empty()
}
