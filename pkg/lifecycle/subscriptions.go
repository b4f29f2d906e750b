package lifecycle

import (
	"slices"
	"strings"
	"time"

	"github.com/metalbus/metalbus/api/event"
)

// The writes of subscriptions are named after them.
const (
	createStep = "create/"
	endStep    = "delete/"
)

// CreateStep is the write that makes a subscription at a BMC.
func CreateStep(uid string) string { return createStep + uid }

// Headers are the HTTP headers in a Secret that a subscription names.
func Headers(secret map[string][]byte) map[string]string {
	headers := map[string]string{}
	for name, value := range secret {
		headers[name] = string(value)
	}
	return headers
}

// EndStep is the write that ends one.
func EndStep(uid string) string { return endStep + uid }

// SubscriptionTurn is what is next to be done about a subscription.
type SubscriptionTurn struct {
	UID string
	// Wish is what is asked for, nil if it is to be ended.
	Wish *event.SubscriptionWish
	// Known is what is known of it.
	Known event.Subscription
	// At is when it is time for that.
	At time.Time
	// known: it may be there.
	known bool
}

// NextSubscription is the subscription that is dealt with next: the one whose
// operation is under way, else the one whose time comes first; ok is false if
// all are as they should be.
func NextSubscription(h Host) (turn SubscriptionTurn, ok bool) {
	if h.Doing(event.Subscribe) {
		_, uid, _ := strings.Cut(h.Power.Op.Step, "/")
		return turnOf(h, uid), true
	}
	var open []SubscriptionTurn
	for _, uid := range subscriptionUIDs(h) {
		if t := turnOf(h, uid); t.open() {
			open = append(open, t)
		}
	}
	if len(open) == 0 {
		return SubscriptionTurn{}, false
	}
	return slices.MinFunc(open, func(a, b SubscriptionTurn) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return strings.Compare(a.UID, b.UID)
	}), true
}

// SubscriptionDue reports whether something is to be done about a subscription
// of the host now.
func SubscriptionDue(h Host, now time.Time) bool {
	t, ok := NextSubscription(h)
	return ok && subscribable(h) && !now.Before(t.At)
}

// subscribable reports whether subscriptions are made and ended: at hosts at
// rest, and ended at those that go.
func subscribable(h Host) bool {
	if !Reachable(h) || h.Intent.Paused || Apart(h) {
		return false
	}
	stage := Stage(h)
	return (AtRest(stage) && !Leaving(h)) || stage == poweringOff
}

// subscribes: something is to be done about a subscription.
func subscribes(h Host) bool {
	_, ok := NextSubscription(h)
	return ok && subscribable(h)
}

// subscriptionUIDs are the subscriptions that are asked for, or known.
func subscriptionUIDs(h Host) []string {
	var uids []string
	for _, w := range h.Intent.Subscriptions {
		uids = append(uids, w.UID)
	}
	for _, s := range h.Power.Subscriptions {
		uids = append(uids, s.UID)
	}
	slices.Sort(uids)
	return slices.Compact(uids)
}

func turnOf(h Host, uid string) SubscriptionTurn {
	t := SubscriptionTurn{UID: uid, Known: event.Subscription{UID: uid}}
	if i := slices.IndexFunc(h.Power.Subscriptions, func(s event.Subscription) bool { return s.UID == uid }); i >= 0 {
		t.Known, t.known = h.Power.Subscriptions[i], true
	}
	wished := slices.IndexFunc(h.Intent.Subscriptions, func(w event.SubscriptionWish) bool { return w.UID == uid })
	if wished >= 0 && !Leaving(h) {
		t.Wish = &h.Intent.Subscriptions[wished]
	}
	if t.Known.Failures > 0 && t.Known.Ending == (t.Wish == nil) {
		t.At = t.Known.TriedAt.Add(pause(t.Known.Failures))
	}
	return t
}

// Is reports whether a subscription that is at the BMC of the host is the one
// that this turn is about: by its ID if that is known, else by what it was made
// of, if it is none of the others'.
func (t SubscriptionTurn) Is(h Host, id, destination, context string) bool {
	if t.Known.ID != "" {
		return id == t.Known.ID
	}
	taken := func(s event.Subscription) bool { return s.ID == id }
	if slices.ContainsFunc(h.Power.Subscriptions, taken) {
		return false
	}
	if t.Wish != nil {
		return destination == t.Wish.Destination && context == t.Wish.Context
	}
	return destination == t.Known.Destination && context == t.Known.Context
}

// open reports whether something is still to be done.
func (t SubscriptionTurn) open() bool {
	if t.Wish != nil {
		return t.Known.ID == ""
	}
	return t.known && !t.Known.GivenUp
}

const (
	firstPause = 10 * time.Second
	lastPause  = 3 * time.Minute
)

// pause is how long a subscription rests after so many failures in a row.
func pause(failures int) time.Duration {
	d := firstPause
	for ; failures > 1 && d < lastPause; failures-- {
		d *= 2
	}
	return min(d, lastPause)
}

// SubscriptionHeld reports whether a subscription is at the BMC, or may be: its
// object is still needed.
func SubscriptionHeld(h Host, uid string) bool {
	known := func(s event.Subscription) bool { return s.UID == uid }
	wished := func(w event.SubscriptionWish) bool { return w.UID == uid }
	return slices.ContainsFunc(h.Power.Subscriptions, known) || slices.ContainsFunc(h.Intent.Subscriptions, wished)
}

// noteSubscription remembers a subscription that a write may make.
func noteSubscription(h *Host, step string) {
	uid, create := strings.CutPrefix(step, createStep)
	if !create {
		return
	}
	changeSubscription(h, uid, func(*event.Subscription) {})
}

// changeSubscription changes what is known of a subscription.
func changeSubscription(h *Host, uid string, change func(*event.Subscription)) {
	list := slices.Clone(h.Power.Subscriptions)
	i := slices.IndexFunc(list, func(s event.Subscription) bool { return s.UID == uid })
	if i < 0 {
		s := event.Subscription{UID: uid}
		if w := turnOf(*h, uid).Wish; w != nil {
			s.Name, s.Destination, s.Context = w.Name, w.Destination, w.Context
		}
		list = append(list, s)
		i = len(list) - 1
	}
	change(&list[i])
	h.Power.Subscriptions = list
}

// subscriptionFailed notes a try in vain. It is no problem of the host. At one
// that goes it is not tried again.
func subscriptionFailed(h *Host, p event.Problem, at time.Time) {
	turn, ok := NextSubscription(*h)
	if !ok {
		return
	}
	p.At, p.Kind = at, event.Subscribe
	changeSubscription(h, turn.UID, func(s *event.Subscription) {
		ending := turn.Wish == nil
		if s.Ending != ending {
			s.Failures = 0
		}
		s.Ending, s.TriedAt, s.Problem = ending, at, &p
		s.Failures++
		s.GivenUp = Leaving(*h)
	})
}

// leftSubscriptions says which subscriptions were left at the BMC of a host that
// had to go, "" if none.
func leftSubscriptions(h Host) string {
	var left []string
	for _, s := range h.Power.Subscriptions {
		if s.GivenUp {
			left = append(left, s.Destination)
		}
	}
	if len(left) == 0 {
		return ""
	}
	return "the BMC goes on sending its events to " + strings.Join(left, ", ")
}

// subscriptionNews tells of a failure when it is new, and of what was made.
func subscriptionNews(before, after Host) *Announcement {
	for _, s := range after.Power.Subscriptions {
		was := turnOf(before, s.UID).Known
		switch {
		case s.Problem != nil && (was.Problem == nil || was.Problem.Message != s.Problem.Message):
			return &Announcement{Reason: "SubscriptionError", Message: s.Name + ": " + Message(*s.Problem), Warning: true}
		case s.ID != "" && was.ID == "":
			return &Announcement{Reason: "Subscribed", Message: "The BMC sends its events to " + s.Destination}
		}
	}
	return nil
}
