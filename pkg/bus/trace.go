package bus

import (
	"context"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/propagation"

	"github.com/metalbus/metalbus/api/event"
)

const tracerName = "github.com/metalbus/metalbus/pkg/bus"

// injectTrace adds the trace of the context to the extensions of an event.
func injectTrace(ctx context.Context, links map[string]string) {
	propagation.TraceContext{}.Inject(ctx, propagation.MapCarrier(links))
}

// extractTrace is the context with the trace that an event carries.
func extractTrace(ctx context.Context, h nats.Header) context.Context {
	parent := attr(h, event.ExtTraceParent)
	if parent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{
		event.ExtTraceParent: parent, event.ExtTraceState: attr(h, event.ExtTraceState),
	})
}
