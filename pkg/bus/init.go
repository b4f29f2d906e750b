package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// InitOptions say what the streams of the bus are to be like.
type InitOptions struct {
	// Replicas of each stream: 3 in production, 1 for a single server. Either
	// way the servers are to run with sync_interval: always, or a power cut
	// may take events that were acknowledged; a client cannot see whether they do.
	Replicas int
	// MaxBytes is what all streams together may hold; 16 GiB if 0. The log
	// takes half of it. Less is enough for a laptop: 50 kB a host.
	MaxBytes int64
	// Memory keeps everything in memory, for tests.
	Memory bool
	// NewEpoch declares the log to be another one. Set it once after a restore
	// from a backup.
	NewEpoch bool

	epoch string
}

const defaultMaxBytes = 16 << 30

func (o InitOptions) share(percent int64) int64 {
	total := o.MaxBytes
	if total == 0 {
		total = defaultMaxBytes
	}
	return total / 100 * percent
}

// Outcome is what became of one thing in Init.
type Outcome string

// The outcomes.
const (
	Created Outcome = "created"
	Updated Outcome = "updated"
	Kept    Outcome = "kept"
)

// InitReport says what Init found and did, in order.
type InitReport []InitItem

// InitItem is one stream, bucket, consumer or tick.
type InitItem struct {
	Kind    string // stream, bucket, consumer or tick
	Name    string
	Outcome Outcome
}

// Init makes the streams, consumers and ticks of the cluster as this version
// wants them. Servers that have yet to form their cluster are waited for, up to a
// minute for each thing. It is idempotent, and needs the administrator's credentials. What
// would lose data is refused, with an error that names the stream and the field.
func (b *Bus) Init(ctx context.Context, o InitOptions) (InitReport, error) {
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	o.epoch = uuid.NewString()
	var report InitReport
	for _, step := range []func(context.Context, InitOptions, *InitReport) error{
		b.initStreams, b.initBuckets, b.initConsumers, b.initTicks,
	} {
		if err := step(ctx, o, &report); err != nil {
			return report, err
		}
	}
	return report, nil
}

func (r *InitReport) add(kind, name string, o Outcome) {
	*r = append(*r, InitItem{kind, name, o})
}

func (b *Bus) initStreams(ctx context.Context, o InitOptions, r *InitReport) error {
	for _, want := range streams(o) {
		outcome, err := insist(ctx, b.log, func() (Outcome, error) { return b.initStream(ctx, want, o) })
		if err != nil {
			return fmt.Errorf("stream %s: %w", want.Name, err)
		}
		r.add("stream", want.Name, outcome)
	}
	return nil
}

func (b *Bus) initStream(ctx context.Context, want jetstream.StreamConfig, o InitOptions) (Outcome, error) {
	s, err := b.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = b.js.CreateStream(ctx, want)
		return Created, err
	}
	if err != nil {
		return "", err
	}
	info := s.CachedInfo()
	if err := dangerous(info, want); err != nil {
		return "", err
	}
	next, changed := merged(info.Config, want, o)
	if !changed {
		return Kept, nil
	}
	_, err = b.js.UpdateStream(ctx, next)
	return Updated, err
}

func (b *Bus) initBuckets(ctx context.Context, o InitOptions, r *InitReport) error {
	storage := jetstream.FileStorage
	if o.Memory {
		storage = jetstream.MemoryStorage
	}
	for _, want := range []jetstream.KeyValueConfig{
		{Bucket: BucketCrashed, Description: "metalbus: messages that were in hand when a process died", TTL: day, MaxBytes: o.share(1) / 4},
		{Bucket: BucketSlots, Description: "metalbus: who may begin an operation, and who waits, for each backend", MaxBytes: o.share(1) / 4},
	} {
		want.Storage, want.Replicas = storage, o.Replicas
		outcome, err := insist(ctx, b.log, func() (Outcome, error) { return b.initBucket(ctx, want) })
		if err != nil {
			return fmt.Errorf("bucket %s: %w", want.Bucket, err)
		}
		r.add("bucket", want.Bucket, outcome)
	}
	return nil
}

func (b *Bus) initBucket(ctx context.Context, want jetstream.KeyValueConfig) (Outcome, error) {
	_, err := b.js.KeyValue(ctx, want.Bucket)
	if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return Kept, err
	}
	_, err = b.js.CreateKeyValue(ctx, want)
	return Created, err
}

func (b *Bus) initConsumers(ctx context.Context, _ InitOptions, r *InitReport) error {
	for _, service := range Services() {
		for _, want := range []struct {
			stream string
			jetstream.ConsumerConfig
		}{{StreamHost, b.hostConsumer(service)}, {StreamWake, b.wakeConsumer(service)}} {
			outcome, err := insist(ctx, b.log, func() (Outcome, error) { return b.initConsumer(ctx, want.stream, want.ConsumerConfig) })
			if err != nil {
				return fmt.Errorf("consumer %s of %s: %w", want.Durable, want.stream, err)
			}
			r.add("consumer", want.stream+"/"+want.Durable, outcome)
		}
	}
	return nil
}

func (b *Bus) initConsumer(ctx context.Context, stream string, want jetstream.ConsumerConfig) (Outcome, error) {
	c, err := b.js.Consumer(ctx, stream, want.Durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		_, err = b.js.CreateConsumer(ctx, stream, want)
		return Created, err
	}
	if err != nil {
		return "", err
	}
	have := c.CachedInfo().Config
	if have.FilterSubject == want.FilterSubject && have.AckWait == want.AckWait && have.MaxDeliver == want.MaxDeliver &&
		have.MaxAckPending == want.MaxAckPending && have.Description == want.Description {
		return Kept, nil
	}
	want.DeliverPolicy = have.DeliverPolicy // it says where the consumer began, and cannot be changed
	_, err = b.js.UpdateConsumer(ctx, stream, want)
	return Updated, err
}

func (b *Bus) initTicks(ctx context.Context, _ InitOptions, r *InitReport) error {
	s, err := b.js.Stream(ctx, StreamWake)
	if err != nil {
		return err
	}
	for _, t := range b.ticks() {
		outcome, err := insist(ctx, b.log, func() (Outcome, error) { return b.initTick(ctx, s, t) })
		if err != nil {
			return fmt.Errorf("tick %s of %s: %w", t.name, t.service, err)
		}
		r.add("tick", t.service+"/"+t.name, outcome)
	}
	return nil
}

func (b *Bus) initTick(ctx context.Context, s jetstream.Stream, t tick) (Outcome, error) {
	subject := b.subj.tick(t.service, t.name)
	every := "@every " + t.every.Truncate(time.Second).String()
	outcome := Created
	switch last, err := s.GetLastMsgForSubject(ctx, subject); {
	case err == nil && last.Header.Get(headerSchedule) == every:
		return Kept, nil
	case err == nil:
		outcome = Updated
	case !errors.Is(err, jetstream.ErrMsgNotFound):
		return "", err
	}
	m := nats.NewMsg(subject)
	m.Header.Set(headerSchedule, every)
	m.Header.Set("Nats-Schedule-Target", b.subj.wake(t.service, tickPrefix+t.name))
	m.Header.Set("Nats-TTL", "never") // the stream forgets all else after a day
	_, err := b.js.PublishMsg(ctx, m)
	return outcome, err
}

const headerSchedule = "Nats-Schedule"
