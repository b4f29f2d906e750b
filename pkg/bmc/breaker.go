package bmc

import "time"

// breaker leaves a BMC alone that could not be reached several times in a row. It
// reads no clock.
type breaker struct {
	after          int
	first, longest time.Duration

	failures int
	pause    time.Duration
	until    time.Time
	last     *Error
}

// open gives the last error while the BMC is to be left alone; nil if it may be
// tried. Its text is the same each time, or one failure would be news again and again.
func (b *breaker) open(now time.Time) *Error {
	left := b.until.Sub(now)
	if b.last == nil || left <= 0 {
		return nil
	}
	e := *b.last
	e.NotTried, e.RetryAfter, e.cause = true, left, nil
	return &e
}

// fail notes that the BMC could not be reached. It keeps the error as it is now: who
// has it writes into it what it was about.
func (b *breaker) fail(now time.Time, e *Error) {
	b.failures++
	if b.failures < b.after {
		return
	}
	b.pause = min(max(2*b.pause, b.first), b.longest)
	last := *e
	b.until, b.last = now.Add(b.pause), &last
}

// ok notes that the BMC has answered.
func (b *breaker) ok() {
	b.failures, b.pause, b.last = 0, 0, nil
}
