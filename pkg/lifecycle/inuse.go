package lifecycle

import (
	"github.com/metalbus/metalbus/api/event"
)

// beforeBoot is work on a host in use that is done while it is off.
type beforeBoot struct {
	Kind event.Kind
	// Due reports whether there is such work.
	Due func(Host) bool
}

// beforeBoots is all such work, in the order in which it is done.
func beforeBoots() []beforeBoot {
	return []beforeBoot{{event.Service, services}}
}

// BeforeBoot is the operation that a host in use has to go through before it is
// switched on, "" if there is none. Nothing that it is about was ever begun on a
// host without its user's word.
func BeforeBoot(h Host) event.Kind {
	stage := Stage(h)
	if !Used(stage) || !stays(h) || Leaving(h) || (stage == provisioned && Unwanted(h)) {
		return ""
	}
	for _, w := range beforeBoots() {
		if w.Due(h) {
			return w.Kind
		}
	}
	return ""
}

// services reports whether the firmware of a host in use is to be changed now. One
// that failed to be is brought back to rest, also if nothing is wanted any more.
func services(h Host) bool {
	if p := h.Provisioning.Problem; p != nil && p.Kind == event.Service {
		return true
	}
	return h.Intent.Spec.Online && restsOff(h) && !FirmwareChanges(h).Empty()
}

// restsOff reports whether the host was seen off since it came into use. What was
// seen before its deployment ended says nothing of the machine that runs since.
func restsOff(h Host) bool {
	return h.Power.On != nil && !*h.Power.On && h.Power.SeenAt.After(h.Provisioning.InUseSince)
}
