package projector

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func showing(r revision) *v1alpha1.BareMetalHost {
	o := remembers(v1alpha1.StateProvisioned, deployed)
	o.Status.Conditions = []metav1.Condition{{Type: projectedCondition, Message: r.String()}}
	return o
}

func carrying(o *v1alpha1.BareMetalHost, r revision) *v1alpha1.BareMetalHost {
	o.Annotations[v1alpha1.RevisionAnnotation] = encode(r)
	return o
}

func TestStanding(t *testing.T) {
	at := func(epoch string, rev uint64, meta lifecycle.Meta, change ...func(*lifecycle.Host)) lifecycle.Host {
		h := lifecycle.Host{UID: "uid-1", Epoch: epoch, Rev: rev}
		h = h.WithNewest(event.SectionIntent, meta)
		h.Rev = rev
		for _, c := range change {
			c(&h)
		}
		return h
	}
	changed := lifecycle.Meta{Rev: 2, Fact: event.Changed, At: earlier}
	fresh := lifecycle.Meta{Rev: 1, Fact: event.Created, At: noon.Add(-time.Minute)}
	based := func(rev, lost uint64) func(*lifecycle.Host) {
		return asked(func(i *event.Intent) { i.Base = &event.Base{Rev: rev, Lost: lost} })
	}
	busy := func(h *lifecycle.Host) { h.Provisioning.Op = &event.Op{} }
	tests := map[string]struct {
		object *v1alpha1.BareMetalHost
		host   lifecycle.Host
		want   standing
	}{
		"nothing was shown yet":                   {object(), at("e", 3, changed), follows},
		"the bus is ahead":                        {showing(revision{"e", 5, "uid-1"}), at("e", 9, changed), follows},
		"both are even":                           {showing(revision{"e", 9, "uid-1"}), at("e", 9, changed), follows},
		"the bus lost its newest events":          {showing(revision{"e", 12, "uid-1"}), at("e", 9, changed), lostTail},
		"that loss is dealt with":                 {showing(revision{"e", 12, "uid-1"}), at("e", 10, changed, based(9, 3)), follows},
		"another loss after that":                 {showing(revision{"e", 15, "uid-1"}), at("e", 12, changed, based(9, 3)), lostTail},
		"a new log, restored from the object":     {showing(revision{"old", 40, "uid-1"}), at("e", 1, changed, based(0, 0)), follows},
		"a backup that is older than the object":  {showing(revision{"old", 40, "uid-1"}), at("e", 20, changed), conflicting},
		"a backup that is newer":                  {showing(revision{"old", 40, "uid-1"}), at("e", 41, changed), follows},
		"a new log, made just now by mistake":     {showing(revision{"old", 40, "uid-1"}), at("e", 2, fresh), lostTail},
		"the same, but somebody is at work":       {showing(revision{"old", 40, "uid-1"}), at("e", 2, fresh, busy), conflicting},
		"an object that was moved here":           {showing(revision{"e", 40, "uid-0"}), at("e", 1, changed), follows},
		"a status that was lost":                  {carrying(object(), revision{"e", 9, "uid-1"}), at("e", 12, changed), follows},
		"a status that was lost, and the log too": {carrying(object(), revision{"old", 40, "uid-1"}), at("e", 2, changed), follows},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := standingOf(tc.object, tc.host, noon); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestWhatIsShown(t *testing.T) {
	tests := map[string]struct {
		object *v1alpha1.BareMetalHost
		want   uint64
	}{
		"nothing":                              {object(), 0},
		"by the condition":                     {showing(revision{"e", 5, "uid-1"}), 5},
		"by the condition, whatever is copied": {carrying(showing(revision{"e", 5, "uid-1"}), revision{"e", 6, "uid-1"}), 5},
		"by the copy, if there is no other":    {carrying(object(), revision{"e", 4, "uid-1"}), 4},
		"of another log":                       {showing(revision{"old", 5, "uid-1"}), 0},
		"of another object":                    {showing(revision{"e", 5, "uid-0"}), 0},
		"more than the bus knows":              {showing(revision{"e", 50, "uid-1"}), 0},
		"a condition that is none of ours": {func() *v1alpha1.BareMetalHost {
			o := showing(revision{})
			o.Status.Conditions[0].Message = "yes"
			return o
		}(), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := shownSince(tc.object, lifecycle.Host{UID: "uid-1", Epoch: "e", Rev: 9}); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
