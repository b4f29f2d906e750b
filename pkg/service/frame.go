package service

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

// Frame is what a service is given to stand in.
type Frame struct {
	// Name is the service's name.
	Name string
	// Log is for operators. It carries the service's name.
	Log *slog.Logger
	// Health takes the service's checks.
	Health *Health
	// Metrics takes the service's metrics. They get a label with its name, so
	// that several services in one process do not collide.
	Metrics prometheus.Registerer
	// Tracer is where spans go.
	Tracer trace.TracerProvider
	// Now is the clock.
	Now   func() time.Time
	Build Build

	log *slog.Logger
	reg prometheus.Registerer
}

// For is the frame of another service in the same process.
func (f *Frame) For(name string) *Frame {
	other := *f
	other.Name = name
	other.Log = f.log.With(keyService, name)
	other.Metrics = prometheus.WrapRegistererWith(prometheus.Labels{keyService: name}, f.reg)
	return &other
}
