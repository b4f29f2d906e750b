package ironic

import (
	"context"
	"errors"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// subscription is how the making, or ending, of a subscription stands. What is at
// the BMC counts: so one that was made and forgotten is found, and not made again.
func (b *Backend) subscription(ctx context.Context, v view) (lifecycle.Outlook, error) {
	turn, open := lifecycle.NextSubscription(v.host)
	if !open {
		return finished(), nil
	}
	if !v.wish.family.Capabilities.Events {
		return v.refuse(event.ClassUnsupported, "the BMC cannot be asked for its events over "+v.wish.family.Driver,
			"Use a redfish address for the BMC, or subscribe there"), nil
	}
	all, err := b.client.Subscriptions(ctx, v.node.UUID)
	switch {
	case errors.Is(err, lifecycle.ErrBusy):
		return underway("Ironic, which holds the node", lifecycle.Quick), nil
	case err != nil:
		return nil, err
	}
	id := theOne(v.host, turn, all)
	create, end := lifecycle.CreateStep(turn.UID), lifecycle.EndStep(turn.UID)
	switch {
	case turn.Wish != nil && id != "":
		return lifecycle.Finished{Result: lifecycle.Result{Subscription: id}}, nil
	case turn.Wish != nil && v.did(create):
		return v.broken(event.ClassBackend, "make the subscription: ", "the BMC took it, and does not have it"), nil
	case turn.Wish != nil:
		return needs(create), nil
	case id == "":
		return finished(), nil
	case v.did(end):
		return v.broken(event.ClassBackend, "end the subscription: ", "the BMC has it still"), nil
	default:
		return needs(end), nil
	}
}

// theOne is the id of the subscription at the BMC that a turn is about, "" if it is
// not there.
func theOne(h lifecycle.Host, turn lifecycle.SubscriptionTurn, all []ironic.Subscription) string {
	for _, s := range all {
		if turn.Is(h, s.ID, s.Destination, s.Context) {
			return s.ID
		}
	}
	return ""
}

// doSubscribe makes or ends the subscription that is next. What the BMC is to send
// along is read from its Secret, and goes nowhere else.
func (b *Backend) doSubscribe(ctx context.Context, v view) error {
	turn, open := lifecycle.NextSubscription(v.host)
	if !open {
		return nil
	}
	if err := fence(v.node, v.host); err != nil {
		return err
	}
	if turn.Wish == nil {
		return b.endSubscription(ctx, v, turn)
	}
	s := ironic.Subscription{Destination: turn.Wish.Destination, Context: turn.Wish.Context}
	if ref := turn.Wish.Headers; ref.Name != "" {
		data, _, err := b.beside.Secrets.Get(ctx, v.host.Intent.Namespace, ref.Name)
		if err != nil {
			return err
		}
		s.Headers = lifecycle.Headers(data)
	}
	_, err := b.client.Subscribe(ctx, v.node.UUID, s)
	return err
}

func (b *Backend) endSubscription(ctx context.Context, v view, turn lifecycle.SubscriptionTurn) error {
	all, err := b.client.Subscriptions(ctx, v.node.UUID)
	if err != nil {
		return err
	}
	if id := theOne(v.host, turn, all); id != "" {
		return b.client.Unsubscribe(ctx, v.node.UUID, id)
	}
	return nil
}
