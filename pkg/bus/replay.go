package bus

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// replayOptions say what is read of a stream, in its order.
type replayOptions struct {
	stream   string
	subjects []string
	since    time.Time // zero for the beginning
	follow   bool      // go on with what comes
}

// replay reads a stream for people and for audits.
func (b *Bus) replay(ctx context.Context, o replayOptions) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		err := b.replayInto(ctx, o, func(m stored) bool { return yield(m, nil) })
		if err != nil && ctx.Err() == nil {
			yield(stored{}, err)
		}
	}
}

// A pull that got lost, since its consumer had no leader yet, is noticed after
// two missed heartbeats.
const (
	replayExpiry    = 5 * time.Second
	replayHeartbeat = time.Second
)

func (b *Bus) replayInto(ctx context.Context, o replayOptions, yield func(stored) bool) error {
	cfg := jetstream.OrderedConsumerConfig{FilterSubjects: o.subjects}
	if !o.since.IsZero() {
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &o.since
	}
	c, err := b.ordered(ctx, o.stream, cfg)
	if err != nil {
		return err
	}
	defer b.discard(ctx, o.stream, c)
	if info := c.CachedInfo(); !o.follow && info != nil && info.NumPending == 0 {
		return nil
	}
	it, err := c.Messages(jetstream.PullExpiry(replayExpiry), jetstream.PullHeartbeat(replayHeartbeat))
	if err != nil {
		return err
	}
	defer it.Stop()
	defer context.AfterFunc(ctx, it.Stop)()
	for {
		m, left, err := nextStored(it)
		switch {
		case errors.Is(err, jetstream.ErrMsgIteratorClosed):
			return ctx.Err()
		case err != nil:
			return err
		case !yield(m), left == 0 && !o.follow:
			return nil
		}
	}
}

// discard ends a consumer that was made to be read once. Left alone it would end by
// itself, after minutes; till then it counts among those that a stream may have.
func (b *Bus) discard(ctx context.Context, stream string, c jetstream.Consumer) {
	info := c.CachedInfo()
	if info == nil || b.state.down() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.Timing.Reply)
	defer cancel()
	if err := b.js.DeleteConsumer(ctx, stream, info.Name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		b.log.DebugContext(ctx, "end a consumer that was read once", keyConsumer, stream+"/"+info.Name, keyError, err.Error())
	}
}

// ordered makes the consumer, and tries again if the connection changes over it.
func (b *Bus) ordered(ctx context.Context, stream string, cfg jetstream.OrderedConsumerConfig) (c jetstream.Consumer, err error) {
	for range readTries {
		c, err = b.js.OrderedConsumer(ctx, stream, cfg)
		if err == nil || !isDoubtful(err) || !pause(ctx, b.cfg.Timing.Retry) {
			break
		}
	}
	return c, ours(err)
}

func nextStored(it jetstream.MessagesContext) (m stored, left uint64, err error) {
	msg, err := it.Next()
	if err != nil {
		return stored{}, 0, err
	}
	meta, err := msg.Metadata()
	if err != nil {
		return stored{}, 0, err
	}
	return stored{msg.Subject(), meta.Sequence.Stream, msg.Headers(), msg.Data()}, meta.NumPending, nil
}
