package ironic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// patience is how long a read waits for its turn. Whoever waits holds up work
	// that has nothing to do with this Ironic. A write has been claimed, and a
	// listing is for many, which is worth a longer wait.
	patience        = time.Second
	writePatience   = 3 * time.Second
	listingPatience = 10 * time.Second
	// firstPause is the pause after a first failure; it doubles up to longestPause.
	firstPause   = 250 * time.Millisecond
	longestPause = 30 * time.Second
)

// errCrowded: the request did not get its turn in time.
var errCrowded = errors.New("too many requests are under way")

// budget bounds what an Ironic is asked, and leaves it alone for a while when it
// is in trouble.
type budget struct {
	now     func() time.Time
	slots   chan struct{}
	limiter *rate.Limiter

	mu     sync.Mutex
	all    pause // no answers at all
	writes pause // answers of "no room now"
}

// pause is the time in which nothing is asked.
type pause struct {
	from, until time.Time
	failures    int
	cause       error
}

func newBudget(cfg Config, now func() time.Time) *budget {
	return &budget{
		now: now, slots: make(chan struct{}, cfg.Concurrency),
		limiter: rate.NewLimiter(rate.Limit(cfg.Rate), max(1, int(cfg.Rate))),
	}
}

// enter waits for a turn; leave gives it back. It fails at once during a pause.
func (b *budget) enter(ctx context.Context, write bool, wait time.Duration) (leave func(), err error) {
	if err := b.paused(write); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errCrowded)
	defer cancel()
	if b.limiter.Wait(ctx) != nil {
		return nil, context.Cause(orCrowded(ctx))
	}
	select {
	case b.slots <- struct{}{}:
		return func() { <-b.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// orCrowded: a limiter that sees that the wait would be too long says so at once,
// before its context has ended.
func orCrowded(ctx context.Context) context.Context {
	if ctx.Err() != nil {
		return ctx
	}
	ended, cancel := context.WithCancelCause(ctx)
	cancel(errCrowded)
	return ended
}

// paused is the error of a request that is not to be made now. When a pause is
// over one request may try, and the next ones when it has come back.
func (b *budget) paused(write bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if err := b.all.check(now); err != nil {
		return err
	}
	if write {
		return b.writes.check(now)
	}
	return nil
}

func (p *pause) check(now time.Time) error {
	switch {
	case p.failures == 0:
		return nil
	case now.Before(p.until):
		return fmt.Errorf("left alone for another %s after: %w", p.until.Sub(now).Round(10*time.Millisecond), p.cause)
	default:
		p.begin(now) // this one tries, others wait for what it finds
		return nil
	}
}

// begin starts the pause that goes with the failures so far.
func (p *pause) begin(now time.Time) {
	length := firstPause
	for range p.failures - 1 {
		if length *= 2; length >= longestPause {
			length = longestPause
			break
		}
	}
	p.from, p.until = now, now.Add(length)
}

// fail counts the failure of a request that began then. Requests that were under
// way together count as one.
func (p *pause) fail(began, now time.Time, err error) {
	if p.failures > 0 && began.Before(p.from) {
		return
	}
	p.failures++
	p.cause = err
	p.begin(now)
}

// heard notes what became of a request that began then.
func (b *budget) heard(began time.Time, write bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	e, isOurs := errors.AsType[*Error](err)
	switch {
	case isOurs && errors.Is(e, ErrNotReady) && !errors.Is(err, context.Canceled):
		b.all.fail(began, now, err)
	case isOurs && write && errors.Is(e, ErrBusy) && e.Status != http.StatusConflict:
		b.all = pause{}
		b.writes.fail(began, now, err)
	default:
		b.all = pause{}
		if write {
			b.writes = pause{}
		}
	}
}
