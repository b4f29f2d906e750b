package hostwish

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

type subscription = v1alpha1.BMCEventSubscription

// hostOf is the host whose BMC is to send its events.
func hostOf(s *subscription) types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Spec.HostName}
}

// subscriptionsOf are the subscriptions of a host, by uid.
func (w *Wishes) subscriptionsOf(host types.NamespacedName) []*subscription {
	var list []*subscription
	for _, s := range w.subscriptions.All() {
		if hostOf(s) == host {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *subscription) int { return strings.Compare(string(a.UID), string(b.UID)) })
	return list
}

// askSubscriptions is what a BMC is to send where. What may not be followed is left
// out: whoever may write a subscription could else have any Secret sent anywhere.
func (w *Wishes) askSubscriptions(o *v1alpha1.BareMetalHost) []event.SubscriptionWish {
	var list []event.SubscriptionWish
	for _, s := range w.subscriptionsOf(client.ObjectKeyFromObject(o)) {
		if s.DeletionTimestamp != nil || refused(s) != "" {
			continue
		}
		wish := event.SubscriptionWish{UID: string(s.UID), Name: s.Name, Destination: v1alpha1.WithoutLogin(s.Spec.Destination), Context: s.Spec.Context}
		if ref := s.Spec.HTTPHeadersRef; ref != nil {
			wish.Headers = event.SecretRef{Namespace: s.Namespace, Name: ref.Name}
		}
		list = append(list, wish)
	}
	return list
}

// refused says why a subscription is not followed, "" if it is.
func refused(s *subscription) string {
	ref := s.Spec.HTTPHeadersRef
	switch {
	case s.Spec.Destination == "":
		return "destination cannot be empty: delete the subscription, and make one that has it"
	case ref != nil && ref.Namespace != s.Namespace:
		return "httpHeadersRef secret must be in the same namespace as the BMCEventSubscription: delete the subscription, and make one that says so"
	case s.Status.SubscriptionID == "":
		return loginText(admission.SubscriptionLogins(s))
	default:
		return "" // it is at the BMC, with its login if it has one
	}
}

func (w *Wishes) subscriptionDigest(o *v1alpha1.BareMetalHost) string {
	var b strings.Builder
	for _, s := range w.subscriptionsOf(client.ObjectKeyFromObject(o)) {
		fmt.Fprintf(&b, "%s %v ", s.UID, s.DeletionTimestamp != nil)
	}
	return b.String()
}

// rememberSubscriptions are what the objects say is at the BMC.
func (w *Wishes) rememberSubscriptions(o *v1alpha1.BareMetalHost) []event.Subscription {
	var list []event.Subscription
	for _, s := range w.subscriptionsOf(client.ObjectKeyFromObject(o)) {
		if s.Status.SubscriptionID != "" {
			list = append(list, event.Subscription{UID: string(s.UID), Name: s.Name, Destination: v1alpha1.WithoutLogin(s.Spec.Destination), Context: s.Spec.Context, ID: s.Status.SubscriptionID})
		}
	}
	return list
}

func (w *Wishes) showSubscriptions(ctx context.Context, o *v1alpha1.BareMetalHost, h lifecycle.Host) error {
	for _, s := range w.subscriptionsOf(client.ObjectKeyFromObject(o)) {
		if moving(s) {
			continue
		}
		if err := w.showSubscription(ctx, s, o, h); err != nil {
			return err
		}
	}
	return nil
}

func (w *Wishes) showSubscription(ctx context.Context, s *subscription, o *v1alpha1.BareMetalHost, h lifecycle.Host) error {
	switch {
	case s.DeletionTimestamp != nil && (leaves(h) || !lifecycle.SubscriptionHeld(h, string(s.UID))):
		return w.unhold(ctx, s, v1alpha1.BMCEventSubscriptionFinalizer)
	case s.DeletionTimestamp == nil && o.DeletionTimestamp == nil:
		held, err := w.hold(ctx, s, nil, v1alpha1.BMCEventSubscriptionFinalizer)
		if err != nil {
			return err
		}
		s = held.(*subscription)
	}
	return w.say(ctx, s, subscriptionStatus(s, h))
}

// subscriptionStatus is what is shown of a subscription.
func subscriptionStatus(s *subscription, h lifecycle.Host) v1alpha1.BMCEventSubscriptionStatus {
	status := v1alpha1.BMCEventSubscriptionStatus{Error: refused(s)}
	for _, known := range h.Power.Subscriptions {
		if known.UID != string(s.UID) {
			continue
		}
		status.SubscriptionID = known.ID
		if known.Problem != nil {
			status.Error = lifecycle.Message(*known.Problem)
		}
	}
	return status
}

// say shows a status on a subscription.
func (w *Wishes) say(ctx context.Context, s *subscription, status v1alpha1.BMCEventSubscriptionStatus) error {
	if s.Status == status {
		return nil
	}
	return w.write(ctx, s, fields{"subscriptionID": status.SubscriptionID, "error": status.Error})
}

// withoutHost deals with a subscription to the events of a host that is not there.
func (w *Wishes) withoutHost(ctx context.Context, s *subscription) error {
	if s.DeletionTimestamp != nil {
		return w.unhold(ctx, s, v1alpha1.BMCEventSubscriptionFinalizer)
	}
	if moving(s) {
		return nil
	}
	return w.say(ctx, s, v1alpha1.BMCEventSubscriptionStatus{
		Error: fmt.Sprintf("there is no BareMetalHost %s; the subscription is made once there is", hostOf(s)),
	})
}
