package lifecycle

import (
	"fmt"

	"github.com/metalbus/metalbus/api/event"
)

// Waiting is the host's place in the queue for a slot, nil if it waits for none:
// also where it has come to wait for something else meanwhile.
func Waiting(h Host) *event.Waiting {
	for _, w := range []*event.Waiting{h.Inspection.Waiting, h.Provisioning.Waiting} {
		if w != nil && stillWaits(h, w.Kind) {
			return w
		}
	}
	return nil
}

// stillWaits reports whether the host is still about to begin the operation.
func stillWaits(h Host, k event.Kind) bool {
	stage := Stage(h)
	if h.Doing(k) || h.Intent.Paused || Apart(h) {
		return false
	}
	switch k {
	case event.Inspect:
		return stage == inspects || (stage == available && WantsInspection(h))
	case event.Prepare:
		return stage == preparing || (stage == available && Unsettled(h))
	case event.Deploy:
		return stage == provision || (stage == available && WantsImage(h))
	case event.Undeploy:
		return stage == deprovision || (stage == provision && h.Provisioning.Problem != nil) || (unclean(h) && Unwanted(h))
	default:
		return false
	}
}

// place says in words where a host stands in the queue.
func place(w event.Waiting) string {
	since := w.Since.UTC().Format("15:04:05")
	switch {
	case w.Position <= 0:
		return fmt.Sprintf("waits for a slot to %s since %s UTC", w.Kind, since)
	case w.Position == 1:
		return fmt.Sprintf("waits for a slot to %s since %s UTC, and is the next", w.Kind, since)
	default:
		return fmt.Sprintf("waits for a slot to %s since %s UTC, at position %d of the queue when last counted", w.Kind, since, w.Position)
	}
}
