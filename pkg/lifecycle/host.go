package lifecycle

import (
	"maps"
	"time"

	"github.com/metalbus/metalbus/api/event"
)

// Host is all that the bus knows of a host at one revision: the newest event
// of each section.
type Host struct {
	UID string
	// Epoch identifies the log that the host was read from.
	Epoch string
	// Rev is the host's revision: it counts its events over all sections. 0
	// means that the bus does not know the host.
	Rev uint64
	// Head is the stream sequence of the newest event, which the next one is
	// appended after.
	Head uint64

	Intent       event.Intent
	Registration event.Registration
	Inspection   event.Inspection
	Provisioning event.Provisioning
	Power        event.Power

	newest map[event.Section]Meta
}

// Meta says which event a section's state comes from.
type Meta struct {
	Seq  uint64
	Rev  uint64
	ID   string
	Fact string
	At   time.Time
	// Prev is the sequence of the host's event before this one, 0 if it is the first:
	// what the append was checked against.
	Prev uint64
	// Before is the sequence of the section's event before this one. It is 0 if there
	// is none, which First says, or if it is not known.
	Before uint64
	First  bool
	// Extra is the section's state as it is on the bus, if it holds fields
	// that this version does not know; the bus keeps them.
	Extra []byte
}

// Exists reports whether the bus knows the host.
func (h Host) Exists() bool { return h.Rev > 0 }

// Newest is the event that the section's state comes from; the zero Meta if
// the section has none of its own yet.
func (h Host) Newest(s event.Section) Meta { return h.newest[s] }

// NewestFact is the event that made the host's present revision.
func (h Host) NewestFact() (event.Section, Meta) {
	for s, m := range h.newest {
		if m.Rev == h.Rev {
			return s, m
		}
	}
	return "", Meta{}
}

// WithNewest is the host with another newest event of a section. The bus calls
// it as it reads and appends.
func (h Host) WithNewest(s event.Section, m Meta) Host {
	newest := make(map[event.Section]Meta, len(h.newest)+1)
	maps.Copy(newest, h.newest)
	newest[s] = m
	h.newest = newest
	if m.Rev >= h.Rev {
		h.Rev, h.Head = m.Rev, m.Seq
	}
	return h
}

// Without is the host without its newest event, whose section had the event of older
// before. The caller has put that section's state back already.
func (h Host) Without(s event.Section, older Meta) Host {
	newest := maps.Clone(h.newest)
	h.Rev, h.Head = newest[s].Rev-1, newest[s].Prev
	if newest[s] = older; older.Seq == 0 {
		delete(newest, s)
	}
	h.newest = newest
	return h
}

// Work is what the stage services' sections have in common; the zero Work for
// the intent section.
func (h Host) Work(s event.Section) event.Work {
	switch s {
	case event.SectionRegistration:
		return h.Registration.Work
	case event.SectionInspection:
		return h.Inspection.Work
	case event.SectionProvisioning:
		return h.Provisioning.Work
	case event.SectionPower:
		return h.Power.Work
	default:
		return event.Work{}
	}
}

// work is the section's Work to be changed.
func (h *Host) work(s event.Section) *event.Work {
	switch s {
	case event.SectionRegistration:
		return &h.Registration.Work
	case event.SectionInspection:
		return &h.Inspection.Work
	case event.SectionProvisioning:
		return &h.Provisioning.Work
	case event.SectionPower:
		return &h.Power.Work
	default:
		return &event.Work{}
	}
}

// Op is the operation under way, nil if there is none, and its section.
func (h Host) Op() (*event.Op, event.Section) {
	for _, s := range event.Sections() {
		if op := h.Work(s).Op; op != nil {
			return op, s
		}
	}
	return nil, ""
}

// OpOf is the operation of this kind, nil if it is not under way.
func (h Host) OpOf(k event.Kind) *event.Op {
	if op := h.Work(k.Section()).Op; op != nil && op.Kind == k {
		return op
	}
	return nil
}

// Doing reports whether an operation of this kind is under way.
func (h Host) Doing(k event.Kind) bool { return h.OpOf(k) != nil }

// Name is how people call the host: <namespace>/<name>.
func (h Host) Name() string { return h.Intent.Namespace + "/" + h.Intent.Name }

// State is the section's state as it stands on the bus.
func (h Host) State(s event.Section) any {
	switch s {
	case event.SectionIntent:
		return h.Intent
	case event.SectionRegistration:
		return h.Registration
	case event.SectionInspection:
		return h.Inspection
	case event.SectionProvisioning:
		return h.Provisioning
	case event.SectionPower:
		return h.Power
	default:
		return nil
	}
}
