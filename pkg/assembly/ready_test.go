package assembly_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/metalbus/metalbus/pkg/assembly"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/service"
)

// A service that looks for its NATS is not ready, from the first moment on.
func TestASearchingServiceIsNotReady(t *testing.T) {
	f := &service.Frame{Name: "registrar", Log: slog.New(slog.DiscardHandler), Tracer: noop.NewTracerProvider(), Metrics: prometheus.NewRegistry(), Health: service.NewHealth(), Now: time.Now}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, err := assembly.Connect(ctx, f, bus.Config{URLs: []string{"nats://127.0.0.1:1"}, Cluster: "test"})
		done <- err
	}()
	for {
		w := httptest.NewRecorder()
		f.Health.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", http.NoBody))
		if w.Code == http.StatusServiceUnavailable && strings.Contains(w.Body.String(), "no NATS server has answered") {
			break
		}
		select {
		case err := <-done:
			t.Fatalf("it ended: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("it has connected to nobody")
	}
}
