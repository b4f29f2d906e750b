package lifecycle

import "github.com/metalbus/metalbus/api/event"

// BeforeBoot is the operation that a host in use, which is off, has to go
// through before it is powered on; "" if it may be powered on.
func BeforeBoot(h Host) event.Kind {
	switch {
	case MediaDue(h), h.Doing(event.Media):
		return event.Media
	default:
		return ""
	}
}

// booting reports whether a host in use was seen off and is about to be
// powered on: what may only be done between two boots can be done now.
func booting(h Host) bool {
	on := h.Power.On
	return Used(Stage(h)) && on != nil && !*on && h.Power.Fault == "" && h.Intent.Spec.Online && !WantsOff(h)
}
