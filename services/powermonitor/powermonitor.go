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
	every    time.Duration
}

// New is a Powermonitor on the given backends.
func New(b Backends, cfg Config) *Powermonitor {
	return &Powermonitor{backends: b, every: cfg.Every}
}

// Section is the power section.
func (*Powermonitor) Section() event.Section { return event.SectionPower }

// Cares about hosts at rest and those that are being deleted.
func (*Powermonitor) Cares(t bus.Trigger) bool {
	if t.Section == event.SectionPower {
		return true
	}
	return steady(t.Stage) || t.Stage == v1alpha1.StatePoweringOffBeforeDelete
}

// Step decides what is next for the host.
func (p *Powermonitor) Step(ctx context.Context, h lifecycle.Host) (lifecycle.Step, error) {
	look, step := turn(h)
	if !look {
		return step, nil
	}
	now := backend.PowerState{}
	if h.Power.Op == nil {
		var err error
		if now, err = p.backends.Power(ctx, h); err != nil {
			return nil, err
		}
	}
	task, step := compare(h, now)
	if task.Kind == "" {
		return p.later(step), nil
	}
	outlook, err := p.backends.Look(ctx, task.Kind, h)
	if err != nil {
		return nil, err
	}
	return lifecycle.Next(task, outlook, func(lifecycle.Result) lifecycle.Fact {
		return lifecycle.Switched{Kind: task.Kind, On: task.Kind != event.PowerOff}
	}), nil
}

// later looks again at a host where nothing is to be done now: its power may
// change behind our back.
func (p *Powermonitor) later(s lifecycle.Step) lifecycle.Step {
	if s == (lifecycle.Nothing{}) {
		return lifecycle.Wait{For: "a change of power", Every: p.every, Steady: true}
	}
	return s
}

// Do makes a write that Step asked for.
func (p *Powermonitor) Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error {
	return p.backends.Do(ctx, h, w)
}
