package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Worker is a stage service, as the bus sees it. Its methods are called for
// many hosts at once, but for one host once at a time in a process.
type Worker interface {
	// Section is the section that the service writes.
	Section() event.Section
	// Cares reports whether the trigger may give the service something to do.
	// It must be quick, and go by the trigger's section, fact and stage alone.
	// It is not asked about events of the service's own section: each of them
	// may be what keeps the service coming back.
	Cares(t Trigger) bool
	// Step says what is next for the host. It may read the outside, and never
	// writes to it. An error is trouble of our side or of a service beside us.
	Step(ctx context.Context, h lifecycle.Host) (lifecycle.Step, error)
	// Do makes the one write that the step asked for. The write was claimed
	// for this call alone; ctx ends with the claim's window, and nothing may
	// be sent after that. An error that wraps lifecycle.ErrBusy is "not now,
	// nothing was done"; a *lifecycle.ProblemError is the host's own problem;
	// after a time-out it is open whether it was done.
	Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error
}

// Ticker is a Worker or Observer that wants to hear the ticks of its service.
// A tick reaches one replica.
type Ticker interface {
	Tick(ctx context.Context, name string) error
}

// Serve runs the service's work until ctx ends, and lets go gracefully then.
// Several replicas share the work.
func (b *Bus) Serve(ctx context.Context, w Worker) error {
	section := w.Section()
	service := section.Writer()
	if service == "" || section == event.SectionIntent {
		return fmt.Errorf("section %q has no stage service", section)
	}
	return b.serve(ctx, service, &work{b: b, worker: w, section: section})
}

// work is the handler of a stage service.
type work struct {
	b       *Bus
	worker  Worker
	section event.Section
}

func (w *work) tick(ctx context.Context, name string) error {
	if t, ok := w.worker.(Ticker); ok {
		return t.Tick(ctx, name)
	}
	return nil
}

// early holds back what must not be acted upon at once. A claim may be in use
// by whoever appended it, so it rests for everybody until that is over. Only
// the first delivery counts: no clocks of two machines are compared.
func (w *work) early(d delivery) (verdict, bool) {
	t := d.t
	if t.Wake {
		return verdict{}, false
	}
	switch own := t.Section == w.section; {
	case own && isClaim(t.Fact) && t.Deliveries == 1:
		return again("claimed", w.b.cfg.Timing.Quarantine), true
	case own && t.Deliveries == 1:
		return w.rest(d)
	case !w.concerns(t):
		return done("uncared"), true
	default:
		return verdict{}, false
	}
}

// concerns reports whether the trigger may give the service something to do.
// Events of its own section do, since one of them is the token.
func (w *work) concerns(t Trigger) bool { return t.Section == w.section || w.worker.Cares(t) }

// rest is the wait after a problem, or after an answer of "not now". What was
// recorded besides in a back-off does not end it.
func (w *work) rest(d delivery) (verdict, bool) {
	if phase, _ := parsePhase(d.t.Fact); phase == event.Succeeded || phase == event.Aborted || phase == event.Resumed {
		return verdict{}, false // something has moved on
	}
	var data event.Data[event.Work]
	if json.Unmarshal(d.msg.Data(), &data) != nil {
		return verdict{}, false // it shows when the host is loaded
	}
	switch s := data.State; {
	case s.Op != nil && s.Op.Refusals > 0:
		return again("busy", w.b.cfg.Timing.busy(s.Op.Refusals)), true
	case s.Op == nil && s.Problem != nil:
		return again("back-off", w.b.cfg.Timing.backOff(s.Failures)), true
	default:
		return verdict{}, false
	}
}

// handle loads the host, and carries out the service's next step for it.
func (w *work) handle(ctx context.Context, d delivery) verdict {
	h, err := w.b.Load(ctx, d.t.UID)
	if err != nil {
		return trouble(err)
	}
	v := w.visit(h, d.t)
	if verdict, ok := v.hold(); ok {
		return verdict
	}
	step, err := v.step(ctx)
	if err != nil {
		return v.hindered(ctx, err)
	}
	return v.carryOut(ctx, step)
}

// visit is one look at a host on a trigger.
type visit struct {
	*work
	h lifecycle.Host
	t Trigger
	// op and problem are the section's own; foreign is another section's operation.
	op, foreign *event.Op
	problem     *event.Problem
	// token: the trigger is the one that keeps the service coming back.
	token bool
}

func (w *work) visit(h lifecycle.Host, t Trigger) *visit {
	own := h.Work(w.section)
	v := &visit{work: w, h: h, t: t, op: own.Op, problem: own.Problem}
	if op, section := h.Op(); section != w.section {
		v.foreign = op
	}
	v.token = !t.Wake && t.Seq == v.tokenSeq()
	return v
}

// tokenSeq is the sequence of the event that keeps the service coming back
// for the host: its own newest while it has an operation or a problem, else
// the newest that it cares for.
func (v *visit) tokenSeq() uint64 {
	if v.op != nil || v.problem != nil {
		if own := v.h.Newest(v.section); own.Seq > 0 {
			return own.Seq
		}
		return v.h.Newest(event.SectionIntent).Seq // the one that brought the host back
	}
	var newest uint64
	stage := lifecycle.Stage(v.h)
	for _, s := range event.Sections() {
		m := v.h.Newest(s)
		if m.Seq > newest && v.concerns(triggerFrom(v.h, s, m, stage)) {
			newest = m.Seq
		}
	}
	return newest
}

// triggerFrom is the trigger that a section's newest event would be now.
func triggerFrom(h lifecycle.Host, s event.Section, m lifecycle.Meta, stage v1alpha1.ProvisioningState) Trigger {
	return Trigger{Section: s, Fact: m.Fact, UID: h.UID, Seq: m.Seq, Rev: m.Rev, Stage: stage, Deliveries: 1, At: m.At, ID: m.ID, Host: h.Name()}
}

// hold decides what needs no step.
func (v *visit) hold() (verdict, bool) {
	t := v.b.cfg.Timing
	switch {
	case !v.t.Wake && v.h.Head < v.t.Seq:
		v.b.m.stale.Inc()
		return again("stale read", around(t.Stale)), true
	case !v.h.Exists():
		return done("gone"), true
	case !v.t.Wake && v.t.Seq < v.h.Newest(v.t.Section).Seq:
		return done("superseded"), true
	case v.op != nil && !v.op.Answered:
		return v.holdClaim()
	case v.op == nil && v.problem != nil && !v.due():
		return done("backing off"), true
	default:
		return verdict{}, false
	}
}

// holdClaim keeps hands off a claim that is not answered: only its own event
// goes on with it, once it has rested.
func (v *visit) holdClaim() (verdict, bool) {
	switch {
	case v.t.Wake:
		return verdict{}, false
	case !v.token:
		return done("claimed elsewhere"), true
	case v.h.Newest(v.section).Seq == 0 && v.t.Deliveries == 1:
		return again("claimed", v.b.cfg.Timing.Quarantine), true // claimed before the host came here
	default:
		return verdict{}, false
	}
}

// due reports whether it is time to try again after a problem: its back-off is
// over, somebody asked, or the user has changed something.
func (v *visit) due() bool {
	return v.token || v.t.Wake || v.h.Newest(event.SectionIntent).Rev > v.h.Newest(v.section).Rev
}

// carryOut does what the step says.
func (v *visit) carryOut(ctx context.Context, step lifecycle.Step) verdict {
	if v.t.Wake && v.op != nil {
		if verdict, ok := v.resume(ctx, step); ok {
			return verdict
		}
	}
	switch s := step.(type) {
	case lifecycle.Nothing:
		if v.op != nil && v.token {
			return again("waiting", v.b.cfg.Timing.poll(lifecycle.Long, v.t.Deliveries)) // an operation keeps its token
		}
		return done("nothing")
	case lifecycle.Wait:
		switch {
		case !v.token && !v.t.Wake:
		case s.Steady:
			return again("waiting", onASecond(v.b.clock(), around(s.Every)))
		default:
			return again("waiting", v.b.cfg.Timing.poll(s.Every, v.t.Deliveries))
		}
		return done("waiting")
	case lifecycle.Write:
		return v.write(ctx, s)
	case lifecycle.Record:
		return v.record(ctx, s.Fact)
	default:
		return again("fault", v.b.cfg.Timing.Refused).because(fmt.Errorf("step %T is none that the bus knows", step))
	}
}

// record appends a fact. A race that changed nothing of what the step was
// decided from is run once more without deciding anew.
func (v *visit) record(ctx context.Context, f lifecycle.Fact) verdict {
	if err := v.mayRecord(f); err != nil {
		return again("fault", v.b.cfg.Timing.Refused).because(err)
	}
	_, err := v.b.Append(ctx, v.h, f)
	if errors.Is(err, ErrConflict) {
		if h, ok := v.rebased(ctx); ok {
			_, err = v.b.Append(ctx, h, f)
		}
	}
	return v.appended(ctx, f, err)
}

func (v *visit) mayRecord(f lifecycle.Fact) error {
	if f.Section() != v.section {
		return fmt.Errorf("%s may not record %s of section %s: it is not its own", v.section.Writer(), f.Name(), f.Section())
	}
	if isClaim(f.Name()) {
		return fmt.Errorf("%s is recorded by the bus when a write is asked for, not by a step", f.Name())
	}
	return nil
}

// rebased is the host as it is now, if what matters to the step is unchanged.
func (v *visit) rebased(ctx context.Context) (lifecycle.Host, bool) {
	h, err := v.b.Load(ctx, v.t.UID)
	if err != nil {
		return h, false
	}
	same := h.Newest(v.section).Seq == v.h.Newest(v.section).Seq &&
		h.Newest(event.SectionIntent).Seq == v.h.Newest(event.SectionIntent).Seq &&
		lifecycle.Stage(h) == lifecycle.Stage(v.h)
	op, section := h.Op()
	quiet := op == nil || section == v.section || (v.foreign != nil && op.ID == v.foreign.ID)
	return h, same && quiet && h.Head > v.h.Head
}

// appended is the verdict after an append.
func (v *visit) appended(ctx context.Context, f lifecycle.Fact, err error) verdict {
	var refused *lifecycle.NotAllowedError
	switch {
	case err == nil:
		Logger(ctx).InfoContext(ctx, "recorded", keyFact, string(f.Section())+"."+f.Name())
		return done("recorded")
	case errors.Is(err, ErrConflict):
		return again("conflict", v.b.cfg.Timing.conflict())
	case errors.As(err, &refused):
		return again("not allowed", around(v.b.cfg.Timing.Refused)).because(err)
	default:
		return trouble(err)
	}
}
