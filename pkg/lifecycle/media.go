package lifecycle

import (
	"time"

	"github.com/metalbus/metalbus/api/event"
)

// WantedMedia is the URL of what the virtual CD drive is to hold, "" for
// nothing. It is emptied for a host that goes, or whose image does: what was for
// one user is not left to the next.
func WantedMedia(h Host) string {
	if h.Intent.DataImage == nil || !inUse(h) {
		return ""
	}
	return h.Intent.DataImage.URL
}

// inUse reports whether the host is in use and stays so.
func inUse(h Host) bool { return Used(Stage(h)) && !going(h) }

// going reports whether a host in use, or what is on its disk, has to go.
func going(h Host) bool {
	switch Stage(h) {
	case provisioned:
		return Unwanted(h)
	case deprovision, poweringOff:
		return true
	default:
		return false
	}
}

// MediaDue reports whether it is time to bring the virtual CD drive to what is
// wanted: before a host in use boots, once for each time that it is off; and
// before the host, or what is on its disk, goes.
func MediaDue(h Host) bool {
	cd := h.Provisioning.Media
	switch {
	case h.Intent.Paused || Apart(h) || !Reachable(h):
		return false
	case going(h):
		return held(cd) && !cd.GivenUp
	case !booting(h) || h.Provisioning.Problem != nil:
		return false
	default:
		return (WantedMedia(h) != "" || held(cd)) && !tried(h)
	}
}

// held reports whether the drive may hold something of ours.
func held(cd event.VirtualCD) bool { return cd.URL != "" || cd.Unsure }

// tried reports whether what is wanted now was tried in the present time off.
func tried(h Host) bool {
	cd := h.Provisioning.Media
	return !cd.TriedAt.IsZero() && cd.Off.Equal(h.Power.SeenAt) && cd.Tried == WantedMedia(h)
}

// MediaHeld reports whether the drive may hold a data image, or may come to: its
// DataImage is still needed.
func MediaHeld(h Host) bool {
	return held(h.Provisioning.Media) || h.Doing(event.Media)
}

// mediaFailed notes a try in vain. It is no problem of the host: that boots, or
// goes, without the change.
func mediaFailed(h *Host, p event.Problem, at time.Time) {
	cd, want := &h.Provisioning.Media, WantedMedia(*h)
	cd.Tried, cd.TriedAt, cd.Off, cd.GivenUp = want, at, h.Power.SeenAt, going(*h)
	p.At, p.Kind = at, event.Media
	cd.Failures, cd.Problem = cd.Failures+1, &p
	if h.Doing(event.Media) {
		cd.Unsure = true
		if want != "" {
			cd.URL = ""
		}
	}
}

func mediaMessage(cd event.VirtualCD) string {
	if cd.URL == "" {
		return "The virtual CD drive was emptied"
	}
	return "The data image is in the virtual CD drive: " + cd.URL
}

// mediaNews tells of a failure when it is new.
func mediaNews(before, after event.VirtualCD) *Announcement {
	was, is := before.Problem, after.Problem
	if is == nil || (was != nil && was.Message == is.Message) {
		return nil
	}
	return &Announcement{Reason: "DataImageError", Message: Message(*is), Warning: true}
}

// leftMedia says what was left in the drive when the host had to go, "" if nothing.
func leftMedia(cd event.VirtualCD) string {
	if !cd.GivenUp || cd.Problem == nil {
		return ""
	}
	return "the virtual CD drive was not emptied: " + cd.Problem.Message
}
