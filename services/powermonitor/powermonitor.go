// Package powermonitor watches whether hosts are on and brings about the power
// that is asked for. What the BMC says becomes an event only where it changed.
// It writes the power section and nothing else.
package powermonitor

import (
	"context"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Backends read the power of hosts and switch it.
type Backends interface {
	Look(ctx context.Context, k event.Kind, h lifecycle.Host) (lifecycle.Outlook, error)
	Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error
	Power(ctx context.Context, h lifecycle.Host) (backend.PowerState, error)
}

// Powermonitor is the service.
type Powermonitor struct {
	backends Backends
	now      func() time.Time
	every    time.Duration
	calm     *calm
}

// New is a Powermonitor on the given backends and clock.
func New(b Backends, now func() time.Time, cfg Config) *Powermonitor {
	return &Powermonitor{backends: b, now: now, every: cfg.Every, calm: newCalm()}
}

// Section is the power section.
func (*Powermonitor) Section() event.Section { return event.SectionPower }

// Cares about hosts at rest and those that are being deleted.
func (*Powermonitor) Cares(t bus.Trigger) bool {
	if t.Section == event.SectionPower {
		return true
	}
	return lifecycle.AtRest(t.Stage) || t.Stage == v1alpha1.StatePoweringOffBeforeDelete
}

// Step decides what is next for the host.
func (p *Powermonitor) Step(ctx context.Context, h lifecycle.Host) (lifecycle.Step, error) {
	where, step := turn(h, p.now())
	switch where {
	case lookAtPower:
		return p.compare(ctx, h)
	case lookAtOff:
		return p.drive(ctx, h, lifecycle.Task{Kind: event.PowerOff, Mode: v1alpha1.RebootModeHard, Reason: "the host is being deleted"})
	case lookAtSubscription:
		return p.subscribe(ctx, h)
	default:
		return step, nil
	}
}

// compare reads the power of a host at rest, unless it is being switched.
func (p *Powermonitor) compare(ctx context.Context, h lifecycle.Host) (lifecycle.Step, error) {
	var now found
	if h.Power.Op == nil {
		var err error
		if now.PowerState, err = p.backends.Power(ctx, h); err != nil {
			return nil, err
		}
		now.ours, now.anew = p.calm.broken(h, p.now()), h.Newest(event.SectionRegistration).Rev > h.Newest(event.SectionPower).Rev
	}
	if h.Power.Op == nil && changed(h.Power, now.PowerState) == "" {
		p.calm.note(h, p.now())
	}
	task, step := compare(h, now)
	switch {
	case task.Kind != "":
		return p.drive(ctx, h, task)
	case step == (lifecycle.Nothing{}) && now.Fault == "" && lifecycle.SubscriptionDue(h, p.now()):
		return p.subscribe(ctx, h)
	default:
		return p.later(h, step), nil
	}
}

// patience is how often a write of a subscription may be put off before it is left
// for later: the power waits for it.
const patience = 3

// subscribe makes or ends the subscription that is next.
func (p *Powermonitor) subscribe(ctx context.Context, h lifecycle.Host) (lifecycle.Step, error) {
	turn, open := lifecycle.NextSubscription(h)
	if !open {
		return lifecycle.Nothing{}, nil
	}
	if op := h.Power.Op; op != nil && op.Refusals >= patience {
		problem := lifecycle.NewProblem(v1alpha1.PowerManagementError, event.ClassBackend, "the backend has been busy with something else")
		return lifecycle.Record{Fact: lifecycle.Failed{Kind: event.Subscribe, Problem: problem}}, nil
	}
	outlook, err := p.backends.Look(ctx, event.Subscribe, h)
	if err != nil {
		return nil, err
	}
	task := lifecycle.Task{Kind: event.Subscribe, Reason: subscribeReason(turn)}
	return lifecycle.Next(h, task, outlook, func(r lifecycle.Result) lifecycle.Fact {
		return lifecycle.SubscriptionSet{UID: turn.UID, ID: r.Subscription}
	}), nil
}

// drive brings the power to what is wanted.
func (p *Powermonitor) drive(ctx context.Context, h lifecycle.Host, task lifecycle.Task) (lifecycle.Step, error) {
	outlook, err := p.backends.Look(ctx, task.Kind, h)
	if err != nil {
		return nil, err
	}
	return lifecycle.Next(h, task, outlook, func(lifecycle.Result) lifecycle.Fact {
		return lifecycle.Switched{Kind: task.Kind, On: task.Kind != event.PowerOff}
	}), nil
}

// later looks again at a host where nothing is to be done now: its power may
// change behind our back, and a subscription may be tried again.
func (p *Powermonitor) later(h lifecycle.Host, s lifecycle.Step) lifecycle.Step {
	if s != (lifecycle.Nothing{}) {
		return s
	}
	every := p.every
	if turn, open := lifecycle.NextSubscription(h); open {
		if pause := turn.At.Sub(p.now()); pause > 0 {
			every = min(every, pause)
		}
	}
	return lifecycle.Wait{For: "a change of power", Every: every, Steady: true}
}

// Do makes a write that Step asked for.
func (p *Powermonitor) Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error {
	return p.backends.Do(ctx, h, w)
}
