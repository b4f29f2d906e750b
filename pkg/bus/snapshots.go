package bus

import (
	"context"
	"slices"

	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Snapshots are the host at each of its revisions above afterRev, the oldest
// first, so that whoever follows it sees every state that it went through; it
// is empty if there is nothing newer. Host.NewestFact says which fact made a
// snapshot. It goes back no further than the log surely holds every section.
func (b *Bus) Snapshots(ctx context.Context, uid string, afterRev uint64) ([]lifecycle.Host, error) {
	var hosts []lifecycle.Host
	upTo := uint64(0)
	for len(hosts) < maxPerSection {
		h, prev, err := b.loadAt(ctx, uid, upTo)
		if err != nil {
			return nil, err
		}
		if h.Rev <= afterRev || (upTo != 0 && h.Head != upTo) {
			break
		}
		hosts = append(hosts, h)
		if prev == 0 || h.Rev == afterRev+1 {
			break
		}
		upTo = prev
	}
	slices.Reverse(hosts)
	return hosts, nil
}
