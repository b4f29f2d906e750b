package slots

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/metalbus/metalbus/api/event"
)

// asks is a waiter from "namespace/uid".
func asks(text string) waiter {
	namespace, _, _ := strings.Cut(text, "/")
	return waiter{UID: text, Namespace: namespace, Kind: event.Deploy}
}

// served is the order in which hosts get the only slot, if each gives it back at once.
func served(b *book, limit int) []string {
	var got []string
	for {
		next := b.next(limit)
		if len(next) == 0 {
			return got
		}
		w := next[0]
		if b.ask(w, limit) != 0 {
			return append(got, "refused "+w.UID)
		}
		got = append(got, w.UID)
		b.leave(w.UID, w.Kind.Section())
	}
}

func TestNamespacesTakeTurns(t *testing.T) {
	b := &book{}
	if place := b.ask(asks("a/0"), 1); place != 0 {
		t.Fatalf("the first of all got place %d", place)
	}
	var places []int
	for _, x := range []string{"a/1", "a/2", "a/3", "b/1", "c/1", "b/2", "a/1"} {
		places = append(places, b.ask(asks(x), 1))
	}
	if diff := cmp.Diff([]int{1, 2, 3, 2, 3, 5, 1}, places); diff != "" {
		t.Errorf("places as they were told (-want +got):\n%s", diff)
	}
	b.leave("a/0", event.SectionProvisioning)
	if diff := cmp.Diff([]string{"a/1", "b/1", "c/1", "a/2", "b/2", "a/3"}, served(b, 1)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// Whoever comes again and again, one at a time, does not overtake a long line.
func TestAFrequentGuestWaitsItsTurn(t *testing.T) {
	b := &book{}
	b.ask(asks("a/0"), 1)
	for i := range 4 {
		b.ask(asks(fmt.Sprintf("a/%d", i+1)), 1)
	}
	b.leave("a/0", event.SectionProvisioning)
	var got []string
	for i := 0; len(b.Waiting) > 0; i++ {
		if i < 4 {
			b.ask(asks(fmt.Sprintf("b/%d", i)), 0)
		}
		w := b.next(1)[0]
		b.ask(w, 1)
		got = append(got, w.UID)
		b.leave(w.UID, event.SectionProvisioning)
	}
	if diff := cmp.Diff([]string{"a/1", "b/0", "a/2", "b/1", "a/3", "b/2", "a/4", "b/3"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestASlotIsKeptForTheNextOperationOfTheHost(t *testing.T) {
	b := &book{}
	w := asks("a/0")
	w.Kind = event.Inspect
	b.ask(w, 1)
	w.Kind = event.Prepare
	if place := b.ask(w, 1); place != 0 {
		t.Errorf("got place %d", place)
	}
	b.leave("a/0", event.SectionInspection)
	if !b.has("a/0", event.SectionProvisioning) {
		t.Error("the inspector gave back what is the provisioner's now")
	}
	b.leave("a/0", event.SectionProvisioning)
	if len(b.Holders) != 0 {
		t.Errorf("holders %v are left", b.Holders)
	}
}

// Never more holders than slots, and nobody waits while a slot is free for them.
func TestBooksAreKeptWell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		b := &book{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			x := fmt.Sprintf("%s/%d", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "namespace"), rapid.IntRange(0, 5).Draw(t, "host"))
			if rapid.Bool().Draw(t, "leaves") {
				b.leave(x, event.SectionProvisioning)
			} else if place := b.ask(asks(x), limit); (place == 0) != b.holds(x) {
				t.Fatalf("%s got place %d, and holds a slot: %v", x, place, b.holds(x))
			}
			if len(b.Holders) > limit {
				t.Fatalf("%d hold %d slots", len(b.Holders), limit)
			}
			for _, w := range b.Waiting {
				if b.holds(w.UID) {
					t.Fatalf("%s waits for what it has", w.UID)
				}
			}
		}
		b.Holders = nil
		waiting := len(b.Waiting)
		if got := served(b, limit); len(got) != waiting {
			t.Fatalf("%d waited, and %v were served", waiting, got)
		}
	})
}

func (b *book) holds(uid string) bool {
	_, holds := b.Holders[uid]
	return holds
}
