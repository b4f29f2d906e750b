package bus

import (
	"math/rand/v2"
	"time"

	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// doubled is first, doubled n times, at most limit.
func doubled(first, limit time.Duration, n int) time.Duration {
	d := first
	for range n {
		if d >= limit {
			break
		}
		d *= 2
	}
	return min(d, limit)
}

// poll is the wait before the next look of a step that waits, after so many deliveries.
func (t Timing) poll(every time.Duration, deliveries int) time.Duration {
	if every <= 0 {
		every = lifecycle.Quick
	}
	return around(doubled(t.Poll, every, deliveries-1))
}

// backOff is the wait after so many failures.
func (t Timing) backOff(failures int) time.Duration {
	return around(doubled(t.BackOff, t.BackOffMax, failures))
}

// busy is the wait after so many answers of "not now" in a row.
func (t Timing) busy(refusals int) time.Duration {
	return around(doubled(t.Busy, t.BusyMax, refusals-1))
}

// retry is the wait after so many errors of our own in a row.
func (t Timing) retry(errs int) time.Duration {
	return around(doubled(t.Retry, t.RetryMax, errs-1))
}

// conflict is the wait after a lost race: spread wide, so that it is not run again.
func (t Timing) conflict() time.Duration {
	return t.Conflict + rand.N(3*t.Conflict+1) //nolint:gosec // spreads load
}

// crowd is to how much together makes long waits end at once, and long is what it takes
// for long.
const (
	crowd = time.Second
	long  = 10 * time.Second
)

// onASecond makes a long wait a little longer, so that all of them end on a second. What
// a server does to hand out what is due, and to store that it did, does not grow with how
// much that is, but with how much is waiting; so it had better be seldom.
func onASecond(now time.Time, d time.Duration) time.Duration {
	if d < long {
		return d
	}
	return now.Add(d + crowd - 1).Truncate(crowd).Sub(now)
}

// around is within a tenth of d, so that what began together does not stay together.
func around(d time.Duration) time.Duration {
	if d < 10 {
		return d
	}
	return d - d/10 + rand.N(d/5+1) //nolint:gosec // spreads load
}
