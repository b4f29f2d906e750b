package bus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// write claims a write to the outside and makes it.
func (v *visit) write(ctx context.Context, s lifecycle.Write) verdict {
	var claim lifecycle.Fact
	switch {
	case v.foreign != nil && v.token && v.problem != nil:
		// Its end is no trigger while a problem is backed off, so the token stays.
		return again("another's operation", v.b.cfg.Timing.poll(lifecycle.Long, v.t.Deliveries))
	case v.foreign != nil:
		return done("another's operation") // its end is a trigger
	case s.Kind.Section() != v.section:
		return again("fault", v.b.cfg.Timing.Refused).because(fmt.Errorf("operation %q is not of section %s", s.Kind, v.section))
	case v.op == nil:
		claim = lifecycle.Started{Kind: s.Kind, Step: s.Name, Mode: s.Mode, Reason: s.Reason}
	case v.op.Kind == s.Kind:
		claim = lifecycle.Claimed{Kind: s.Kind, Step: s.Name}
	default:
		return again("fault", v.b.cfg.Timing.Refused).because(fmt.Errorf("operation %s is under way: end it before a write of %q", v.op.ID, s.Kind))
	}
	began := v.b.clock()
	h, err := v.b.Append(ctx, v.h, claim)
	if err != nil {
		return v.appended(ctx, claim, err)
	}
	v.b.m.claims.WithLabelValues(string(s.Kind)).Inc()
	Logger(ctx).InfoContext(ctx, "claimed a write", keyFact, claim.Name(), keyStep, s.Name)
	return v.use(ctx, h, s, began)
}

// use makes the claimed write, if the window is still open.
func (v *visit) use(ctx context.Context, h lifecycle.Host, s lifecycle.Write, began time.Time) verdict {
	window := v.b.cfg.Timing.Window
	held := heldUp(began, v.b.clock())
	if held >= window {
		v.b.m.missed.Inc()
		return done("window missed").because(fmt.Errorf("the process was held up for %s after it claimed: nothing was written", held.Round(time.Millisecond)))
	}
	within, cancel := context.WithTimeout(ctx, window-held)
	defer cancel()
	return v.answer(ctx, h, s, v.worker.Do(within, h, s))
}

// heldUp is the time from one moment to another by whichever of the clocks says
// more: a machine that was suspended may have stopped its monotonic clock, and
// the wall clock may have been set back.
func heldUp(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// answer records how the write was answered. Without an answer nothing is
// recorded: the claim rests, and then the outside is looked at.
func (v *visit) answer(ctx context.Context, h lifecycle.Host, s lifecycle.Write, err error) verdict {
	var problem *lifecycle.ProblemError
	var answer lifecycle.Fact = lifecycle.Accepted{Kind: s.Kind}
	switch {
	case err == nil:
	case errors.Is(err, lifecycle.ErrBusy):
		v.b.m.external.WithLabelValues("busy").Inc()
		answer = lifecycle.Accepted{Kind: s.Kind, Busy: true}
	case errors.As(err, &problem):
		v.b.m.external.WithLabelValues("problem").Inc()
		answer = failedWrite(h, s.Kind, problem.Problem)
	case unanswered(err):
		v.b.m.external.WithLabelValues("none").Inc()
		return done("unanswered").because(err)
	default:
		v.b.m.external.WithLabelValues("error").Inc()
		Logger(ctx).WarnContext(ctx, "a write was refused", keyStep, s.Name, keyError, err.Error())
		answer = lifecycle.Accepted{Kind: s.Kind, Busy: true}
	}
	return v.recordAnswer(ctx, h, answer)
}

// failedWrite is the fact that a claimed write met a problem of the host.
func failedWrite(h lifecycle.Host, k event.Kind, p event.Problem) lifecycle.Failed {
	f := lifecycle.Failed{Kind: k, Problem: p}
	if k == event.Enroll && !p.Local {
		tried := lifecycle.Credentials(h.Intent)
		f.Tried = &tried
	}
	return f
}

// unanswered reports whether the write may have been done, or may yet be.
func unanswered(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		(errors.As(err, &timeout) && timeout.Timeout()) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// recordAnswer appends the answer, and tries on while it has time: the host may
// have changed meanwhile, or the log may be choosing a new leader. The claim is
// still ours as long as it is the newest of the operation.
func (v *visit) recordAnswer(ctx context.Context, h lifecycle.Host, answer lifecycle.Fact) verdict {
	claim := *h.Work(v.section).Op
	for {
		_, err := v.b.Append(ctx, h, answer)
		var refused *lifecycle.NotAllowedError
		switch {
		case err == nil:
			Logger(ctx).InfoContext(ctx, "recorded", keyFact, string(v.section)+"."+answer.Name())
			return done("written")
		case errors.As(err, &refused) && answer.Name() == claim.Kind.Fact(event.Failed):
			answer = lifecycle.Accepted{Kind: claim.Kind} // the host has moved on: its next step says where
			continue
		case errors.As(err, &refused) || !pause(ctx, v.b.cfg.Timing.Stale/10):
			return done("answer not recorded").because(err) // so the claim rests, and then the outside is looked at
		}
		now, err := v.b.Load(ctx, v.t.UID)
		if err != nil {
			continue
		}
		if op := now.Work(v.section).Op; op == nil || op.ID != claim.ID || op.Claim != claim.Claim || op.Answered {
			return done("taken over")
		}
		h = now
	}
}

// resume makes a new work token for an operation whose own may be lost. Until
// the newest event of the operation is old enough for that to be likely, the
// wake is kept.
func (v *visit) resume(ctx context.Context, step lifecycle.Step) (verdict, bool) {
	switch step.(type) {
	case lifecycle.Write, lifecycle.Record:
		if v.op.Answered {
			return verdict{}, false // what it appends is the new token
		}
	}
	newest := v.h.Newest(v.section).At
	if left := v.b.cfg.Timing.Resume - v.b.clock().Sub(newest); left > 0 {
		return again("kept", left), true
	}
	f := lifecycle.Resumed{Kind: v.op.Kind}
	_, err := v.b.Append(ctx, v.h, f)
	return v.appended(ctx, f, err), true
}
