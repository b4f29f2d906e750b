package bmc_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bmc/bmctest"
)

// What the BMC is told to send along is sent to it, and is in nothing that we say.
func TestHeadersOfASubscription(t *testing.T) {
	var sent atomic.Pointer[string]
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "Subscriptions"):
			text, _ := io.ReadAll(r.Body)
			sent.Store(new(string(text)))
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"bad header Bearer s3cret-canary"}}`)
		case r.URL.Path == "/redfish/v1/EventService":
			_, _ = io.WriteString(w, `{"Subscriptions":{"@odata.id":"/redfish/v1/EventService/Subscriptions"}}`)
		default:
			_, _ = io.WriteString(w, `{"RedfishVersion":"1.6.0","EventService":{"@odata.id":"/redfish/v1/EventService"}}`)
		}
	}))
	t.Cleanup(srv.Close)
	b := bmctest.Open(t, bmctest.Pool(t, bmc.Config{}), bmc.Target{BaseURL: srv.URL, Credentials: bmc.NewCredentials("admin", "canary-7")})
	s := bmc.Subscription{Destination: "https://192.0.2.90/a", Headers: map[string]string{"Authorization": "Bearer s3cret-canary", "X-Rack": "rack-7"}}
	err := b.Subscribe(t.Context(), s)
	wants(t, err, bmc.ErrRefused)
	if text := sent.Load(); text == nil || !strings.Contains(*text, `"HttpHeaders":[{"Authorization":"Bearer s3cret-canary"},{"X-Rack":"rack-7"}]`) {
		t.Errorf("sent %v", text)
	}
	if text := fmt.Sprintf("%v %+v %#v %v", s, s, s, err); strings.Contains(text, "canary") {
		t.Errorf("it shows: %s", text)
	}
}

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
