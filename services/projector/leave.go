package projector

import (
	"context"
	"errors"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// release lets go of a host that its services are done with: of its Secrets, its
// HardwareData, and of the object itself, which is the end of it.
func (p *Projector) release(ctx context.Context, o *v1alpha1.BareMetalHost) error {
	for _, secret := range kube.SecretsOf(o) {
		if err := p.kube.ReleaseSecret(ctx, o, secret); err != nil {
			return err
		}
	}
	if err := p.kube.ReleaseHardware(ctx, o); err != nil {
		return err
	}
	if err := p.wishes.Release(ctx, o); err != nil {
		return err
	}
	return p.kube.ReleaseHost(ctx, o)
}

// letGo deals with an object that was left behind by a move. The machine is
// another cluster's: nothing is done to it, and the object is not held.
func (p *Projector) letGo(ctx context.Context, o *v1alpha1.BareMetalHost, h lifecycle.Host) error {
	if h.Exists() {
		if err := p.record(ctx, h, intentOf(o, surroundings{before: h}), "moved to another cluster"); err != nil {
			return err
		}
	}
	if o.DeletionTimestamp == nil {
		return nil
	}
	return p.release(ctx, o)
}

// forget records that a host's object is gone. Nothing is done to a machine
// whose object went without its services having let go of it: it was moved, or
// somebody took the finalizer off.
func (p *Projector) forget(ctx context.Context, r kube.Ref) error {
	for {
		h, err := p.bus.Load(ctx, r.UID)
		if err != nil || !h.Exists() || forgotten(h) {
			return err
		}
		err = p.append(ctx, h, lifecycle.Wish{Fact: event.Forgotten, Intent: farewell(h), Reason: "the object is gone"})
		if !errors.Is(err, bus.ErrConflict) {
			return err
		}
	}
}

func forgotten(h lifecycle.Host) bool {
	return h.Newest(event.SectionIntent).Fact == event.Forgotten
}

// farewell is the last intent of a host.
func farewell(h lifecycle.Host) event.Intent {
	last := h.Intent
	last.Paused = !h.Registration.Removed
	return sealed(last)
}
