package powermonitor

import (
	"context"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// bmc is a backend whose machine is as it is said to be.
type bmc struct {
	power   backend.PowerState
	outlook lifecycle.Outlook
	looks   []event.Kind
}

func (b *bmc) Look(_ context.Context, k event.Kind, _ lifecycle.Host) (lifecycle.Outlook, error) {
	b.looks = append(b.looks, k)
	return b.outlook, nil
}

func (*bmc) Do(context.Context, lifecycle.Host, lifecycle.Write) error { return nil }

func (b *bmc) Power(context.Context, lifecycle.Host) (backend.PowerState, error) { return b.power, nil }

// Subscriptions come after the power, and are tried again when it is time.
func TestSubscriptionsComeAfterThePower(t *testing.T) {
	on, off := true, false
	wish := func(h *lifecycle.Host) { h.Intent.Subscriptions = []event.SubscriptionWish{{UID: "s"}} }
	failedAt := func(at time.Time) change {
		return func(h *lifecycle.Host) {
			h.Power.Subscriptions = []event.Subscription{{UID: "s", Failures: 1, TriedAt: at}}
		}
	}
	for name, c := range map[string]struct {
		host lifecycle.Host
		now  backend.PowerState
		want lifecycle.Step
	}{
		"the power is as it should be":  {host(event.Prepared, known(true), wish), backend.PowerState{On: &on}, lifecycle.Write{Kind: event.Subscribe, Name: "x", Reason: "a subscription to the BMC's events is wanted"}},
		"the power is to change":        {host(event.Prepared, known(false), wish), backend.PowerState{On: &off}, lifecycle.Write{Kind: event.PowerOn, Name: "x", Reason: "spec.online is true"}},
		"the BMC does not answer":       {host(event.Prepared, known(true), wish, func(h *lifecycle.Host) { h.Power.Fault = "f" }), backend.PowerState{On: &on, Fault: "f"}, lifecycle.Wait{For: "a change of power", Every: time.Minute, Steady: true}},
		"it failed just now":            {host(event.Prepared, known(true), wish, failedAt(now)), backend.PowerState{On: &on}, lifecycle.Wait{For: "a change of power", Every: 10 * time.Second, Steady: true}},
		"it failed, and is tried again": {host(event.Prepared, known(true), wish, failedAt(now.Add(-time.Minute))), backend.PowerState{On: &on}, lifecycle.Write{Kind: event.Subscribe, Name: "x", Reason: "a subscription to the BMC's events is wanted"}},
		"it is not wanted any more":     {host(event.Prepared, known(true), failedAt(now)), backend.PowerState{On: &on}, lifecycle.Write{Kind: event.Subscribe, Name: "x", Reason: "the subscription to the BMC's events is not wanted any more"}},
		"nothing is asked for":          {host(event.Prepared, known(true)), backend.PowerState{On: &on}, lifecycle.Wait{For: "a change of power", Every: time.Minute, Steady: true}},
		"one is being made, whatever the power is": {host(event.Prepared, known(true), wish, func(h *lifecycle.Host) {
			h.Power.Op = &event.Op{Kind: event.Subscribe, Step: lifecycle.CreateStep("s")}
		}), backend.PowerState{On: &off}, lifecycle.Write{Kind: event.Subscribe, Name: "x", Reason: "a subscription to the BMC's events is wanted"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bmc{power: c.now, outlook: lifecycle.Needs{Write: "x"}}
			p := New(b, func() time.Time { return now }, Config{Every: time.Minute})
			step, err := p.Step(t.Context(), c.host)
			if err != nil || step != c.want {
				t.Errorf("%+v (%v), want %+v", step, err, c.want)
			}
		})
	}
}

// A subscription that the backend puts off does not hold up the power for long.
func TestASubscriptionThatIsPutOffIsLeftForLater(t *testing.T) {
	h := host(event.Prepared, known(true), func(h *lifecycle.Host) {
		h.Intent.Subscriptions = []event.SubscriptionWish{{UID: "s"}}
		h.Power.Op = &event.Op{Kind: event.Subscribe, Step: lifecycle.CreateStep("s"), Answered: true, Refusals: patience}
	})
	step, err := New(&bmc{}, func() time.Time { return now }, Config{Every: time.Minute}).Step(t.Context(), h)
	if r, ok := step.(lifecycle.Record); err != nil || !ok || r.Fact.Name() != "subscribe.failed" {
		t.Errorf("%+v (%v)", step, err)
	}
}

// What was found at the BMC is recorded of the subscription that it is about.
func TestASubscriptionIsRecorded(t *testing.T) {
	h := host(event.Prepared, known(true), func(h *lifecycle.Host) { h.Intent.Subscriptions = []event.SubscriptionWish{{UID: "s"}} })
	b := &bmc{power: backend.PowerState{On: h.Power.On}, outlook: lifecycle.Finished{Result: lifecycle.Result{Subscription: "7"}}}
	step, err := New(b, func() time.Time { return now }, Config{Every: time.Minute}).Step(t.Context(), h)
	if want := (lifecycle.Record{Fact: lifecycle.SubscriptionSet{UID: "s", ID: "7"}}); err != nil || step != lifecycle.Step(want) {
		t.Errorf("%+v (%v), want %+v", step, err, want)
	}
}
