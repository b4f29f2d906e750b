package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func asks(uids ...string) func(*lifecycle.Host) {
	return func(h *lifecycle.Host) {
		for _, uid := range uids {
			h.Intent.Subscriptions = append(h.Intent.Subscriptions, event.SubscriptionWish{UID: uid, Name: uid, Destination: "https://192.0.2.9/" + uid})
		}
	}
}

func knows(list ...event.Subscription) func(*lifecycle.Host) {
	return func(h *lifecycle.Host) { h.Power.Subscriptions = list }
}

func TestNextSubscription(t *testing.T) {
	t.Parallel()
	failed := func(uid string, times int, ago time.Duration) event.Subscription {
		return event.Subscription{UID: uid, Failures: times, TriedAt: epoch.Add(-ago)}
	}
	for name, tt := range map[string]struct {
		host lifecycle.Host
		want string // "" for none; "end" before the uid of one that is to go
		due  bool
	}{
		"none is asked for":                        {inUse(), "", false},
		"one is asked for":                         {inUse(asks("a")), "a", true},
		"it is there":                              {inUse(asks("a"), knows(event.Subscription{UID: "a", ID: "1"})), "", false},
		"it may be there":                          {inUse(asks("a"), knows(event.Subscription{UID: "a"})), "a", true},
		"another one is asked for":                 {inUse(asks("a", "b"), knows(event.Subscription{UID: "a", ID: "1"})), "b", true},
		"it is not asked for any more":             {inUse(knows(event.Subscription{UID: "a", ID: "1"})), "end a", true},
		"it failed just now":                       {inUse(asks("a"), knows(failed("a", 1, time.Second))), "a", false},
		"it failed once, a while ago":              {inUse(asks("a"), knows(failed("a", 1, 11*time.Second))), "a", true},
		"it failed often, a while ago":             {inUse(asks("a"), knows(failed("a", 9, time.Minute))), "a", false},
		"it failed often, minutes ago":             {inUse(asks("a"), knows(failed("a", 9, 3*time.Minute))), "a", true},
		"one that failed does not hold up another": {inUse(asks("a", "b"), knows(failed("a", 1, time.Second))), "b", true},
		"it could not be made, and is to end":      {inUse(knows(failed("a", 9, time.Second))), "end a", true},
		"the host is paused":                       {inUse(asks("a"), func(h *lifecycle.Host) { h.Intent.Paused = true }), "a", false},
		"the host is detached":                     {inUse(asks("a"), func(h *lifecycle.Host) { h.Intent.Detached = &event.DetachRequest{} }), "a", false},
		"the backend lost the host":                {inUse(asks("a"), func(h *lifecycle.Host) { h.Registration.Lost = true }), "a", false},
		"an image is on its way":                   {inUse(asks("a"), func(h *lifecycle.Host) { h.Provisioning.Phase = event.Deploying }), "a", false},
		"the host is available":                    {inUse(asks("a"), func(h *lifecycle.Host) { h.Provisioning = event.Provisioning{Phase: event.Prepared} }), "a", true},
		"the host goes, and is yet to be cleaned":  {inUse(asks("a"), knows(event.Subscription{UID: "a", ID: "1"}), gone), "end a", false},
		"the host goes, and is clean":              {inUse(asks("a"), knows(event.Subscription{UID: "a", ID: "1"}), gone, clean), "end a", true},
		"the host goes, and none was made":         {inUse(asks("a"), gone, clean), "", false},
		"the host goes, and it could not be ended": {inUse(knows(event.Subscription{UID: "a", ID: "1", GivenUp: true}), gone, clean), "", false},
		"one is being made": {inUse(asks("a", "b"), func(h *lifecycle.Host) {
			h.Power.Op = &event.Op{Kind: event.Subscribe, Step: lifecycle.CreateStep("b")}
		}), "b", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turn, open := lifecycle.NextSubscription(tt.host)
			got := turn.UID
			if open && turn.Wish == nil {
				got = "end " + got
			}
			if got != tt.want || open != (tt.want != "") {
				t.Errorf("next is %q, want %q", got, tt.want)
			}
			if due := lifecycle.SubscriptionDue(tt.host, epoch); due != tt.due {
				t.Errorf("due %v, want %v", due, tt.due)
			}
		})
	}
}

func clean(h *lifecycle.Host) { h.Provisioning = event.Provisioning{Phase: event.Prepared} }

// A subscription is remembered from its first write on, whatever becomes of it;
// failures are its own, and none of the host's.
func TestSubscriptionFacts(t *testing.T) {
	t.Parallel()
	h := record(inUse(asks("a")), lifecycle.Started{Kind: event.Subscribe, Step: lifecycle.CreateStep("a")})
	made := event.Subscription{UID: "a", Name: "a", Destination: "https://192.0.2.9/a"}
	check := func(what string, want ...event.Subscription) {
		t.Helper()
		if diff := cmp.Diff(want, h.Power.Subscriptions); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
		if p := lifecycle.Problem(h); p != nil || h.Power.Failures != 0 {
			t.Errorf("%s: the host has a problem %+v", what, p)
		}
	}
	check("begun", made)
	given := record(h, lifecycle.Aborted{Kind: event.Subscribe})
	if !lifecycle.SubscriptionHeld(given, "a") {
		t.Error("what was begun and given up is forgotten")
	}
	problem := lifecycle.NewProblem(v1alpha1.PowerManagementError, event.ClassUnreachable, "no answer")
	h = record(h, lifecycle.Failed{Kind: event.Subscribe, Problem: problem})
	problem.At, problem.Kind = epoch, event.Subscribe
	failed := made
	failed.Failures, failed.TriedAt, failed.Problem = 1, epoch, &problem
	check("failed", failed)
	before := h
	h = record(h, lifecycle.SubscriptionSet{UID: "a", ID: "7"})
	made.ID = "7"
	check("made", made)
	if diff := cmp.Diff([]event.Subscription{failed}, before.Power.Subscriptions); diff != "" {
		t.Errorf("an earlier revision has changed: %s", diff)
	}
	h.Intent.Subscriptions = nil
	h = record(h, lifecycle.SubscriptionSet{UID: "a"})
	if h.Power.Subscriptions = append([]event.Subscription(nil), h.Power.Subscriptions...); len(h.Power.Subscriptions) != 0 || lifecycle.SubscriptionHeld(h, "a") {
		t.Errorf("ended: %+v", h.Power.Subscriptions)
	}
}

// What stays at the BMC of a host that had to go is told.
func TestSubscriptionsLeftBehindAreTold(t *testing.T) {
	t.Parallel()
	h := inUse(knows(event.Subscription{UID: "a", ID: "1", Destination: "https://192.0.2.9/a"}), gone, clean)
	h = record(h, lifecycle.Failed{Kind: event.Subscribe, Problem: lifecycle.NewProblem(v1alpha1.PowerManagementError, event.ClassUnreachable, "no answer")})
	if _, open := lifecycle.NextSubscription(h); open {
		t.Error("it is tried again")
	}
	news := lifecycle.Announce(h, record(h, lifecycle.Removed{}), event.SectionRegistration, "remove.succeeded")
	if len(news) != 1 || news[0].Reason != "DeletedIncompletely" {
		t.Errorf("told %+v", news)
	}
}
