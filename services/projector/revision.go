package projector

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// The condition that says which revision of the host the status shows. It is
// written together with what it speaks of, so it costs no write and is never
// wrong; and it lets people wait until the status has caught up.
const (
	projectedCondition = "Projected"
	projectedReason    = "Revision"
)

// revision names a revision of a host for good.
type revision struct {
	Epoch string `json:"epoch"`
	Rev   uint64 `json:"hostrev"`
	UID   string `json:"uid"`
}

func revisionOf(h lifecycle.Host) revision { return revision{Epoch: h.Epoch, Rev: h.Rev, UID: h.UID} }

// String is the revision as the condition has it: epoch/uid/hostrev.
func (r revision) String() string {
	return r.Epoch + "/" + r.UID + "/" + strconv.FormatUint(r.Rev, 10)
}

func parseRevision(text string) (revision, bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return revision{}, false
	}
	rev, err := strconv.ParseUint(parts[2], 10, 64)
	return revision{Epoch: parts[0], UID: parts[1], Rev: rev}, err == nil
}

// shownBy is the newest revision that the object shows, by its condition or
// else by its annotation; ok is false if it shows none, or one of an object
// that it was before it was moved.
func shownBy(o *v1alpha1.BareMetalHost) (r revision, ok bool) {
	for _, c := range o.Status.Conditions {
		if c.Type != projectedCondition {
			continue
		}
		if r, ok = parseRevision(c.Message); ok && r.UID == string(o.UID) {
			return r, true
		}
	}
	r, ok = annotated(o)
	return r, ok && r.UID == string(o.UID)
}

// annotated is the revision that the object's own status annotation shows.
func annotated(o *v1alpha1.BareMetalHost) (revision, bool) {
	var r revision
	err := json.Unmarshal([]byte(o.Annotations[v1alpha1.RevisionAnnotation]), &r)
	return r, err == nil
}

// shownSince is the revision of h's own log that the object shows, 0 if none.
func shownSince(o *v1alpha1.BareMetalHost, h lifecycle.Host) uint64 {
	r, ok := shownBy(o)
	if !ok || r.Epoch != h.Epoch || r.Rev > h.Rev {
		return 0
	}
	return r.Rev
}

// standing is how what an object shows and what the bus knows go together.
type standing int

const (
	// follows: the object shows what the bus says, or said.
	follows standing = iota
	// lostTail: the object shows revisions that the bus no longer has.
	lostTail
	// conflicting: the object and the bus tell different lives of the host, and
	// nobody but its operator can say which is right.
	conflicting
)

// recent is how old a host of another log may be at most to be taken for one
// that was made only since the log with its life was lost.
const recent = time.Hour

func standingOf(o *v1alpha1.BareMetalHost, h lifecycle.Host, now time.Time) standing {
	shown, ok := shownBy(o)
	origin := h.Newest(event.SectionIntent)
	base := h.Intent.Base
	op, _ := h.Op()
	switch {
	case !ok || shown.Rev <= h.Rev || kube.Unborn(o):
		return follows
	case base != nil && base.Lost > 0 && shown.Rev == base.Rev+base.Lost:
		return follows // that loss is dealt with, and not shown yet
	case shown.Epoch == h.Epoch:
		return lostTail
	case base != nil:
		return follows // restored from this very object
	case origin.Fact == event.Created && now.Sub(origin.At) < recent && op == nil:
		return lostTail
	default:
		return conflicting
	}
}

// conflictText says what the operator can do.
func conflictText(o *v1alpha1.BareMetalHost, h lifecycle.Host) string {
	shown, _ := shownBy(o)
	return fmt.Sprintf("The object shows revision %d of the host, the bus knows revision %d from another log, so one of them is out of date. "+
		"The host is paused. To go on from the object, purge the host from the bus; to go on from the bus, remove the object's status", shown.Rev, h.Rev)
}
