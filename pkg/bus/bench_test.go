package bus_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func BenchmarkAppend(b *testing.B) {
	bus := bustest.New(b)
	h, err := bus.Append(b.Context(), lifecycle.Host{UID: "u"}, created("u"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if h, err = bus.Append(b.Context(), h, observed(true)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	bus := bustest.New(b)
	h, err := bus.Append(b.Context(), lifecycle.Host{UID: "u"}, created("u"))
	for _, f := range []lifecycle.Fact{observed(true), lifecycle.Enrolled{Backend: "b"}, lifecycle.Skipped{}} {
		if err == nil {
			h, err = bus.Append(b.Context(), h, f)
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := bus.Load(b.Context(), "u"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkServe takes hosts through an operation of two writes: six events a host.
func BenchmarkServe(b *testing.B) {
	s := bustest.Server(b)
	bus := bustest.On(b, s, "registrar")
	n := 0
	for b.Loop() {
		b.StopTimer()
		ctx, cancel := context.WithCancel(b.Context())
		w := &twoWrites{left: 200, done: cancel}
		for range w.left {
			n++
			uid := fmt.Sprintf("u%d", n)
			if _, err := bus.Append(ctx, lifecycle.Host{UID: uid}, created(uid)); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		if err := bus.Serve(ctx, w); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*6/b.Elapsed().Seconds(), "events/s")
}

type twoWrites struct {
	left  int64
	ended atomic.Int64
	done  func()
}

func (*twoWrites) Section() event.Section   { return event.SectionRegistration }
func (*twoWrites) Cares(t bus.Trigger) bool { return t.Stage == v1alpha1.StateRegistering }

func (w *twoWrites) Step(_ context.Context, h lifecycle.Host) (lifecycle.Step, error) {
	op := h.Registration.Op
	switch {
	case op == nil:
		return lifecycle.Write{Kind: event.Enroll, Name: "create"}, nil
	case op.Step == "create":
		return lifecycle.Write{Kind: event.Enroll, Name: "manage"}, nil
	default:
		if w.ended.Add(1) >= w.left {
			w.done()
		}
		return lifecycle.Record{Fact: lifecycle.Enrolled{Backend: "b", Node: "n"}}, nil
	}
}

func (*twoWrites) Do(context.Context, lifecycle.Host, lifecycle.Write) error { return nil }
