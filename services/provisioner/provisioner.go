// Package provisioner gets a host ready, brings an image onto it, and takes it
// off again. It writes the provisioning section and nothing else, and from a
// host in use it takes nothing away unless its user says so.
package provisioner

import (
	"context"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Backends are asked how an operation stands, and make the writes.
type Backends interface {
	Look(ctx context.Context, k event.Kind, h lifecycle.Host) (lifecycle.Outlook, error)
	Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error
	backend.FirmwareReader
}

// Provisioner is the service.
type Provisioner struct {
	backends    Backends
	store       backend.Store
	now         func() time.Time
	maxAttempts int
}

// New is a Provisioner on the given backends and clock, which keeps what it reads
// of firmware in store.
func New(b Backends, store backend.Store, now func() time.Time, cfg Config) *Provisioner {
	return &Provisioner{backends: b, store: store, now: now, maxAttempts: cfg.MaxAttempts}
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
	switch {
	case step == lifecycle.Step(lifecycle.Nothing{}) && rests(h):
		return p.acquaint(ctx, h)
	case step != nil:
		return step, nil
	}
	outlook, err := p.backends.Look(ctx, task.Kind, h)
	if err != nil {
		return nil, err
	}
	var read *event.FirmwareRead
	if _, ended := outlook.(lifecycle.Finished); ended && changesFirmware(h, task.Kind) {
		if read, err = p.read(ctx, h); err != nil {
			return nil, err
		}
	}
	return lifecycle.Next(h, task, outlook, func(lifecycle.Result) lifecycle.Fact { return done(h, task, read) }), nil
}

// changesFirmware reports whether the machine's firmware may be another one since
// the operation.
func changesFirmware(h lifecycle.Host, k event.Kind) bool {
	return h.Provisioning.Op != nil && (k == event.Prepare || k == event.Service)
}

// acquaint reads the firmware of a host at rest of which it is not known.
func (p *Provisioner) acquaint(ctx context.Context, h lifecycle.Host) (lifecycle.Step, error) {
	unread, wait := lifecycle.Unread(h, p.now())
	switch {
	case !unread:
		return lifecycle.Nothing{}, nil
	case wait > 0:
		return lifecycle.Wait{For: "the firmware to be readable", Every: wait, Steady: true}, nil
	}
	read, err := p.read(ctx, h)
	if err != nil {
		return nil, err
	}
	return lifecycle.Record{Fact: lifecycle.FirmwareSeen{Read: *read}}, nil
}

func (p *Provisioner) read(ctx context.Context, h lifecycle.Host) (*event.FirmwareRead, error) {
	read, err := backend.ReadFirmware(ctx, p.backends, p.store, h, p.now())
	return &read, err
}

// Do makes a write that Step asked for.
func (p *Provisioner) Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error {
	return p.backends.Do(ctx, h, w)
}

// done is the fact that ends a task.
func done(h lifecycle.Host, t lifecycle.Task, read *event.FirmwareRead) lifecycle.Fact {
	switch t.Kind {
	case event.Deploy:
		return lifecycle.Provisioned{}
	case event.Undeploy:
		return lifecycle.Deprovisioned{}
	case event.Service:
		return lifecycle.Serviced{Read: read}
	case event.Media:
		return lifecycle.MediaSet{URL: lifecycle.WantedMedia(h)}
	default:
		return lifecycle.ReadyForImage{RAID: lifecycle.TargetRAID(h), Read: read}
	}
}
