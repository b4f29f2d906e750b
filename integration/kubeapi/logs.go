package main

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// heapGrowth is how much larger the heap may grow than what is in use before
// it is collected, in percent. Go's own 100 costs a write a fifth more time;
// beyond this, memory buys little.
const heapGrowth = 200

// tune trades memory for time, unless the environment says otherwise.
func tune() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(heapGrowth)
	}
}

// quiet leaves Kubernetes' errors and drops the rest, unless asked for it.
func quiet(verbosity int) {
	level := slog.LevelError
	if verbosity > 0 {
		level = slog.Level(-verbosity)
	}
	klog.SetSlogLogger(slog.New(strict{slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}), level}))
}

// A strict handler drops what is below its level. Kubernetes hands over lines
// without asking whether they are wanted.
type strict struct {
	slog.Handler
	level slog.Level
}

func (h strict) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < h.level {
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

// hushed does something that makes parts of the program miss each other, and
// drops what they write about it to standard error, each through a logger of
// its own.
func hushed(verbosity int, do func()) {
	if verbosity == 0 {
		defer silence()()
	}
	do()
}

// silence sends standard error nowhere, until the function that it returns
// is called.
func silence() (speak func()) {
	unchanged := func() {}
	own, err := unix.Dup(unix.Stderr)
	if err != nil {
		return unchanged
	}
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return unchanged
	}
	defer nowhere.Close()
	if err := unix.Dup2(int(nowhere.Fd()), unix.Stderr); err != nil {
		return unchanged
	}
	return func() {
		_ = unix.Dup2(own, unix.Stderr)
		_ = unix.Close(own)
	}
}
