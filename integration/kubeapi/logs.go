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

// A stderr is this process's standard error. While everything stops, parts
// that miss each other complain of it, each through a logger of its own; with
// it off, that goes nowhere.
type stderr struct {
	verbose bool // never turned off
	own     int  // what it was before it was turned off
	off     bool
}

func (e *stderr) turnOff() {
	if e.verbose || e.off {
		return
	}
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return // better too much than nothing
	}
	defer nowhere.Close()
	if e.own, err = unix.Dup(unix.Stderr); err != nil {
		return
	}
	e.off = unix.Dup2(int(nowhere.Fd()), unix.Stderr) == nil
}

func (e *stderr) turnOn() {
	if e.off {
		_ = unix.Dup2(e.own, unix.Stderr)
		e.off = false
	}
}
