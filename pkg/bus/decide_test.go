package bus

import (
	"context"
	"testing"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// host builds a host from the newest event of each section.
type newest struct {
	section event.Section
	seq     uint64
	fact    string
}

func hostOf(work event.Work, events ...newest) lifecycle.Host {
	h := lifecycle.Host{UID: "u1"}
	h.Registration.Work = work
	for i, e := range events {
		h = h.WithNewest(e.section, lifecycle.Meta{Seq: e.seq, Rev: uint64(i + 1), Fact: e.fact})
	}
	return h
}

// careful cares for intents and for what its own section records.
type careful struct{ Worker }

func (careful) Cares(t Trigger) bool {
	return t.Section == event.SectionIntent || t.Section == event.SectionRegistration
}

func (careful) Step(context.Context, lifecycle.Host) (lifecycle.Step, error) { return nil, nil }

func TestHold(t *testing.T) {
	const intent, own, other = event.SectionIntent, event.SectionRegistration, event.SectionPower
	running := event.Work{Op: &event.Op{ID: "enroll-2", Kind: event.Enroll, Claim: 1, Answered: true}}
	claimed := event.Work{Op: &event.Op{ID: "enroll-2", Kind: event.Enroll, Claim: 1}}
	failed := event.Work{Problem: &event.Problem{Message: "no"}, Failures: 1}
	none := event.Work{}
	event1, event2, event3 := newest{intent, 10, "created"}, newest{own, 20, "enroll.started"}, newest{other, 30, "changed"}
	at := func(s event.Section, seq uint64, deliveries int) Trigger {
		return Trigger{Section: s, UID: "u1", Seq: seq, Deliveries: deliveries}
	}
	wake := Trigger{UID: "u1", Wake: true, Seq: 99, Deliveries: 1}
	for name, c := range map[string]struct {
		host lifecycle.Host
		t    Trigger
		want string // "" for a look
	}{
		"a read older than the trigger":               {hostOf(none, event1), at(other, 30, 1), "stale read"},
		"a read that does not know the host yet":      {hostOf(none), at(intent, 10, 1), "stale read"},
		"a wake for a host that is gone":              {hostOf(none), wake, "gone"},
		"a trigger that a newer one replaced":         {hostOf(none, event1, newest{intent, 15, "changed"}), at(intent, 10, 1), "superseded"},
		"an older event of another section counts":    {hostOf(none, event1, event3), at(intent, 10, 1), ""},
		"another's event while a claim is in use":     {hostOf(claimed, event1, event2, event3), at(other, 30, 1), "claimed elsewhere"},
		"a new wish while a claim is in use":          {hostOf(claimed, event2, newest{intent, 25, "changed"}), at(intent, 25, 1), "claimed elsewhere"},
		"the claim itself, after its rest":            {hostOf(claimed, event1, event2), at(own, 20, 2), ""},
		"a claim that came with a restored host":      {hostOf(claimed, newest{intent, 40, "restored"}), at(intent, 40, 1), "claimed"},
		"the same, after its rest":                    {hostOf(claimed, newest{intent, 40, "restored"}), at(intent, 40, 2), ""},
		"a new wish while an operation waits":         {hostOf(running, event2, newest{intent, 25, "changed"}), at(intent, 25, 1), ""},
		"another's event in a back-off":               {hostOf(failed, event1, newest{own, 20, "enroll.failed"}, event3), at(other, 30, 1), "backing off"},
		"another's event in a back-off, the wish new": {hostOf(failed, newest{own, 20, "enroll.failed"}, newest{intent, 25, "changed"}, event3), at(other, 30, 1), ""},
		"a failure whose back-off is over":            {hostOf(failed, event1, newest{own, 20, "enroll.failed"}), at(own, 20, 2), ""},
		"a wake in a back-off":                        {hostOf(failed, event1, newest{own, 20, "enroll.failed"}), wake, ""},
		"a problem that came with a restored host":    {hostOf(failed, newest{intent, 40, "restored"}), at(intent, 40, 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := &work{b: &Bus{cfg: Config{Timing: DefaultTiming()}, m: newMetrics()}, worker: careful{}, section: own}
			got, held := w.visit(c.host, c.t).hold()
			if got.why != c.want || held != (c.want != "") {
				t.Errorf("verdict %q, want %q", got.why, c.want)
			}
		})
	}
}

func TestToken(t *testing.T) {
	const intent, own, other = event.SectionIntent, event.SectionRegistration, event.SectionPower
	running := event.Work{Op: &event.Op{ID: "enroll-2", Kind: event.Enroll}}
	failed := event.Work{Problem: &event.Problem{Message: "no"}}
	for name, c := range map[string]struct {
		host lifecycle.Host
		want uint64
	}{
		"of an operation is its newest event":        {hostOf(running, newest{intent, 10, "created"}, newest{own, 20, "enroll.started"}, newest{other, 30, "changed"}), 20},
		"of a problem too":                           {hostOf(failed, newest{own, 20, "enroll.failed"}, newest{intent, 25, "changed"}), 20},
		"of an operation from elsewhere is the wish": {hostOf(running, newest{intent, 10, "restored"}, newest{other, 30, "changed"}), 10},
		"else is the newest event that is cared for": {hostOf(event.Work{}, newest{intent, 10, "created"}, newest{other, 30, "changed"}), 10},
		"be it of the own section":                   {hostOf(event.Work{}, newest{intent, 10, "created"}, newest{own, 20, "credentials.rotated"}), 20},
		"and nothing, if nothing is cared for":       {hostOf(event.Work{}, newest{other, 30, "changed"}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := &work{b: &Bus{cfg: Config{Timing: DefaultTiming()}}, worker: careful{}, section: own}
			if got := w.visit(c.host, Trigger{}).tokenSeq(); got != c.want {
				t.Errorf("sequence %d, want %d", got, c.want)
			}
		})
	}
}

func TestSettledHostsAreNotWoken(t *testing.T) {
	image := &v1alpha1.Image{URL: "http://images.example/a"}
	host := func(change func(*lifecycle.Host)) lifecycle.Host {
		h := lifecycle.Host{UID: "u1", Rev: 9}
		h.Intent.Spec = v1alpha1.BareMetalHostSpec{Online: true, BMC: v1alpha1.BMCDetails{Address: "redfish://192.0.2.1", CredentialsName: "bmc"}}
		h.Registration.Registered, h.Inspection.Done, h.Provisioning.Phase = true, true, event.Prepared
		change(&h)
		return h
	}
	for name, c := range map[string]struct {
		host lifecycle.Host
		want bool
	}{
		"available, and nothing is asked":  {host(func(*lifecycle.Host) {}), true},
		"available, and an image is asked": {host(func(h *lifecycle.Host) { h.Intent.Spec.Image = image }), false},
		"not registered yet":               {host(func(h *lifecycle.Host) { h.Registration.Registered = false }), false},
		"not registered yet, but paused":   {host(func(h *lifecycle.Host) { h.Registration.Registered, h.Intent.Paused = false, true }), true},
		"provisioned as asked": {host(func(h *lifecycle.Host) {
			h.Provisioning.Phase, h.Provisioning.Image, h.Intent.Spec.Image = event.Deployed, *image, image
		}), true},
		"provisioned, and the image is gone from the wish": {host(func(h *lifecycle.Host) {
			h.Provisioning.Phase, h.Provisioning.Image = event.Deployed, *image
		}), false},
		"unmanaged": {host(func(h *lifecycle.Host) {
			h.Registration.Registered, h.Intent.Spec.BMC = false, v1alpha1.BMCDetails{}
		}), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := settled(c.host, lifecycle.Stage(c.host)); got != c.want {
				t.Errorf("in stage %s: %v, want %v", lifecycle.Stage(c.host), got, c.want)
			}
		})
	}
}
