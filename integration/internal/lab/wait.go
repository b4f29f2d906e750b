package lab

import (
	"context"
	"testing"
	"time"
)

const (
	// pause is what lies between two looks at a condition.
	pause = 20 * time.Millisecond
	// long is a wait that the log of a test mentions.
	long = 2 * time.Second
	// cleanupPatience bounds what a test does after its end.
	cleanupPatience = 30 * time.Second
)

// Eventually tries do until it succeeds. It ends the test when the patience is
// used up, with what do said last.
func Eventually(tb testing.TB, patience time.Duration, what string, do func() error) {
	tb.Helper()
	begin := time.Now()
	ticks := time.NewTicker(pause)
	defer ticks.Stop()
	for {
		err := do()
		took := time.Since(begin).Round(time.Millisecond)
		if err == nil {
			if took > long {
				tb.Logf("%s: took %s", what, took)
			}
			return
		}
		if took > patience {
			tb.Fatalf("%s: not within %s: %v", what, patience, err)
		}
		select {
		case <-ticks.C:
		case <-tb.Context().Done():
			tb.Fatalf("%s: the test is over: %v", what, err)
		}
	}
}

// cleanupContext is for what a test does after its end, when its own context
// has ended too.
func cleanupContext(tb testing.TB) (context.Context, context.CancelFunc) {
	tb.Helper()
	return context.WithTimeout(context.WithoutCancel(tb.Context()), cleanupPatience)
}
