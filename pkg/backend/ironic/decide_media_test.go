package ironic

import (
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

const disc, otherDisc = "http://192.0.2.80/a.iso", "http://192.0.2.80/b.iso"

// disced is a host in use for which an image is wanted, and that has another, or
// none, in its drive.
func disced(want, have string, unsure bool) func(*lifecycle.Host) {
	return func(h *lifecycle.Host) {
		used(h)
		if want != "" {
			h.Intent.DataImage = &event.DataImageWish{URL: want}
		}
		h.Provisioning.Media.URL, h.Provisioning.Media.Unsure = have, unsure
	}
}

func TestMediaSeen(t *testing.T) {
	full := func(v view) lifecycle.Outlook { return v.mediaSeen(true) }
	check(t, event.Media, full, map[string]row{
		"wanted and put in before":              {subject{state: "active", host: disced(disc, disc, false)}, "done"},
		"wanted, and something else is in":      {subject{state: "active", host: disced(disc, "", false)}, "broken Media"},
		"wanted, and it is not known what is":   {subject{state: "active", host: disced(disc, "", true)}, "needs detach"},
		"another one is wanted":                 {subject{state: "active", host: disced(otherDisc, disc, false)}, "needs detach"},
		"none is wanted any more":               {subject{state: "active", host: disced("", disc, false)}, "needs detach"},
		"attached":                              {subject{state: "active", host: disced(disc, "", false), op: attachOf(disc)}, "done"},
		"attached, and another is wanted now":   {subject{state: "active", host: disced(otherDisc, "", false), op: attachOf(disc)}, "needs detach"},
		"detached, and not seen yet":            {subject{state: "active", host: disced("", disc, false), op: writeDetach}, "wait"},
		"detached without effect":               {subject{state: "active", host: disced("", disc, false), op: writeDetach, idle: time.Hour}, "broken Media"},
		"detached, and the BMC does not answer": {subject{state: "active", host: disced("", disc, false), op: writeDetach, node: lastError("Unable to connect to x")}, "broken Unreachable"},
		"the detaching was refused":             {subject{state: "active", host: disced("", disc, false), op: writeDetach, refused: true}, "needs detach"},
	})
	empty := func(v view) lifecycle.Outlook { return v.mediaSeen(false) }
	check(t, event.Media, empty, map[string]row{
		"none is wanted":                   {subject{state: "active", host: disced("", disc, false)}, "done"},
		"wanted":                           {subject{state: "active", host: disced(disc, "", false)}, "needs " + attachOf(disc)},
		"the machine has lost it":          {subject{state: "active", host: disced(disc, disc, false)}, "needs " + attachOf(disc)},
		"the old one is out":               {subject{state: "active", host: disced(otherDisc, disc, false), op: writeDetach}, "needs " + attachOf(otherDisc)},
		"attached, and not seen yet":       {subject{state: "active", host: disced(disc, "", false), op: attachOf(disc)}, "wait"},
		"attached without effect":          {subject{state: "active", host: disced(disc, "", false), op: attachOf(disc), idle: time.Hour}, "broken Media"},
		"the image cannot be fetched":      {subject{state: "active", host: disced(disc, "", false), op: attachOf(disc), node: lastError("Validation of image href x failed")}, "broken Image"},
		"an old error is none of this":     {subject{state: "active", host: disced(disc, "", false), node: lastError("x")}, "needs " + attachOf(disc)},
		"attached, and another is wanted":  {subject{state: "active", host: disced(otherDisc, "", false), op: attachOf(disc)}, "needs " + attachOf(otherDisc)},
		"the attaching was refused":        {subject{state: "active", host: disced(disc, "", false), op: attachOf(disc), refused: true}, "needs " + attachOf(disc)},
		"attached, and none is wanted now": {subject{state: "active", host: disced("", "", false), op: attachOf(disc)}, "done"},
	})
}

func TestMediaUnseen(t *testing.T) {
	check(t, event.Media, view.mediaUnseen, map[string]row{
		"wanted":                          {subject{state: "active", host: disced(disc, "", false)}, "needs " + attachOf(disc)},
		"wanted and put in before":        {subject{state: "active", host: disced(disc, disc, false)}, "done"},
		"it is not known what is in":      {subject{state: "active", host: disced(disc, "", true)}, "needs detach"},
		"another one is wanted":           {subject{state: "active", host: disced(otherDisc, disc, false)}, "needs detach"},
		"none is wanted any more":         {subject{state: "active", host: disced("", disc, false)}, "needs detach"},
		"attached":                        {subject{state: "active", host: disced(disc, "", false), op: attachOf(disc)}, "done"},
		"attached in vain":                {subject{state: "active", host: disced(disc, "", false), op: attachOf(disc), node: lastError("no")}, "broken Media"},
		"attached, and another is wanted": {subject{state: "active", host: disced(otherDisc, "", false), op: attachOf(disc)}, "needs detach"},
		"the attaching was refused":       {subject{state: "active", host: disced(disc, "", false), op: attachOf(disc), refused: true}, "needs " + attachOf(disc)},
		"detached":                        {subject{state: "active", host: disced("", disc, false), op: writeDetach}, "done"},
		"detached for another":            {subject{state: "active", host: disced(otherDisc, disc, false), op: writeDetach}, "needs " + attachOf(otherDisc)},
		"detached in vain":                {subject{state: "active", host: disced("", disc, false), op: writeDetach, node: lastError("no")}, "broken Media"},
	})
}

func TestMediaWaits(t *testing.T) {
	check(t, event.Media, view.mediaWaits, map[string]row{
		"a conductor holds the node":          {subject{state: "active", host: disced(disc, "", false)}, "wait"},
		"it fetches the image":                {subject{state: "active", host: disced(disc, "", false), op: attachOf(disc), idle: time.Minute}, "wait"},
		"it has been fetching it for an hour": {subject{state: "active", host: disced(disc, "", false), op: attachOf(disc), idle: time.Hour}, "broken Timeout"},
	})
}

func TestMediaOccupied(t *testing.T) {
	check(t, event.Media, view.mediaOccupied, map[string]row{
		"an agent cleans the disk":     {subject{state: "clean wait", host: disced("", disc, false)}, "wait"},
		"it has not been heard of":     {subject{state: "clean wait", host: disced("", disc, false), idle: 2 * time.Hour}, "broken Conflict"},
		"Ironic is servicing the node": {subject{state: "servicing", host: disced(disc, "", false)}, "wait"},
	})
}

func TestInserted(t *testing.T) {
	for name, c := range map[string]struct {
		drives []ironic.VirtualMedia
		want   bool
	}{
		"no drives":                 {nil, false},
		"a CD":                      {[]ironic.VirtualMedia{{Inserted: true, MediaTypes: []string{"CD", "DVD"}}}, true},
		"an empty CD drive":         {[]ironic.VirtualMedia{{MediaTypes: []string{"CD", "DVD"}}}, false},
		"a floppy is no CD":         {[]ironic.VirtualMedia{{MediaTypes: []string{"DVD"}}, {Inserted: true, MediaTypes: []string{"Floppy"}}}, false},
		"a BMC that does not say":   {[]ironic.VirtualMedia{{Inserted: true}}, true},
		"the second of two is full": {[]ironic.VirtualMedia{{MediaTypes: []string{"CD"}}, {Inserted: true, MediaTypes: []string{"CD"}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := inserted(c.drives); got != c.want {
				t.Errorf("inserted %v, want %v", got, c.want)
			}
		})
	}
}
