package projector

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// history is what a host went through: a snapshot for each fact.
func history(h lifecycle.Host, facts ...lifecycle.Fact) []lifecycle.Host {
	var frames []lifecycle.Host
	for i, f := range facts {
		at := noon.Add(time.Duration(i) * time.Second)
		h = lifecycle.Apply(h, f, at)
		h = h.WithNewest(f.Section(), lifecycle.Meta{Rev: h.Rev + 1, Fact: f.Name(), At: at})
		frames = append(frames, h)
	}
	return frames
}

func born() lifecycle.Host { return lifecycle.Host{UID: "uid-1", Epoch: "e"} }

func created() lifecycle.Fact {
	return lifecycle.Wish{Fact: event.Created, Intent: intentOf(object(), surroundings{secret: "11", now: noon})}
}

func toAvailable() []lifecycle.Fact {
	on := true
	return []lifecycle.Fact{
		created(),
		lifecycle.Started{Kind: event.Enroll},
		lifecycle.Accepted{Kind: event.Enroll},
		lifecycle.Enrolled{Node: "n", Profile: "unknown"},
		lifecycle.Observed{What: event.PowerChanged, On: &on},
		lifecycle.Started{Kind: event.Inspect},
		lifecycle.Inspected{Digest: "d", Arch: "x86_64"},
		lifecycle.Started{Kind: event.Prepare},
		lifecycle.ReadyForImage{},
	}
}

func imageWanted(h lifecycle.Host) lifecycle.Fact {
	i := h.Intent
	i.Spec.Image = &v1alpha1.Image{URL: "http://192.0.2.80/os"}
	return lifecycle.Wish{Fact: event.Changed, Intent: sealed(i)}
}

func broken(kind event.Kind, message string) lifecycle.Fact {
	return lifecycle.Failed{Kind: kind, Problem: event.Problem{Type: v1alpha1.RegistrationError, Message: message}}
}

func TestPictures(t *testing.T) {
	available := last(history(born(), toAvailable()...))
	provisioned := last(history(available, imageWanted(available), lifecycle.Started{Kind: event.Deploy}, lifecycle.Provisioned{}))
	registering := last(history(born(), created()))
	on, off := true, false
	tests := map[string]struct {
		shown  view
		frames []lifecycle.Host
		// want are the states that are shown, with what is special about them.
		want []string
	}{
		"nothing happened":       {viewOf(available), nil, nil},
		"each state is shown":    {view{}, history(born(), toAvailable()...), []string{"registering", "inspecting", "preparing", "available"}},
		"the newest of a state":  {viewOf(registering), history(registering, lifecycle.Started{Kind: event.Enroll}), []string{"registering, minor"}},
		"steps of an operation":  {viewOf(last(history(registering, lifecycle.Started{Kind: event.Enroll}))), history(last(history(registering, lifecycle.Started{Kind: event.Enroll})), lifecycle.Accepted{Kind: event.Enroll}, lifecycle.Resumed{Kind: event.Enroll}), nil},
		"an error is shown":      {viewOf(registering), history(registering, broken(event.Enroll, "no answer")), []string{"registering, error: no answer"}},
		"another error as well":  {viewOf(registering), history(registering, broken(event.Enroll, "no answer"), broken(event.Enroll, "refused")), []string{"registering, error: no answer", "registering, error: refused"}},
		"the same error counts":  {viewOf(registering), history(registering, broken(event.Enroll, "no answer"), lifecycle.Started{Kind: event.Enroll}, broken(event.Enroll, "no answer")), []string{"registering, error: no answer", "registering, error: no answer, minor"}},
		"another try can wait":   {viewOf(last(history(registering, broken(event.Enroll, "no answer")))), history(last(history(registering, broken(event.Enroll, "no answer"))), lifecycle.Started{Kind: event.Enroll}), []string{"registering, minor"}},
		"what was undone is not": {viewOf(provisioned), history(provisioned, lifecycle.Observed{What: event.HealthChanged, Health: "OK"}, lifecycle.Observed{What: event.HealthChanged}), nil},
		"a power-off is shown, though it is on again": {
			viewOf(last(history(provisioned, lifecycle.Observed{What: event.PowerChanged, On: &on}))),
			history(last(history(provisioned, lifecycle.Observed{What: event.PowerChanged, On: &on})), lifecycle.Observed{What: event.PowerChanged, On: &off}, lifecycle.Observed{What: event.PowerChanged, On: &on}),
			[]string{"provisioned", "provisioned, minor"},
		},
		"detached is shown, and attached again": {
			viewOf(provisioned), history(provisioned, lifecycle.Detached{}, lifecycle.Enrolled{Node: "n2", Profile: "unknown"}),
			[]string{"provisioned, detached", "provisioned"},
		},
		"a state that came and went": {
			viewOf(provisioned), history(provisioned, lifecycle.Started{Kind: event.Undeploy}, lifecycle.Deprovisioned{}, lifecycle.Started{Kind: event.Deploy}),
			[]string{"deprovisioning", "available", "provisioning"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range pictures(tc.shown, tc.frames) {
				got = append(got, describe(p))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// describe is a picture in words.
func describe(p picture) string {
	text := string(lifecycle.Stage(p.host))
	if lifecycle.OperationalStatus(p.host) == v1alpha1.OperationalStatusDetached {
		text += ", detached"
	}
	if problem := lifecycle.Problem(p.host); problem != nil {
		text += ", error: " + problem.Message
	}
	if p.minor {
		text += ", minor"
	}
	return text
}

func last(frames []lifecycle.Host) lifecycle.Host { return frames[len(frames)-1] }

// Whatever a host goes through, and in whatever portions it is shown: each of
// its states is shown once, in order, and the end is what is shown last.
func TestEachStateIsShownOnceAndInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frames := wander(t)
		var states, shown []v1alpha1.ProvisioningState
		for _, h := range frames {
			states = follow(states, lifecycle.Stage(h))
		}
		status := view{}
		for rest := frames; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "portion")
			for _, p := range pictures(status, rest[:n]) {
				status = viewOf(p.host)
				shown = follow(shown, status.Provisioning.State)
			}
			rest = rest[n:]
		}
		if diff := cmp.Diff(states, shown); diff != "" {
			t.Fatalf("(-went through +shown)\n%s", diff)
		}
		if weigh(status, viewOf(last(frames))) != none {
			t.Fatalf("%+v is shown in the end, it is %+v", status, viewOf(last(frames)))
		}
	})
}

func follow(states []v1alpha1.ProvisioningState, s v1alpha1.ProvisioningState) []v1alpha1.ProvisioningState {
	if len(states) > 0 && states[len(states)-1] == s {
		return states
	}
	return append(states, s)
}

// wander is a random life, as far as the lifecycle allows it.
func wander(t *rapid.T) []lifecycle.Host {
	on, off := true, false
	choices := []lifecycle.Fact{
		lifecycle.Started{Kind: event.Enroll},
		lifecycle.Enrolled{Node: "n", Profile: "unknown"},
		broken(event.Enroll, "no answer"),
		lifecycle.Started{Kind: event.Inspect},
		lifecycle.Inspected{Digest: "d"},
		lifecycle.Started{Kind: event.Prepare},
		lifecycle.ReadyForImage{},
		lifecycle.Started{Kind: event.Deploy},
		lifecycle.Provisioned{},
		broken(event.Deploy, "bad image"),
		lifecycle.Started{Kind: event.Undeploy},
		lifecycle.Deprovisioned{},
		lifecycle.Observed{What: event.PowerChanged, On: &on},
		lifecycle.Observed{What: event.PowerChanged, On: &off},
	}
	frames := history(born(), created())
	frames = append(frames, history(last(frames), imageWanted(last(frames)))...)
	for range rapid.IntRange(0, 40).Draw(t, "length") {
		h := last(frames)
		f := rapid.SampledFrom(choices).Draw(t, "fact")
		if next := history(h, f); lifecycle.Check(h, next[0], f) == nil {
			frames = append(frames, next...)
		}
	}
	return frames
}

func TestAHostInUseIsNotLedThroughItsYouth(t *testing.T) {
	youth := history(born(), toAvailable()...)
	use := history(last(youth), imageWanted(last(youth)), lifecycle.Started{Kind: event.Deploy}, lifecycle.Provisioned{}, lifecycle.Observed{What: event.HealthChanged, Health: "OK"})
	out := history(last(use), lifecycle.Started{Kind: event.Undeploy})
	tests := map[string]struct {
		frames []lifecycle.Host
		since  uint64
		want   []v1alpha1.ProvisioningState
	}{
		"a new host is": {youth, 0, []v1alpha1.ProvisioningState{"registering", "inspecting", "preparing", "available"}},
		"a host in use that shows nothing is not": {
			append(append([]lifecycle.Host{}, youth...), use...), 0, []v1alpha1.ProvisioningState{"provisioned"},
		},
		"a host that was in use shows that, and on": {
			append(append(append([]lifecycle.Host{}, youth...), use...), out...), 0, []v1alpha1.ProvisioningState{"provisioned", "deprovisioning"},
		},
		"a host that shows where it was goes on from there": {
			append(append([]lifecycle.Host{}, youth[3:]...), use...), 3, []v1alpha1.ProvisioningState{"inspecting", "preparing", "available", "provisioning", "provisioned"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []v1alpha1.ProvisioningState
			for _, h := range fit(tc.frames, tc.since) {
				got = follow(got, lifecycle.Stage(h))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDraw(t *testing.T) {
	o := object()
	at := metav1.NewTime(earlier)
	o.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: "NotProvisioned", LastTransitionTime: at},
		{Type: v1alpha1.AvailableForProvisioningCondition, Status: metav1.ConditionFalse, Reason: "NotAvailable", LastTransitionTime: at},
		{Type: conflictCondition, Status: metav1.ConditionTrue, LastTransitionTime: at},
		{Type: degradedCondition, Status: metav1.ConditionTrue, Reason: "DeadLetter", LastTransitionTime: at},
	}
	h := last(history(born(), toAvailable()...))
	s := draw(o, h, drawing{hardware: &v1alpha1.HardwareDetails{Hostname: "a"}, generation: 5, now: noon})
	if s.HardwareDetails.Hostname != "a" || !s.LastUpdated.Time.Equal(noon) {
		t.Errorf("status is %+v", s)
	}
	var kinds []string
	for _, c := range s.Conditions {
		kinds = append(kinds, c.Type)
		since := noon
		if c.Type == v1alpha1.ReadyCondition || c.Type == degradedCondition {
			since = earlier
		}
		if !c.LastTransitionTime.Time.Equal(since) {
			t.Errorf("%s is so since %s, want %s", c.Type, c.LastTransitionTime, since)
		}
		if c.Type != degradedCondition && c.ObservedGeneration != 5 {
			t.Errorf("%s is about generation %d", c.Type, c.ObservedGeneration)
		}
	}
	if diff := cmp.Diff(append(ownConditions(), degradedCondition, projectedCondition), kinds); diff != "" {
		t.Error(diff)
	}
	o.Status = s
	if r, ok := shownBy(o); !ok || r != revisionOf(h) {
		t.Errorf("it shows %v, %v", r, ok)
	}
	if weigh(view{s, h.Inspection.Digest}, viewOf(h)) != none {
		t.Error("what was drawn differs from the host")
	}
}
