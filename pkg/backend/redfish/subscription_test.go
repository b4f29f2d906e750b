package redfish_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// A BMC sends along with its events what is in the Secret.
func TestHeadersAreSentAlong(t *testing.T) {
	got := make(chan string, 100)
	destination := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("X-Rack") }))
	t.Cleanup(destination.Close)
	r := newRack(t, bmcsim.Dell)
	h := r.newHost(t)
	h.Intent.Subscriptions = []event.SubscriptionWish{{
		UID: "a", Name: "a", Destination: destination.URL + "/", Headers: event.SecretRef{Namespace: "lab", Name: "headers"},
	}}
	o, err := r.backend.Look(t.Context(), event.Subscribe, h)
	if want := (lifecycle.Needs{Write: lifecycle.CreateStep("a")}); err != nil || o != lifecycle.Outlook(want) {
		t.Fatalf("outlook %+v, %v", o, err)
	}
	if err := r.backend.Do(t.Context(), h, lifecycle.Write{Kind: event.Subscribe, Name: lifecycle.CreateStep("a")}); err != nil {
		t.Fatal(err)
	}
	for _, w := range []lifecycle.Write{{Kind: event.PowerOn, Name: "on"}, {Kind: event.PowerOff, Name: "hard"}} { // one of which changes something
		if err := r.backend.Do(t.Context(), h, w); err != nil {
			t.Fatal(err)
		}
	}
	if header := <-got; header != "headers" {
		t.Errorf("the header is %q", header)
	}
}
