package bus

import (
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Option changes what Connect uses.
type Option func(*options)

type options struct {
	clock   func() time.Time
	log     *slog.Logger
	tracer  trace.TracerProvider
	process nats.InProcessConnProvider
}

func defaultOptions() options {
	return options{
		clock:  time.Now, //nolint:forbidigo // the default of an option
		log:    slog.New(slog.DiscardHandler),
		tracer: noop.NewTracerProvider(),
	}
}

// WithClock sets the clock. Its times must carry a monotonic reading, as those
// of time.Now do, for the window of a claim to be safe against a clock that is set.
func WithClock(clock func() time.Time) Option { return func(o *options) { o.clock = clock } }

// WithLogger sets the logger; without one nothing is logged.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithTracer sets where spans go; without it traces pass through unchanged.
func WithTracer(p trace.TracerProvider) Option { return func(o *options) { o.tracer = p } }

// WithServer connects to a server in this process instead of by URL.
func WithServer(s nats.InProcessConnProvider) Option { return func(o *options) { o.process = s } }
