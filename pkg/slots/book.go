package slots

import (
	"cmp"
	"maps"
	"slices"

	"github.com/metalbus/metalbus/api/event"
)

// book says who has a slot of a backend, and who waits for one.
type book struct {
	// Holders are the operations that have a slot, by the host's uid.
	Holders map[string]event.Kind `json:"holders,omitempty"`
	// Waiting are the hosts that have none, in the order in which they came.
	Waiting []waiter `json:"waiting,omitempty"`
	// Turns says for each namespace when it was served last, counted in Served.
	Turns map[string]uint64 `json:"turns,omitempty"`
	// Served is how many slots were given in all.
	Served uint64 `json:"served,omitempty"`
}

type waiter struct {
	UID       string     `json:"uid"`
	Namespace string     `json:"namespace"`
	Kind      event.Kind `json:"kind"`
}

// ask gives the host a slot, or a place in the queue: 0 is a slot, 1 the first
// place.
func (b *book) ask(w waiter, limit int) (place int) {
	if _, holds := b.Holders[w.UID]; holds {
		b.Holders[w.UID] = w.Kind
		return 0
	}
	if i := b.index(w.UID); i >= 0 {
		b.Waiting[i] = w
	} else {
		b.Waiting = append(b.Waiting, w)
	}
	place = 1 + slices.IndexFunc(b.order(), func(x waiter) bool { return x.UID == w.UID })
	if place > limit-len(b.Holders) {
		return place
	}
	b.give(w)
	return 0
}

func (b *book) give(w waiter) {
	b.unqueue(w.UID)
	if b.Holders == nil {
		b.Holders = map[string]event.Kind{}
	}
	b.Holders[w.UID] = w.Kind
	if len(b.Waiting) == 0 {
		b.Turns, b.Served = nil, 0 // nobody's turn matters
		return
	}
	if b.Turns == nil {
		b.Turns = map[string]uint64{}
	}
	b.Served++
	b.Turns[w.Namespace] = b.Served
}

// leave takes what a host has from an operation of the section.
func (b *book) leave(uid string, section event.Section) {
	if k, holds := b.Holders[uid]; holds && k.Section() == section {
		delete(b.Holders, uid)
	}
	if i := b.index(uid); i >= 0 && b.Waiting[i].Kind.Section() == section {
		b.unqueue(uid)
	}
}

// has reports whether the host has or awaits a slot for an operation of the section.
func (b *book) has(uid string, section event.Section) bool {
	if k, holds := b.Holders[uid]; holds && k.Section() == section {
		return true
	}
	i := b.index(uid)
	return i >= 0 && b.Waiting[i].Kind.Section() == section
}

func (b *book) index(uid string) int {
	return slices.IndexFunc(b.Waiting, func(w waiter) bool { return w.UID == uid })
}

func (b *book) unqueue(uid string) {
	b.Waiting = slices.DeleteFunc(b.Waiting, func(w waiter) bool { return w.UID == uid })
}

// next are those whose turn it is: as many as there are slots free.
func (b *book) next(limit int) []waiter {
	free := min(max(limit-len(b.Holders), 0), len(b.Waiting))
	return b.order()[:free]
}

// order is the queue: one host of each namespace in turn, the namespace first that
// was served the longest time ago.
func (b *book) order() []waiter {
	lines := map[string][]waiter{}
	var namespaces []string // in the order in which they came
	for _, w := range b.Waiting {
		if lines[w.Namespace] == nil {
			namespaces = append(namespaces, w.Namespace)
		}
		lines[w.Namespace] = append(lines[w.Namespace], w)
	}
	slices.SortStableFunc(namespaces, func(x, y string) int { return cmp.Compare(b.Turns[x], b.Turns[y]) })
	order := make([]waiter, 0, len(b.Waiting))
	for len(order) < len(b.Waiting) {
		for _, n := range namespaces {
			if line := lines[n]; len(line) > 0 {
				order = append(order, line[0])
				lines[n] = line[1:]
			}
		}
	}
	return order
}

func (b *book) clone() book {
	c := *b
	c.Holders, c.Turns, c.Waiting = maps.Clone(b.Holders), maps.Clone(b.Turns), slices.Clone(b.Waiting)
	return c
}
