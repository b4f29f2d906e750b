package bus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// leapClock is a clock that can be sent forward.
type leapClock struct{ by atomic.Int64 }

func (l *leapClock) now() time.Time { return time.Now().Add(time.Duration(l.by.Load())) }

type observer func(context.Context, bus.Trigger) (time.Duration, error)

func (o observer) Observe(ctx context.Context, t bus.Trigger) (time.Duration, error) {
	return o(ctx, t)
}

func TestAnObserverSeesEveryEvent(t *testing.T) {
	b := bustest.New(t)
	var mu sync.Mutex
	var seen []string
	bustest.Watch(t, b, "projector", observer(func(_ context.Context, t bus.Trigger) (time.Duration, error) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprintf("%d %s.%s %s %s", t.Rev, t.Section, t.Fact, t.Stage, t.Host))
		return 0, nil
	}))
	bustest.Append(t, b, "u1", bustest.The(created("u1")), bustest.The(observed(true)), bustest.The(enrolled().Fact))
	bustest.Await(t, "three events", func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) >= 3 })
	slices.Sort(seen)
	want := []string{"1 intent.created registering metal/host-u1", "2 power.changed registering metal/host-u1", "3 registration.enroll.succeeded inspecting metal/host-u1"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("triggers (-want +got):\n%s", diff)
	}
}

func TestAnObserverMayAskAgain(t *testing.T) {
	b := bustest.New(t)
	var mu sync.Mutex
	var times []time.Time
	bustest.Watch(t, b, "projector", observer(func(context.Context, bus.Trigger) (time.Duration, error) {
		mu.Lock()
		defer mu.Unlock()
		times = append(times, time.Now())
		switch len(times) {
		case 1:
			return 40 * time.Millisecond, nil
		case 2, 3:
			return 0, errors.New("the API server is away")
		default:
			return 0, nil
		}
	}))
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.Await(t, "four deliveries", func() bool { mu.Lock(); defer mu.Unlock(); return len(times) >= 4 })
	mu.Lock()
	defer mu.Unlock()
	retry := bustest.Timing().Retry
	for i, least := range []time.Duration{36 * time.Millisecond, retry * 9 / 10, 2 * retry * 9 / 10} {
		if d := times[i+1].Sub(times[i]); d < least {
			t.Errorf("delivery %d came after %s, want at least %s", i+2, d, least)
		}
	}
}

func TestAHostIsObservedOnceAtATime(t *testing.T) {
	b := bustest.New(t)
	var inside, most, total atomic.Int64
	bustest.Watch(t, b, "projector", observer(func(context.Context, bus.Trigger) (time.Duration, error) {
		now := inside.Add(1)
		defer inside.Add(-1)
		most.Store(max(most.Load(), now))
		time.Sleep(time.Millisecond)
		total.Add(1)
		return 0, nil
	}))
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	for i := range 12 {
		bustest.Append(t, b, "u1", bustest.The(observed(i%2 == 0)))
	}
	bustest.Await(t, "all events", func() bool { return total.Load() >= 13 })
	if most.Load() != 1 {
		t.Errorf("%d at once", most.Load())
	}
}

func collect(tb testing.TB, b *bus.Bus, f bus.HistoryFilter) []cloudevents.Event {
	tb.Helper()
	var all []cloudevents.Event
	for e, err := range b.History(tb.Context(), f, false) {
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func TestHistoryIsCloudEvents(t *testing.T) {
	b := bustest.New(t)
	bustest.Append(t, b, "u1", bustest.The(created("u1")), bustest.The(lifecycle.Started{Kind: event.Enroll, Step: "create", Reason: "it is new"}), bustest.The(observed(true)))
	bustest.Append(t, b, "u2", bustest.The(created("u2")))
	bustest.Await(t, "the history to follow", func() bool { return len(collect(t, b, bus.HistoryFilter{})) == 4 })
	events := collect(t, b, bus.HistoryFilter{UID: "u1"})
	if len(events) != 3 {
		t.Fatalf("%d events of the host", len(events))
	}
	for _, e := range events {
		if err := e.Validate(); err != nil {
			t.Errorf("event %s: %v", e.ID(), err)
		}
	}
	e := events[1]
	got := map[string]any{"id": e.ID(), "type": e.Type(), "source": e.Source(), "subject": e.Subject(), "schema": e.DataSchema(), "content": e.DataContentType()}
	for _, name := range []string{event.ExtHostUID, event.ExtHostRev, event.ExtStage, event.ExtCorrelation} {
		got[name] = e.Extensions()[name]
	}
	want := map[string]any{
		"id": "u1/2/enroll.started", "type": "io.metalbus.host.registration.enroll.started.v1", "source": "/metal/test/registrar",
		"subject": "metal/host-u1", "schema": event.DataSchema(event.SectionRegistration), "content": "application/json",
		"hostuid": "u1", "hostrev": "2", "stage": "registering", "correlationid": "enroll-2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	var data event.Data[event.Registration]
	if err := e.DataAs(&data); err != nil || data.State.Op == nil || data.Op == nil || data.Change.Reason != "it is new" {
		t.Errorf("data %+v, %v", data, err)
	}
	for name, c := range map[string]struct {
		filter bus.HistoryFilter
		want   int
	}{
		"by section":             {bus.HistoryFilter{Sections: []event.Section{event.SectionIntent}}, 2},
		"by section and host":    {bus.HistoryFilter{UID: "u1", Sections: []event.Section{event.SectionIntent, event.SectionPower}}, 2},
		"by type":                {bus.HistoryFilter{Types: []string{event.Type(event.SectionPower, event.PowerChanged)}}, 1},
		"by the start of types":  {bus.HistoryFilter{Types: []string{"io.metalbus.host.registration.*", "io.metalbus.host.power.*"}}, 2},
		"since a moment to come": {bus.HistoryFilter{Since: time.Now().Add(time.Hour)}, 0},
		"of nobody":              {bus.HistoryFilter{UID: "nobody"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := collect(t, b, c.filter); len(got) != c.want {
				t.Errorf("%d events, want %d", len(got), c.want)
			}
		})
	}
}

func TestHistoryFollows(t *testing.T) {
	b := bustest.New(t)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ids []string
	for e, err := range b.History(ctx, bus.HistoryFilter{UID: "u1"}, true) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID())
		if len(ids) == 1 {
			bustest.Append(t, b, "u1", bustest.The(observed(true)))
		} else {
			cancel()
		}
	}
	if diff := cmp.Diff([]string{"u1/1/created", "u1/2/changed"}, ids); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestOneTraceFromTheWishOn(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	b := bustest.New(t, bus.WithTracer(provider))
	bustest.Serve(t, b, bustest.Registrar(enrollIn("create")))
	ctx, span := provider.Tracer("test").Start(t.Context(), "apply")
	if _, err := b.Append(ctx, lifecycle.Host{UID: "u1"}, created("u1")); err != nil {
		t.Fatal(err)
	}
	span.End()
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	bustest.Await(t, "the history to follow", func() bool { return len(collect(t, b, bus.HistoryFilter{})) == 4 })
	id := span.SpanContext().TraceID().String()
	for i, e := range collect(t, b, bus.HistoryFilter{}) {
		parent, _ := e.Extensions()[event.ExtTraceParent].(string)
		if len(parent) < 35 || parent[3:35] != id {
			t.Errorf("event %s is of trace %q, want %s", e.ID(), parent, id)
		}
		if cause, _ := e.Extensions()[event.ExtCausation].(string); (cause == "") != (i == 0) {
			t.Errorf("event %s was caused by %q", e.ID(), cause)
		}
	}
	for _, s := range spans.Ended() {
		if s.SpanContext().TraceID().String() != id {
			t.Errorf("span %q is of another trace", s.Name())
		}
	}
	if len(spans.Ended()) < 3 {
		t.Errorf("%d spans", len(spans.Ended()))
	}
}

func TestTracesPassThroughWithoutATracer(t *testing.T) {
	provider := trace.NewTracerProvider()
	b := bustest.New(t)
	bustest.Serve(t, b, bustest.Registrar(enrollIn("create")))
	ctx, span := provider.Tracer("test").Start(t.Context(), "apply")
	if _, err := b.Append(ctx, lifecycle.Host{UID: "u1"}, created("u1")); err != nil {
		t.Fatal(err)
	}
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	bustest.Await(t, "the history to follow", func() bool { return len(collect(t, b, bus.HistoryFilter{})) == 4 })
	for _, e := range collect(t, b, bus.HistoryFilter{}) {
		if parent, _ := e.Extensions()[event.ExtTraceParent].(string); len(parent) < 35 || parent[3:35] != span.SpanContext().TraceID().String() {
			t.Errorf("event %s is of trace %q", e.ID(), parent)
		}
	}
}

func TestGrepFindsWhatMustNotBeThere(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "test")
	nc, _ := raw(t, s)
	w := created("u1")
	w.Intent.Spec.Description = "canary-7f3a"
	bustest.Append(t, b, "u1", bustest.The(w))
	found, err := bustest.Grep(t.Context(), nc, "canary-7f3a")
	if err != nil || !slices.Contains(found, "METAL_HOST metal.test.host.u1.intent") {
		t.Errorf("found %v, %v", found, err)
	}
	if found, err := bustest.Grep(t.Context(), nc, "canary-other"); err != nil || len(found) > 0 {
		t.Errorf("found %v, %v", found, err)
	}
}
