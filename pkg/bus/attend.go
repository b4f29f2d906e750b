package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// maxPanics is after how many panics of this process a message is set aside.
const maxPanics = 5

// early asks the handler, and bears with a panic.
func (s *server) early(ctx context.Context, d delivery) (v verdict, decided bool) {
	defer func() {
		if p := recover(); p != nil {
			v, decided = s.panicked(ctx, d, p), true
		}
	}()
	return s.h.early(d)
}

// attend handles one message: within its time, in a span, with a logger, and
// surviving a panic. It goes on when ctx ends, since a claim may be under way.
func (s *server) attend(ctx context.Context, d delivery) (v verdict) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.b.cfg.Timing.Handling)
	defer cancel()
	stop := keepAlive(d.msg, s.b.cfg.Timing.AckWait/3)
	defer stop()
	ctx, span := s.b.span(ctx, s.service, d)
	defer func() { endSpan(span, v) }()
	slot := s.notes.begin(d.t)
	defer s.notes.end(ctx, d.t, slot)
	defer func() {
		if p := recover(); p != nil {
			v = s.panicked(ctx, d, p)
		}
	}()
	began := s.b.clock()
	v = s.judge(d, s.h.handle(withLogger(withTrigger(ctx, d.t), s.b.log), d))
	s.b.m.handle.WithLabelValues(v.why).Observe(s.b.clock().Sub(began).Seconds())
	return v
}

// judge turns an error into a growing wait, or into a dead letter if the
// message itself is at fault.
func (s *server) judge(d delivery, v verdict) verdict {
	var bad *BadEventError
	var newer *NewerError
	if v.cause == nil {
		s.forget(d.t)
		return v
	}
	n := s.failed(d.t)
	v.quiet = n&(n-1) != 0 // the first time, and then ever more rarely
	switch {
	case v.why != troubled:
		return v
	case errors.As(v.cause, &bad) && !d.t.Wake && bad.Seq == d.t.Seq:
		return verdict{why: "unreadable", do: bury, cause: v.cause}
	case errors.As(v.cause, &newer):
		s.b.m.newer.Inc()
		v.why, v.do, v.delay = "newer", later, around(s.b.cfg.Timing.Refused)
	default:
		v.do, v.delay = later, s.b.cfg.Timing.retry(n)
	}
	return v
}

const troubled = "trouble"

// trouble is the verdict on an error of our own side: the wait is judge's to say.
func trouble(err error) verdict { return verdict{why: troubled, do: later, cause: err} }

func (s *server) panicked(ctx context.Context, d delivery, p any) verdict {
	s.b.m.panics.Inc()
	err := fmt.Errorf("panic: %v", p)
	s.b.log.ErrorContext(ctx, "a handler panicked", keyUID, d.t.UID, keyEventID, d.t.ID, keyError, err.Error(), keyStack, string(debug.Stack()))
	if s.panickedBefore(d.t) >= maxPanics {
		return verdict{why: "panic", do: bury, cause: err}
	}
	return again("panic", s.b.cfg.Timing.Panic).because(err)
}

// keepAlive tells the server at times that the message is still in hand.
func keepAlive(m jetstream.Msg, every time.Duration) (stop func()) {
	var mu sync.Mutex
	var timer *time.Timer
	stopped := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(every, func() {
		mu.Lock()
		defer mu.Unlock()
		if !stopped && m.InProgress() == nil {
			timer.Reset(every)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

// troubles counts, for messages of this process, errors in a row and panics.
type troubles struct {
	mu     sync.Mutex
	errs   map[troubleKey]int
	panics map[troubleKey]int
}

type troubleKey struct {
	wake bool
	seq  uint64
}

// maxTroubles bounds what is remembered; forgetting only shortens a wait.
const maxTroubles = 10_000

func newTroubles() troubles {
	return troubles{errs: map[troubleKey]int{}, panics: map[troubleKey]int{}}
}

func (t *troubles) failed(x Trigger) int         { return t.count(t.errs, x) }
func (t *troubles) panickedBefore(x Trigger) int { return t.count(t.panics, x) }

func (t *troubles) count(in map[troubleKey]int, x Trigger) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(in) >= maxTroubles {
		clear(in)
	}
	key := troubleKey{x.Wake, x.Seq}
	in[key]++
	return in[key]
}

func (t *troubles) forget(x Trigger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.errs) > 0 {
		delete(t.errs, troubleKey{x.Wake, x.Seq})
	}
}

// span begins the span of a delivery, in the trace that the event carries.
func (b *Bus) span(ctx context.Context, service string, d delivery) (context.Context, trace.Span) {
	name := service + " wake"
	if !d.t.Wake {
		name = service + " " + string(d.t.Section) + "." + d.t.Fact
	}
	return b.tracer.Start(extractTrace(ctx, d.msg.Headers()), name,
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(
			attribute.String("metalbus.uid", d.t.UID), attribute.String("metalbus.host", d.t.Host),
			attribute.String("cloudevents.event_id", d.t.ID), attribute.Int("metalbus.attempt", d.t.Deliveries)))
}

func endSpan(span trace.Span, v verdict) {
	if span.IsRecording() {
		span.SetAttributes(attribute.String("metalbus.outcome", v.why))
		if v.cause != nil {
			span.SetStatus(codes.Error, v.cause.Error())
		}
	}
	span.End()
}

// report tells what became of a message.
func (b *Bus) report(ctx context.Context, d delivery, v verdict) {
	if d.t.Deliveries == 1 && !d.t.Wake && v.do != later {
		b.m.age.WithLabelValues(v.why).Observe(b.clock().Sub(d.t.At).Seconds())
	}
	level := slog.LevelDebug
	attrs := []slog.Attr{
		slog.String(keyHost, d.t.Host), slog.String(keyUID, d.t.UID), slog.String(keyEventID, d.t.ID),
		slog.Int(keyAttempt, d.t.Deliveries), slog.String(keyOutcome, v.why), slog.Duration(keyDelay, v.delay),
	}
	switch {
	case v.do == bury:
		level = slog.LevelError
	case v.cause != nil && !v.quiet:
		level = slog.LevelWarn
	case !b.log.Enabled(ctx, level):
		return
	}
	if v.cause != nil {
		attrs = append(attrs, slog.String(keyError, v.cause.Error()))
	}
	b.log.LogAttrs(ctx, level, "handled a message", attrs...)
}

type loggerKey struct{}

func withLogger(ctx context.Context, log *slog.Logger) context.Context {
	return context.WithValue(ctx, loggerKey{}, log)
}

// Logger is the logger for the message that is being handled: its lines say
// which host and event they belong to. Outside of a handler it logs nothing.
func Logger(ctx context.Context) *slog.Logger {
	log, ok := ctx.Value(loggerKey{}).(*slog.Logger)
	if !ok {
		return slog.New(slog.DiscardHandler)
	}
	t, _ := triggerOf(ctx)
	event := string(t.Section) + "." + t.Fact
	if t.Wake {
		event = "wake"
	}
	return log.With(keyHost, t.Host, keyUID, t.UID, keyEvent, event, keyEventID, t.ID, keyAttempt, t.Deliveries)
}
