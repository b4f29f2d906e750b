package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Purge removes a host from the log, with its documents. The history keeps it.
// A host whose object is still there is then restored from that by the
// projector; this is how a host with an unreadable event is mended.
func (b *Bus) Purge(ctx context.Context, uid string) error {
	if err := checkToken("uid", uid); err != nil {
		return err
	}
	for stream, subject := range map[string]string{StreamHost: b.subj.host(uid), StreamData: b.subj.data(uid, "*")} {
		s, err := b.js.Stream(ctx, stream)
		if err != nil {
			return fmt.Errorf("purge host %s: %w", uid, ours(err))
		}
		if err := s.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
			return fmt.Errorf("purge host %s from %s: %w", uid, stream, err)
		}
	}
	return nil
}
