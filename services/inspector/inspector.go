// Package inspector makes the hardware of a registered host known: it has the
// backend look, keeps the inventory in the data stream, and takes over what
// users supply. It writes the inspection section and nothing else.
package inspector

import (
	"context"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Backends are asked how an inspection stands, and make the writes.
type Backends interface {
	Look(ctx context.Context, k event.Kind, h lifecycle.Host) (lifecycle.Outlook, error)
	Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error
}

// Store keeps documents that are too large for an event.
type Store interface {
	PutData(ctx context.Context, uid, name string, value any) (digest string, err error)
	GetData(ctx context.Context, uid, name, digest string, value any) error
}

// Inspector is the service.
type Inspector struct {
	backends Backends
	store    Store
}

// New is an Inspector on the given backends, which keeps inventories in store.
func New(b Backends, store Store) *Inspector { return &Inspector{backends: b, store: store} }

// Section is the inspection section.
func (*Inspector) Section() event.Section { return event.SectionInspection }

// Cares about what users ask, about its own work, and about the ends of others'.
func (*Inspector) Cares(t bus.Trigger) bool {
	if t.Section == event.SectionInspection || t.Section == event.SectionIntent {
		return true
	}
	switch t.Stage {
	case v1alpha1.StateInspecting, v1alpha1.StatePreparing, v1alpha1.StateAvailable:
		return !event.UnderWay(t.Fact)
	default:
		return false
	}
}

// Step decides what is next for the host.
func (i *Inspector) Step(ctx context.Context, h lifecycle.Host) (lifecycle.Step, error) {
	task, step := decide(h)
	switch {
	case step != nil:
		return step, nil
	case task.Kind == "":
		return i.takeOver(ctx, h)
	}
	outlook, err := i.backends.Look(ctx, task.Kind, h)
	if err != nil {
		return nil, err
	}
	var digest string
	if f, ok := outlook.(lifecycle.Finished); ok {
		if digest, err = i.keep(ctx, h, f.Result.Hardware); err != nil {
			return nil, err
		}
	}
	return lifecycle.Next(h, task, outlook, func(r lifecycle.Result) lifecycle.Fact {
		return lifecycle.Inspected{Digest: digest, Source: r.Backend, Arch: arch(r.Hardware)}
	}), nil
}

// Do makes a write that Step asked for.
func (i *Inspector) Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error {
	return i.backends.Do(ctx, h, w)
}

// keep stores an inventory and returns its digest.
func (i *Inspector) keep(ctx context.Context, h lifecycle.Host, d *v1alpha1.HardwareDetails) (string, error) {
	if d == nil {
		d = &v1alpha1.HardwareDetails{}
	}
	return i.store.PutData(ctx, h.UID, event.DataHardware, d)
}

// takeOver makes what the user supplied the host's hardware details.
func (i *Inspector) takeOver(ctx context.Context, h lifecycle.Host) (lifecycle.Step, error) {
	var d v1alpha1.HardwareDetails
	if err := i.store.GetData(ctx, h.UID, event.DataSupplied, h.Intent.Hardware, &d); err != nil {
		return nil, err
	}
	digest, err := i.store.PutData(ctx, h.UID, event.DataHardware, d)
	if err != nil {
		return nil, err
	}
	return lifecycle.Record{Fact: lifecycle.Supplied{Digest: digest, Source: h.Intent.HardwareSource, Arch: arch(&d)}}, nil
}

func arch(d *v1alpha1.HardwareDetails) string {
	if d == nil {
		return ""
	}
	return d.CPU.Arch
}
