package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Slots is what was last stored of a backend's queue for slots, and its
// revision: nothing and 0 if nothing was.
func (b *Bus) Slots(ctx context.Context, backend string) (data []byte, revision uint64, err error) {
	kv, key, err := b.slots(ctx, backend)
	if err != nil {
		return nil, 0, err
	}
	e, err := kv.Get(ctx, key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, 0, nil
	case err != nil:
		return nil, 0, fmt.Errorf("read the queue for slots of backend %s: %w", backend, ours(err))
	default:
		return e.Value(), e.Revision(), nil
	}
}

// PutSlots stores a backend's queue for slots in place of the revision that it
// follows from. It is not stored if somebody else has stored one meanwhile.
func (b *Bus) PutSlots(ctx context.Context, backend string, data []byte, revision uint64) (stored bool, err error) {
	kv, key, err := b.slots(ctx, backend)
	if err != nil {
		return false, err
	}
	_, err = kv.Update(ctx, key, data, revision)
	switch {
	case err == nil:
		return true, nil
	case isConflict(err):
		return false, nil
	default:
		return false, fmt.Errorf("store the queue for slots of backend %s: %w", backend, ours(err))
	}
}

func (b *Bus) slots(ctx context.Context, backend string) (kv jetstream.KeyValue, key string, err error) {
	if err := checkToken("backend", backend); err != nil {
		return nil, "", err
	}
	kv, err = b.js.KeyValue(ctx, BucketSlots)
	switch {
	case errors.Is(err, jetstream.ErrBucketNotFound):
		return nil, "", ErrNotInitialized
	case err != nil:
		return nil, "", fmt.Errorf("open bucket %s: %w", BucketSlots, ours(err))
	default:
		return kv, b.cfg.Cluster + "." + backend, nil
	}
}
