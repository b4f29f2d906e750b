// Package provisioner gets a host ready, brings an image onto it, and takes it
// off again. It writes the provisioning section and nothing else, and from a
// host in use it takes nothing away unless its user says so.
package provisioner

import (
	"context"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Backends are asked how an operation stands, and make the writes.
type Backends interface {
	Look(ctx context.Context, k event.Kind, h lifecycle.Host) (lifecycle.Outlook, error)
	Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error
}

// Provisioner is the service.
type Provisioner struct {
	backends    Backends
	now         func() time.Time
	maxAttempts int
}

// New is a Provisioner on the given backends and clock.
func New(b Backends, now func() time.Time, cfg Config) *Provisioner {
	return &Provisioner{backends: b, now: now, maxAttempts: cfg.MaxAttempts}
}

// Section is the provisioning section.
func (*Provisioner) Section() event.Section { return event.SectionProvisioning }

// Cares about hosts that are registered, unless another service is at work there.
func (*Provisioner) Cares(t bus.Trigger) bool {
	switch {
	case t.Section == event.SectionProvisioning:
		return true
	case event.UnderWay(t.Fact):
		return false
	}
	switch t.Stage {
	case v1alpha1.StateNone, v1alpha1.StateUnmanaged, v1alpha1.StateRegistering, v1alpha1.StateInspecting, v1alpha1.StateDeleting:
		return false
	default:
		return true
	}
}

// Step decides what is next for the host.
func (p *Provisioner) Step(ctx context.Context, h lifecycle.Host) (lifecycle.Step, error) {
	task, step := decide(h, p.now(), p.maxAttempts)
	if step != nil {
		return step, nil
	}
	outlook, err := p.backends.Look(ctx, task.Kind, h)
	if err != nil {
		return nil, err
	}
	return lifecycle.Next(h, task, outlook, func(lifecycle.Result) lifecycle.Fact { return done(h, task) }), nil
}

// Do makes a write that Step asked for.
func (p *Provisioner) Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error {
	return p.backends.Do(ctx, h, w)
}

// done is the fact that ends a task.
func done(h lifecycle.Host, t lifecycle.Task) lifecycle.Fact {
	switch t.Kind {
	case event.Deploy:
		return lifecycle.Provisioned{}
	case event.Undeploy:
		return lifecycle.Deprovisioned{}
	case event.Media:
		return lifecycle.MediaSet{URL: lifecycle.WantedMedia(h)}
	default:
		return lifecycle.ReadyForImage{RAID: lifecycle.TargetRAID(h)}
	}
}
