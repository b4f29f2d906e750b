package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"
)

// Bus is a connection of one service to the bus. It is safe for concurrent use.
type Bus struct {
	cfg    Config
	subj   subjects
	nc     *nats.Conn
	js     jetstream.JetStream
	direct *direct
	cache  *cache

	clock  func() time.Time
	log    *slog.Logger
	tracer trace.Tracer
	m      *metrics

	// incarnation and calls make message ids that no other process makes.
	incarnation string
	calls       atomic.Uint64

	epoch epoch
	state health
}

// cached is how many decoded events are kept; two generations of them at most.
const cached = 8192

// Connect connects to NATS. While nobody answers it tries on until ctx ends;
// from then on the connection is kept up for ever. An answer that will not
// change by itself, such as refused credentials, is an error at once.
func Connect(ctx context.Context, cfg Config, opts ...Option) (*Bus, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	o := defaultOptions()
	for _, opt := range opts {
		opt(&o)
	}
	b := &Bus{
		cfg: cfg.withDefaults(), subj: subjects{cfg.Cluster},
		clock: o.clock, log: o.log, tracer: o.tracer.Tracer(tracerName),
		cache: newCache(cached), m: newMetrics(),
		incarnation: strconv.FormatUint(rand.Uint64(), 36), //nolint:gosec // tells processes apart, is no secret
	}
	if err := b.connect(ctx, o.process); err != nil {
		return nil, err
	}
	if err := b.attach(); err != nil {
		b.nc.Close()
		return nil, err
	}
	return b, nil
}

// attach sets up what stands on the connection.
func (b *Bus) attach() (err error) {
	prefix := b.cfg.APIPrefix
	if prefix == "" {
		prefix = "$JS.API"
	}
	if b.js, err = jetstream.NewWithAPIPrefix(b.nc, prefix, jetstream.WithDefaultTimeout(b.cfg.Timing.Reply)); err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	b.direct, err = newDirect(b.nc, prefix+".")
	return err
}

// Close ends the connection. What was published is sent first.
func (b *Bus) Close() error {
	err := b.nc.FlushTimeout(b.cfg.Timing.Reply)
	b.nc.Close()
	if errors.Is(err, nats.ErrConnectionClosed) || b.state.down() {
		return nil
	}
	return err
}

// Cluster is the token of the installation.
func (b *Bus) Cluster() string { return b.cfg.Cluster }

// epoch remembers which log this is.
type epoch struct {
	mu    sync.Mutex
	value string
	until time.Time
}

// epochTTL is how long a restore from backup may go unnoticed by a service.
const epochTTL = time.Minute

// epochOf identifies the log; another one after a restore from backup. While it
// is read anew, and while it cannot be read, it is what it was.
func (b *Bus) epochOf(ctx context.Context) (string, error) {
	now := b.clock()
	if value, fresh := b.epoch.get(now, b.cfg.Timing.Reply); fresh {
		return value, nil
	}
	s, err := b.js.Stream(ctx, StreamHost)
	if err == nil {
		return b.epoch.set(s.CachedInfo().Config.Metadata[metaEpoch], now.Add(epochTTL)), nil
	}
	if value, _ := b.epoch.get(now, 0); value != "" {
		return value, nil
	}
	return "", fmt.Errorf("read the epoch: %w", ours(err))
}

// get is the value, and whether it will do. If it will not, the caller reads
// it anew, and everybody else takes the old one for that long.
func (e *epoch) get(now time.Time, grace time.Duration) (value string, fresh bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	fresh = e.value != "" && now.Before(e.until)
	if !fresh {
		e.until = now.Add(grace)
	}
	return e.value, fresh
}

func (e *epoch) set(value string, until time.Time) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.value, e.until = value, until
	return value
}

// expire has the value read anew by whoever needs it next.
func (e *epoch) expire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.until = time.Time{}
}

// ours says in our words that a stream is not there, or has no leader.
func ours(err error) error {
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return ErrNotInitialized
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		return ErrUnavailable
	default:
		return err
	}
}

// absent tells apart, after nobody has answered for a stream, whether it does
// not exist or has no leader for now.
func (b *Bus) absent(ctx context.Context, stream string) error {
	if _, err := b.js.Stream(ctx, stream); errors.Is(err, jetstream.ErrStreamNotFound) {
		return ErrNotInitialized
	}
	return ErrUnavailable
}
