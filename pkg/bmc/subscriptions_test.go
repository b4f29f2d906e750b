package bmc_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

func TestSubscriptionsOfEveryVendor(t *testing.T) {
	for _, profile := range bmcsim.Profiles() {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, profile, bmc.Config{})
			b := l.open(t)
			want := []bmc.Subscription{
				{ID: "1", Destination: "https://192.0.2.90/a", Context: "rack 1"},
				{ID: "2", Destination: "https://192.0.2.90/b"},
			}
			for _, s := range want {
				must(t, b.Subscribe(t.Context(), s))
			}
			all, err := b.Subscriptions(t.Context())
			must(t, err)
			if diff := cmp.Diff(want, all); diff != "" {
				t.Error(diff)
			}
			must(t, b.Unsubscribe(t.Context(), "1"))
			all, err = b.Subscriptions(t.Context())
			must(t, err)
			if diff := cmp.Diff(want[1:], all); diff != "" {
				t.Error(diff)
			}
		})
	}
}
