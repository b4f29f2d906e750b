package lifecycle

import (
	"slices"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Firmware is what is known of the reading of the host's firmware: the newest
// reading that its services recorded.
func Firmware(h Host) event.FirmwareRead {
	if r, p := h.Registration.Firmware, h.Provisioning.FirmwareRead; r.At.After(p.At) {
		return r
	}
	return h.Provisioning.FirmwareRead
}

// FirmwareNews tells that the firmware could not be read, when that is new.
func FirmwareNews(before, after Host) *Announcement {
	was, is := Firmware(before).Problem, Firmware(after).Problem
	if is == "" || is == was {
		return nil
	}
	return &Announcement{Reason: "FirmwareNotRead", Message: "The firmware could not be read, which keeps nothing else from the host; it is tried again: " + is, Warning: true}
}

// firmwareAgain is how long what could not be read is not tried again.
const firmwareAgain = 10 * time.Minute

// Unread reports whether the host's firmware is to be read now, or is to be tried
// again after wait: nobody has read it, or somebody could not.
func Unread(h Host, now time.Time) (unread bool, wait time.Duration) {
	f := Firmware(h)
	switch {
	case f.At.IsZero():
		return true, 0
	case f.Problem == "":
		return false, 0
	default:
		return true, max(firmwareAgain-now.Sub(f.At), 0)
	}
}

// Changes is what is to be changed of a host's firmware.
type Changes struct {
	Settings []event.SettingChange
	Updates  []v1alpha1.FirmwareUpdate
}

// Empty reports whether nothing is to be changed.
func (c Changes) Empty() bool { return len(c.Settings)+len(c.Updates) == 0 }

// FirmwareChanges is what is wanted of the host's firmware and was not handed over
// yet. Of a host in use it is only what its user lets be done to such a host.
func FirmwareChanges(h Host) Changes {
	w := open(h)
	return Changes{w.Settings, w.Updates}
}

// open is the part of the wish that is to be carried out now.
func open(h Host) event.FirmwareWish {
	if h.Intent.Firmware == nil {
		return event.FirmwareWish{}
	}
	w, used := *h.Intent.Firmware, Used(Stage(h))
	var done event.FirmwareDone
	if d := h.Provisioning.Firmware; d != nil {
		done = *d
	}
	if (used && !w.SettingsInUse) || (w.ID != "" && w.ID == done.Wish) {
		w.Settings, w.ID = nil, ""
	}
	w.Updates = slices.DeleteFunc(slices.Clone(w.Updates), func(u v1alpha1.FirmwareUpdate) bool {
		return (used && !w.UpdatesInUse) || slices.Contains(done.Installed, u)
	})
	return w
}

// handOver notes what of the firmware the claimed write is to change. What is said
// to be done in the end is that, whatever is wished meanwhile.
func handOver(h *Host, k event.Kind) {
	if k != event.Prepare && k != event.Service {
		return
	}
	h.Provisioning.Handed = nil
	if w := open(*h); !(Changes{w.Settings, w.Updates}).Empty() {
		h.Provisioning.Handed = &w
	}
}

// changed is what was done to the firmware once what was handed over is done.
func changed(h Host) *event.FirmwareDone {
	w, was := h.Provisioning.Handed, h.Provisioning.Firmware
	if w == nil {
		return was
	}
	done := event.FirmwareDone{Installed: merged(w.Installed, w.Updates)}
	if was != nil {
		done.Wish, done.Installed = was.Wish, merged(was.Installed, w.Updates)
	}
	if w.ID != "" {
		done.Wish = w.ID
	}
	return &done
}

// merged are updates of which later ones stand for their components.
func merged(was, now []v1alpha1.FirmwareUpdate) []v1alpha1.FirmwareUpdate {
	list := without(was, now)
	return append(list, now...)
}

// without are the updates of other components.
func without(list, others []v1alpha1.FirmwareUpdate) []v1alpha1.FirmwareUpdate {
	return slices.DeleteFunc(slices.Clone(list), func(u v1alpha1.FirmwareUpdate) bool {
		return slices.ContainsFunc(others, func(o v1alpha1.FirmwareUpdate) bool { return o.Component == u.Component })
	})
}

// unfinished notes that nobody knows what became of the updates that were handed
// over: each is made again, also one that was installed before.
func unfinished(h *Host, k event.Kind) {
	p := &h.Provisioning
	if (k != event.Prepare && k != event.Service) || p.Handed == nil {
		return
	}
	if len(p.Handed.Updates) > 0 {
		done := event.FirmwareDone{Installed: without(p.Handed.Installed, p.Handed.Updates)}
		if p.Firmware != nil {
			done = event.FirmwareDone{Wish: p.Firmware.Wish, Installed: without(p.Firmware.Installed, p.Handed.Updates)}
		}
		p.Firmware = &done
	}
	p.Handed = nil
}

func firmwareChanged(h *Host, r *event.FirmwareRead) {
	p := &h.Provisioning
	p.Firmware, p.Handed = changed(*h), nil
	if r != nil {
		p.FirmwareRead = *r
	}
}
