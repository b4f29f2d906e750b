package bus

import (
	"context"
	"slices"

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
		if h, err = b.loadAt(ctx, h.UID, newest.Prev); err != nil {
			return nil, err
		}
		if h.Head != newest.Prev {
			break // it is no longer kept
		}
	}
	slices.Reverse(hosts)
	return hosts, nil
}
