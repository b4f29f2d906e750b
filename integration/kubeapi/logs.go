package main

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// Logs leave Kubernetes' and etcd's errors and drop the rest, unless asked for.
type logs struct {
	verbose    bool
	kubernetes *slog.LevelVar
	etcd       zap.AtomicLevel
}

func newLogs(verbosity int) *logs {
	l := &logs{verbose: verbosity > 0, kubernetes: new(slog.LevelVar), etcd: zap.NewAtomicLevelAt(zapcore.ErrorLevel)}
	l.kubernetes.Set(slog.LevelError)
	if l.verbose {
		l.kubernetes.Set(slog.Level(-verbosity))
		l.etcd.SetLevel(zapcore.InfoLevel)
	}
	klog.SetSlogLogger(slog.New(strict{slog.NewTextHandler(os.Stderr, nil), l.kubernetes}))
	return l
}

// hush drops errors too: while everything stops, parts that miss each other
// complain of it.
func (l *logs) hush() {
	if !l.verbose {
		l.kubernetes.Set(slog.LevelError + 1)
		l.etcd.SetLevel(zapcore.FatalLevel)
	}
}

// A strict handler drops what is below its level. Kubernetes hands over errors
// without asking whether they are wanted.
type strict struct {
	slog.Handler
	level *slog.LevelVar
}

func (h strict) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level.Level() }

func (h strict) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < h.level.Level() {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h strict) WithAttrs(attrs []slog.Attr) slog.Handler {
	return strict{h.Handler.WithAttrs(attrs), h.level}
}

func (h strict) WithGroup(name string) slog.Handler {
	return strict{h.Handler.WithGroup(name), h.level}
}

// zap is etcd's logger.
func (l *logs) zap() *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zap.NewProductionEncoderConfig())
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(os.Stderr), l.etcd))
}

// tune trades memory for time: half of an API server's work on a small heap is
// collecting it.
func tune() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(200)
	}
}
