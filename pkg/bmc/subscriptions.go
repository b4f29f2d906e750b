package bmc

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
)

// Subscription is one to the events of a BMC, which posts them to its destination.
type Subscription struct {
	// ID is its name at the BMC.
	ID          string
	Destination string
	Context     string
	// Headers are what the BMC sends along; they are secret, and told to the BMC only.
	Headers map[string]string
}

// String hides the headers.
func (s Subscription) String() string { return "subscription of " + scrub(s.Destination) }

// GoString hides the headers too.
func (s Subscription) GoString() string { return s.String() }

// Subscriptions are those that the BMC has.
func (b *BMC) Subscriptions(ctx context.Context) ([]Subscription, error) {
	var out []Subscription
	err := b.converse(ctx, "read the subscriptions", func(t *talk) error {
		where, err := t.subscriptions()
		if err != nil {
			return err
		}
		all, err := t.all(where)
		for _, m := range all {
			var s struct {
				ID          string `json:"@odata.id"`
				Destination string
				Context     string
			}
			if json.Unmarshal(m, &s) == nil && s.ID != "" {
				out = append(out, Subscription{ID: path.Base(pathOf(s.ID)), Destination: s.Destination, Context: s.Context})
			}
		}
		return err
	})
	return out, err
}

// Subscribe has the BMC post its events to a URL.
func (b *BMC) Subscribe(ctx context.Context, s Subscription) error {
	body := map[string]any{"Destination": s.Destination, "Context": s.Context, "Protocol": "Redfish"}
	var headers []map[string]string
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		headers = append(headers, map[string]string{name: s.Headers[name]})
	}
	if headers != nil {
		body["HttpHeaders"] = headers
	}
	err := b.converse(ctx, "subscribe "+scrub(s.Destination), func(t *talk) error {
		where, err := t.subscriptions()
		if err != nil {
			return err
		}
		return t.change(http.MethodPost, where, body, nil)
	})
	if e, ok := errors.AsType[*Error](err); ok { // the BMC may quote what it refuses
		e.Detail = scrub(e.Detail, slices.Collect(maps.Values(s.Headers))...)
	}
	return err
}

// Unsubscribe ends a subscription.
func (b *BMC) Unsubscribe(ctx context.Context, id string) error {
	return b.converse(ctx, "end subscription "+id, func(t *talk) error {
		where, err := t.subscriptions()
		if err != nil {
			return err
		}
		return t.change(http.MethodDelete, strings.TrimRight(where, "/")+"/"+id, nil, nil)
	})
}

// subscriptions is the path of the collection of subscriptions.
func (t *talk) subscriptions() (string, error) {
	var root struct{ EventService link }
	if _, _, err := t.get(rootPath, &root); err != nil {
		return "", err
	}
	var service struct{ Subscriptions link }
	if where := pathOf(root.EventService.ID); where != "" {
		if _, _, err := t.get(where, &service); err != nil {
			return "", err
		}
	}
	if where := pathOf(service.Subscriptions.ID); where != "" {
		return where, nil
	}
	return "", t.fail(&Error{Reason: ErrRefused, Detail: "the BMC has no event service", Advice: "update its firmware, or have its events collected in another way"})
}
