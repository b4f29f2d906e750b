package bus

import (
	"context"
	"slices"
	"strings"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Snapshots are a host that was loaded as it was at each of its revisions above
// afterRev, the oldest first and the loaded one last, so that whoever follows it
// sees every state that it went through; it is empty if there is nothing newer.
// Host.NewestFact says which fact made a snapshot. It goes back no further than the
// log surely holds every section.
func (b *Bus) Snapshots(ctx context.Context, h lifecycle.Host, afterRev uint64) ([]lifecycle.Host, error) {
	var hosts []lifecycle.Host
	for h.Rev > afterRev && len(hosts) < maxPerSection {
		hosts = append(hosts, h)
		_, newest := h.NewestFact()
		if newest.Prev == 0 || h.Rev == afterRev+1 {
			break
		}
		var err error
		if h, err = b.back(ctx, h); err != nil {
			return nil, err
		}
		if h.Head != newest.Prev {
			break // it is no longer kept
		}
	}
	slices.Reverse(hosts)
	return hosts, nil
}

// back is the host before its newest event. Servers look for the state at a point of the
// log among all hosts, so it is put together from what changed where that can be told.
func (b *Bus) back(ctx context.Context, h lifecycle.Host) (lifecycle.Host, error) {
	section, newest := h.NewestFact()
	r := record{section: section, state: noState(section)}
	known := newest.First
	if newest.Before > 0 {
		var err error
		if r, known, err = b.recordAt(ctx, newest.Before); err != nil {
			return h, err
		}
		known = known && r.section == section && r.meta.Rev < newest.Rev && strings.HasPrefix(r.meta.ID, h.UID+"/")
	}
	if !known || h.Intent.Base != nil {
		return b.loadAt(ctx, h.UID, newest.Prev)
	}
	if intent, ok := r.state.(event.Intent); ok && intent.Base != nil {
		return b.loadAt(ctx, h.UID, newest.Prev)
	}
	setState(&h, r.state)
	return h.Without(section, r.meta), nil
}

// recordAt is the event of that sequence; ok is false if it is no longer kept.
func (b *Bus) recordAt(ctx context.Context, seq uint64) (r record, ok bool, err error) {
	if r, ok = b.cache.get(seq); ok {
		return r, true, nil
	}
	messages, err := b.ask(ctx, StreamHost, func(ctx context.Context) ([]stored, error) { return b.direct.at(ctx, StreamHost, seq) })
	if err != nil || len(messages) == 0 {
		return r, false, err
	}
	r, err = b.decodeRecord(messages[0])
	return r, err == nil, err
}
