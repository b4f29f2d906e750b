package lifecycle

import (
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Fact is something that happened to a host. Apply says what it changes.
type Fact interface {
	// Section is the section that records the fact.
	Section() event.Section
	// Name is the fact's name within its section, as in its event's type.
	Name() string
	// apply changes the fact's section of h, and nothing else.
	apply(h *Host, at time.Time)
}

// Apply is the host after the fact. It does not change h.
func Apply(h Host, f Fact, at time.Time) Host {
	f.apply(&h, at)
	return h
}

// ChangeOf says in words what a fact changes and why.
func ChangeOf(f Fact) event.Change {
	if c, ok := f.(interface{ change() event.Change }); ok {
		return c.change()
	}
	return event.Change{}
}

// Wish is a fact of the intent section: what is asked of the host is now Intent.
type Wish struct {
	Fact   string
	Intent event.Intent
	Reason string
}

func (Wish) Section() event.Section       { return event.SectionIntent }
func (f Wish) Name() string               { return f.Fact }
func (f Wish) apply(h *Host, _ time.Time) { h.Intent = f.Intent }
func (f Wish) change() event.Change       { return event.Change{Reason: f.Reason} }
func (f Started) Section() event.Section  { return f.Kind.Section() }
func (f Started) Name() string            { return f.Kind.Fact(event.Started) }
func (f Started) change() event.Change    { return event.Change{Reason: f.Reason} }
func (f Claimed) Section() event.Section  { return f.Kind.Section() }
func (f Claimed) Name() string            { return f.Kind.Fact(event.Claimed) }
func (f Accepted) Section() event.Section { return f.Kind.Section() }
func (f Accepted) Name() string           { return f.Kind.Fact(event.Accepted) }
func (f Resumed) Section() event.Section  { return f.Kind.Section() }
func (f Resumed) Name() string            { return f.Kind.Fact(event.Resumed) }
func (f Aborted) Section() event.Section  { return f.Kind.Section() }
func (f Aborted) Name() string            { return f.Kind.Fact(event.Aborted) }
func (f Aborted) change() event.Change    { return event.Change{Reason: f.Reason} }
func (f Failed) Section() event.Section   { return f.Kind.Section() }
func (f Failed) Name() string             { return f.Kind.Fact(event.Failed) }
func (f Failed) change() event.Change {
	return event.Change{Reason: string(f.Problem.Class), Message: f.Problem.Message}
}

// Started begins an operation and claims its first write.
type Started struct {
	Kind   event.Kind
	Step   string
	Mode   v1alpha1.RebootMode
	Reason string
}

func (f Started) apply(h *Host, at time.Time) {
	w := h.work(f.Section())
	w.Op = &event.Op{
		ID: opID(f.Kind, h.Rev+1), Kind: f.Kind, Step: f.Step, Claim: 1, StartedAt: at, StepAt: at,
		Attempt: w.Failures + 1, Mode: f.Mode, Reason: f.Reason,
	}
	w.Stalled = nil
	clearProblem(h, f.Kind)
	begin(h, f.Kind, at)
	handOver(h, f.Kind)
	if f.Kind != event.Media { // which boots nothing
		serve(h, f.Section())
	}
	if f.Kind == event.Subscribe {
		noteSubscription(h, f.Step)
	}
}

// clearProblem: what is tried again is no present problem.
func clearProblem(h *Host, k event.Kind) {
	w := h.work(k.Section())
	if w.Problem != nil && !keepsProblem(*h, k) {
		w.Last, w.Problem = w.Problem, nil
	}
}

// keepsProblem: the cleaning between two tries of one deployment leaves its
// error readable, and subscriptions have nothing to do with the power's.
func keepsProblem(h Host, k event.Kind) bool {
	return k == event.Subscribe || (k == event.Undeploy && h.Provisioning.Attempts > 0)
}

// begin is what the start of an operation changes beside the operation itself.
func begin(h *Host, k event.Kind, at time.Time) {
	p := &h.Provisioning
	switch k {
	case event.Enroll:
		startTimes(&h.Registration.Times, at)
	case event.Inspect:
		h.Inspection.Again, h.Inspection.Waiting = p.Phase == event.Prepared, nil
		h.Inspection.Request = h.Intent.InspectRequest
		startTimes(&h.Inspection.Times, at)
	case event.Prepare:
		p.Phase, p.Waiting = event.Unprepared, nil
	case event.Deploy:
		beginDeploy(h, at)
	case event.Undeploy:
		p.Waiting = nil
		if p.Phase != event.Undeploying {
			p.Phase, p.Abandoned = event.Undeploying, ""
			startTimes(&p.DeprovisionTimes, at)
		}
	default: // nothing else
	}
}

func beginDeploy(h *Host, at time.Time) {
	p, spec := &h.Provisioning, h.Intent.Spec
	if !SameImage(p.LastAttempted, spec.Image) {
		p.Attempts = 0
	}
	p.Phase, p.Waiting, p.BootMode = event.Deploying, nil, BootMode(h.Intent)
	p.Node, p.Retry = h.Registration.Node, h.Intent.Retry
	p.LastAttempted = spec.Image.DeepCopy()
	p.Image, p.CustomDeploy = v1alpha1.Image{}, spec.CustomDeploy.DeepCopy()
	if spec.Image != nil {
		p.Image = *spec.Image.DeepCopy()
	}
	startTimes(&p.ProvisionTimes, at)
}

// Begun says that an operation is at hand for which nothing was written yet: the
// host enters its state.
type Begun struct {
	Kind   event.Kind
	Reason string
}

func (f Begun) Section() event.Section { return f.Kind.Section() }
func (f Begun) Name() string           { return string(f.Kind) + ".begun" }
func (f Begun) change() event.Change   { return event.Change{Reason: f.Reason} }
func (f Begun) apply(h *Host, at time.Time) {
	h.work(f.Section()).Stalled = nil
	clearProblem(h, f.Kind)
	begin(h, f.Kind, at)
}

// Claimed claims a further write of the operation.
type Claimed struct {
	Kind event.Kind
	Step string
}

func (f Claimed) apply(h *Host, at time.Time) {
	forced := Interrupted(*h, f.Section())
	changeOp(h, f.Kind, func(op *event.Op) {
		op.Step, op.Claim, op.Answered, op.StepAt, op.Forced = f.Step, op.Claim+1, false, at, forced
	})
	handOver(h, f.Kind)
	if f.Kind == event.Subscribe {
		noteSubscription(h, f.Step)
	}
	if forced {
		serve(h, f.Section())
	}
}

// Accepted says that the claimed write was answered.
type Accepted struct {
	Kind event.Kind
	// Busy: the answer was "not now".
	Busy bool
}

func (f Accepted) apply(h *Host, _ time.Time) {
	changeOp(h, f.Kind, func(op *event.Op) {
		op.Answered = true
		if f.Busy {
			op.Refusals++
		} else {
			op.Refusals = 0
		}
	})
}

// Resumed makes a new work token for an operation that lost its own.
type Resumed struct{ Kind event.Kind }

func (f Resumed) apply(h *Host, _ time.Time) {
	changeOp(h, f.Kind, func(op *event.Op) { op.Answered = true })
}

func changeOp(h *Host, k event.Kind, change func(*event.Op)) {
	w := h.work(k.Section())
	if w.Op == nil {
		return
	}
	op := *w.Op
	change(&op)
	w.Op = &op
}

// Aborted gives up an operation that is no longer wanted.
type Aborted struct {
	Kind   event.Kind
	Reason string
}

func (f Aborted) apply(h *Host, at time.Time) {
	w := h.work(f.Section())
	w.Op, w.Stalled = nil, nil
	unfinished(h, f.Kind)
	if f.Kind == event.Media {
		h.Provisioning.Media.Unsure = true
	}
	if f.Kind == event.Inspect {
		h.Inspection.Again = h.Inspection.Again && !h.Intent.InspectionDisabled // else it begins anew
		endTimes(&h.Inspection.Times, at)
	}
}

// Failed records a problem of the host. It ends the operation, if one is under
// way; the same kind is tried again later, or once its cause may be gone.
type Failed struct {
	Kind    event.Kind
	Problem event.Problem
	// Tried are the credentials that were tried, for enroll.
	Tried *v1alpha1.CredentialsStatus
}

func (f Failed) apply(h *Host, at time.Time) {
	w := h.work(f.Section())
	switch f.Kind {
	case event.Media:
		mediaFailed(h, f.Problem, at)
		w.Op, w.Stalled = nil, nil
		return
	case event.Subscribe:
		subscriptionFailed(h, f.Problem, at)
		w.Op, w.Stalled = nil, nil
		return
	default: // a problem of the host
	}
	w.Op, w.Last, w.Stalled = nil, nil, nil
	w.Failures++
	unfinished(h, f.Kind)
	problem := f.Problem
	problem.At, problem.Kind = at, f.Kind
	w.Problem = &problem
	if f.Tried != nil {
		h.Registration.Tried = *f.Tried
	}
	if f.Kind == event.Enroll {
		startTimes(&h.Registration.Times, at)
	}
	if f.Kind == event.Deploy {
		attempted(h)
	}
}

// attempted counts a deployment that failed. One that was refused before it
// began leaves nothing to clean, and is not counted; but that image was tried.
func attempted(h *Host) {
	p := &h.Provisioning
	if p.Phase == event.Deploying {
		p.Attempts++
		return
	}
	p.LastAttempted, p.Retry = h.Intent.Spec.Image.DeepCopy(), h.Intent.Retry
}

// Stalled says that what the host waits for, and what is not its own, has not
// answered for minutes.
type Stalled struct {
	In      event.Section
	Message string
}

func (f Stalled) Section() event.Section { return f.In }
func (Stalled) Name() string             { return event.Stalled }
func (f Stalled) change() event.Change   { return event.Change{Message: f.Message} }
func (f Stalled) apply(h *Host, at time.Time) {
	h.work(f.In).Stalled = &event.Stall{Message: f.Message, Since: at}
}

// Recovered says that it answers again.
type Recovered struct{ In event.Section }

func (f Recovered) Section() event.Section     { return f.In }
func (Recovered) Name() string                 { return event.Recovered }
func (f Recovered) apply(h *Host, _ time.Time) { h.work(f.In).Stalled = nil }

// succeed ends the section's operation and its problem.
func succeed(w *event.Work) { *w = event.Work{} }

func startTimes(m *v1alpha1.OperationMetric, at time.Time) {
	if m.Start.IsZero() || !m.End.IsZero() {
		*m = v1alpha1.OperationMetric{Start: metav1Time(at)}
	}
}

func endTimes(m *v1alpha1.OperationMetric, at time.Time) {
	if m.Start.IsZero() {
		m.Start = metav1Time(at)
	}
	m.End = metav1Time(at)
}
