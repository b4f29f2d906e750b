package redfish

import (
	"context"
	"fmt"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// subscription is how the making, or ending, of a subscription stands. What is at
// the BMC counts: so one that was made and forgotten is found, and not made again.
func (b *Backend) subscription(ctx context.Context, v view) (lifecycle.Outlook, error) {
	turn, open := lifecycle.NextSubscription(v.host)
	machine, speaks := v.bmc.(*bmc.BMC)
	switch {
	case !open:
		return lifecycle.Finished{}, nil
	case !speaks:
		return refuse(v1alpha1.PowerManagementError, fmt.Sprintf("the %s backend cannot subscribe to events over IPMI", Name)), nil
	}
	id, err := theOne(ctx, machine, v.host, turn)
	if err != nil {
		return nil, err
	}
	create, end := lifecycle.CreateStep(turn.UID), lifecycle.EndStep(turn.UID)
	answered := v.op() != nil && v.op().Answered && v.op().Refusals == 0
	switch {
	case turn.Wish != nil && id != "":
		return lifecycle.Finished{Result: lifecycle.Result{Subscription: id}}, nil
	case turn.Wish != nil && answered && v.step() == create:
		return without("the BMC took the subscription, and does not have it"), nil
	case turn.Wish != nil:
		return lifecycle.Needs{Write: create}, nil
	case id == "":
		return lifecycle.Finished{}, nil
	case answered && v.step() == end:
		return without("the BMC was told to end the subscription, and has it still"), nil
	default:
		return lifecycle.Needs{Write: end}, nil
	}
}

// without is the outlook of what was done without effect.
func without(message string) lifecycle.Outlook {
	return lifecycle.Broken{Problem: lifecycle.NewProblem(v1alpha1.PowerManagementError, event.ClassBackend, message)}
}

// theOne is the id of the subscription at the BMC that a turn is about, "" if it is
// not there.
func theOne(ctx context.Context, machine *bmc.BMC, h lifecycle.Host, turn lifecycle.SubscriptionTurn) (string, error) {
	all, err := machine.Subscriptions(ctx)
	for _, s := range all {
		if turn.Is(h, s.ID, s.Destination, s.Context) {
			return s.ID, err
		}
	}
	return "", err
}

// subscribe makes or ends the subscription that is next. What the BMC is to send
// along is read from its Secret, and goes nowhere else.
func (b *Backend) subscribe(ctx context.Context, h lifecycle.Host, c controller) error {
	turn, open := lifecycle.NextSubscription(h)
	machine, speaks := c.(*bmc.BMC)
	switch {
	case !open || !speaks:
		return nil // it is looked at again
	case turn.Wish != nil:
		s := bmc.Subscription{Destination: turn.Wish.Destination, Context: turn.Wish.Context}
		if ref := turn.Wish.Headers; ref.Name != "" {
			data, _, err := b.secrets.Get(ctx, h.Intent.Namespace, ref.Name)
			if err != nil {
				return err
			}
			s.Headers = lifecycle.Headers(data)
		}
		return machine.Subscribe(ctx, s)
	}
	id, err := theOne(ctx, machine, h, turn)
	if err != nil || id == "" {
		return err
	}
	return machine.Unsubscribe(ctx, id)
}
