package ironic_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// subscriber is an available host for which a subscription is asked.
func (l *lab) subscriber(headers string) lifecycle.Host {
	l.Helper()
	h := l.available(l.host())
	w := event.SubscriptionWish{UID: "u1", Name: "alerts", Destination: "https://192.0.2.90/events"}
	if headers != "" {
		w.Headers = event.SecretRef{Namespace: namespace, Name: headers}
	}
	h.Intent.Subscriptions = []event.SubscriptionWish{w}
	return h
}

// What the BMC is to send along comes from the Secret, and shows nowhere.
func TestSubscriptionHeaders(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	const token = "Bearer s3cret-canary"
	l.secrets.put("headers", "1", map[string]string{"Authorization": token})
	h, r := l.must(l.subscriber("headers"), event.Subscribe)
	if r.Subscription == "" {
		t.Error("the subscription has no name at the BMC")
	}
	want := []ironictest.Subscription{{Destination: "https://192.0.2.90/events", Headers: []any{map[string]any{"Authorization": token}}}}
	if diff := cmp.Diff(want, l.machine(h).Subscriptions()); diff != "" {
		t.Error(diff)
	}
	for what, text := range map[string]string{"result": r.Subscription, "step": h.Power.Op.Step} {
		if strings.Contains(text, "canary") {
			t.Errorf("the %s shows a secret: %s", what, text)
		}
	}
}

// A crash between the making of a subscription and the word of it makes no second one.
func TestASubscriptionIsFoundAgain(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.subscriber("")
	first, r := l.must(h, event.Subscribe)
	_, again := l.must(h, event.Subscribe)
	if n := len(l.machine(first).Subscriptions()); n != 1 || again.Subscription != r.Subscription {
		t.Errorf("%d subscriptions, found %q again as %q", n, r.Subscription, again.Subscription)
	}
}

func TestSubscriptionTroubles(t *testing.T) {
	for name, c := range map[string]struct {
		headers string
		change  func(*lab, *lifecycle.Host)
		class   event.Class
		says    string
	}{
		"the Secret is not there": {"missing", func(*lab, *lifecycle.Host) {}, event.ClassCredentials, "missing"},
		"the BMC is down":         {"", func(l *lab, h *lifecycle.Host) { l.machine(*h).SetFaults(ironictest.Faults{Down: true}) }, event.ClassUnreachable, "connection failed"},
		"the BMC speaks IPMI": {"", func(_ *lab, h *lifecycle.Host) {
			h.Intent.Spec.BMC.Address = "ipmi://192.0.2.10"
			h.Registration.Address = h.Intent.Spec.BMC.Address
		}, event.ClassUnsupported, "ipmi"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, ironictest.Config{}, nil)
			h := l.subscriber(c.headers)
			c.change(l, &h)
			h, p := l.fails(h, event.Subscribe)
			if p.Class != c.class || !strings.Contains(p.Message, c.says) {
				t.Errorf("class %q, message %q: want %q and %q", p.Class, p.Message, c.class, c.says)
			}
			if n := len(l.machine(h).Subscriptions()); n != 0 {
				t.Errorf("%d subscriptions were made", n)
			}
		})
	}
}
