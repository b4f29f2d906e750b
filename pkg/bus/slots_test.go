package bus_test

import (
	"testing"

	"github.com/metalbus/metalbus/pkg/bus/bustest"
)

// Of two that change the same queue one is told that it came too late.
func TestSlotsAreChangedByCompareAndSwap(t *testing.T) {
	b := bustest.New(t)
	put := func(text string, revision uint64, want bool) {
		t.Helper()
		if stored, err := b.PutSlots(t.Context(), "ironic", []byte(text), revision); err != nil || stored != want {
			t.Errorf("%s after %d: stored %v, %v", text, revision, stored, err)
		}
	}
	_, none, err := b.Slots(t.Context(), "ironic")
	if err != nil || none != 0 {
		t.Fatalf("revision %d of nothing (%v)", none, err)
	}
	put("one", none, true)
	put("another", none, false)
	data, revision, err := b.Slots(t.Context(), "ironic")
	if err != nil || string(data) != "one" {
		t.Fatalf("got %q (%v)", data, err)
	}
	put("two", revision, true)
	put("three", revision, false)
	if _, _, err := b.Slots(t.Context(), "no.such"); err == nil {
		t.Error("a name that is no token was taken")
	}
}
