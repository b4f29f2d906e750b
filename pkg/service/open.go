package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// closeTime bounds what is left to do at the end of a process: the last
// requests and spans.
const closeTime = 5 * time.Second

// Open starts the frame of a process: its logger writes to out, its health and
// metrics are served. What it returns second ends it all, and must be called.
func Open(ctx context.Context, name string, cfg Config, out io.Writer, now func() time.Time) (*Frame, func(), error) {
	reg := prometheus.NewRegistry()
	f := &Frame{Health: NewHealth(), Now: now, Build: ReadBuild(), log: newLogger(cfg, out), reg: reg}
	tracer, stopTracer, err := newTracer(ctx, name, f.Build, cfg)
	if err != nil {
		return nil, nil, err
	}
	f.Tracer = tracer
	register(reg, f.Build)
	stopServer, err := serve(ctx, f, reg, cfg.HealthAddress)
	if err != nil {
		stopTracer()
		return nil, nil, err
	}
	return f.For(name), func() { stopServer(); stopTracer() }, nil
}

func newLogger(cfg Config, out io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: cfg.LogLevel}
	if cfg.LogFormat == "text" {
		return slog.New(slog.NewTextHandler(out, opts))
	}
	return slog.New(slog.NewJSONHandler(out, opts))
}

func newTracer(ctx context.Context, name string, b Build, cfg Config) (trace.TracerProvider, func(), error) {
	if cfg.TraceEndpoint == "" {
		return noop.NewTracerProvider(), func() {}, nil
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(cfg.TraceEndpoint))
	if err != nil {
		return nil, nil, fmt.Errorf("open trace exporter: %w", err)
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(resource.NewSchemaless(
		attribute.String("service.name", name), attribute.String("service.version", b.Version),
	)))
	return p, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		_ = p.Shutdown(ctx) // spans that a collector does not take are lost, and nothing can be done about it
	}, nil
}

func register(reg *prometheus.Registry, b Build) {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "metalbus_build_info", Help: "Always 1; the labels say what the program was built from.",
		ConstLabels: prometheus.Labels{keyVersion: b.Version, keyCommit: b.Commit, "go": b.Go},
	})
	info.Set(1)
	reg.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

func serve(ctx context.Context, f *Frame, reg *prometheus.Registry, address string) (func(), error) {
	if address == "" {
		return func() {}, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve health: %w; choose another --health-address", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", f.Health.Handler())
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{Registry: reg}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: closeTime, BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			f.log.Error("health server ended", keyError, err)
		}
	}()
	f.log.Debug("serving health and metrics", keyAddress, l.Addr().String())
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		_ = server.Shutdown(ctx)
		<-done
	}, nil
}
