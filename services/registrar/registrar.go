// Package registrar makes a declared host a node of its backend whose BMC
// answers with the credentials that were given, takes a running host over
// again when the backend lost its records, and takes it out at the end. It
// writes the registration section and nothing else.
package registrar

import (
	"context"
	"errors"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Backends are asked how a host's registration stands, and make the writes.
type Backends interface {
	Look(ctx context.Context, k event.Kind, h lifecycle.Host) (lifecycle.Outlook, error)
	Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error
	backend.FirmwareReader
}

// Registrar is the service.
type Registrar struct {
	backends Backends
	store    backend.Store
	now      func() time.Time
	grace    time.Duration
}

// New is a Registrar on the given backends and clock, which keeps what it reads of
// firmware in store.
func New(b Backends, store backend.Store, now func() time.Time, cfg Config) *Registrar {
	return &Registrar{backends: b, store: store, now: now, grace: cfg.SecretGrace}
}

// Section is the registration section.
func (*Registrar) Section() event.Section { return event.SectionRegistration }

// Cares about what users ask, about its own work, and about the ends of others'.
func (*Registrar) Cares(t bus.Trigger) bool {
	return t.Section == event.SectionRegistration || !event.UnderWay(t.Fact)
}

// Woken is Step for a host that a service could not find in its backend. Only if
// the backend itself says that it does not know the host is that recorded.
func (r *Registrar) Woken(ctx context.Context, h lifecycle.Host) (lifecycle.Step, error) {
	step, err := r.Step(ctx, h)
	if err != nil && !errors.Is(err, lifecycle.ErrUnregistered) {
		return nil, err
	}
	if err == nil && (step != lifecycle.Step(lifecycle.Nothing{}) || !held(h)) {
		return step, nil
	}
	_, err = r.backends.Look(ctx, event.Adopt, h)
	switch {
	case errors.Is(err, lifecycle.ErrUnregistered):
		return lifecycle.Record{Fact: lifecycle.Lost{}}, nil
	case err != nil:
		return nil, err
	default:
		return lifecycle.Nothing{}, nil
	}
}

// held reports whether the backend should know the host.
func held(h lifecycle.Host) bool {
	return h.Registration.Registered && !lifecycle.Orphaned(h) && !h.Intent.Paused && !h.Registration.Removed && !lifecycle.Apart(h)
}

// Step decides what is next for the host.
func (r *Registrar) Step(ctx context.Context, h lifecycle.Host) (lifecycle.Step, error) {
	task, step := decide(h, r.now(), r.grace)
	if step != nil {
		return step, nil
	}
	outlook, err := r.backends.Look(ctx, task.Kind, h)
	if err != nil {
		return nil, err
	}
	step = lifecycle.Next(h, task, outlook, func(res lifecycle.Result) lifecycle.Fact { return done(h, task, res) })
	return r.withFirmware(ctx, h, withCredentials(h, step))
}

// withFirmware reads the firmware of a machine that has just become a node.
func (r *Registrar) withFirmware(ctx context.Context, h lifecycle.Host, s lifecycle.Step) (lifecycle.Step, error) {
	record, _ := s.(lifecycle.Record)
	f, enrolled := record.Fact.(lifecycle.Enrolled)
	if !enrolled {
		return s, nil
	}
	now := h
	now.Registration.Backend, now.Registration.Node, now.Registration.Detached = f.Backend, f.Node, false
	var err error
	if f.Firmware, err = backend.ReadFirmware(ctx, r.backends, r.store, now, r.now()); err != nil {
		return nil, err
	}
	return lifecycle.Record{Fact: f}, nil
}

// Do makes a write that Step asked for.
func (r *Registrar) Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error {
	return r.backends.Do(ctx, h, w)
}

// done is the fact that ends a task.
func done(h lifecycle.Host, t lifecycle.Task, res lifecycle.Result) lifecycle.Fact {
	switch t.Kind {
	case event.Adopt:
		return lifecycle.Adopted{}
	case event.Detach:
		return lifecycle.Detached{}
	case event.Remove:
		return lifecycle.Removed{Undone: res.Undone}
	default:
		return enrolled(h, res)
	}
}

func enrolled(h lifecycle.Host, res lifecycle.Result) lifecycle.Fact {
	r, credentials := h.Registration, lifecycle.Credentials(h.Intent)
	known := r.Registered && !r.Detached && !r.Lost && r.Node == res.Node && r.Address == h.Intent.Spec.BMC.Address
	if known && !lifecycle.SameCredentials(r.Good, credentials) {
		return lifecycle.Rotated{Credentials: credentials}
	}
	return lifecycle.Enrolled{
		Backend: res.Backend, Node: res.Node, Address: h.Intent.Spec.BMC.Address, Profile: lifecycle.Profile(h), Credentials: credentials,
	}
}

// withCredentials notes the credentials that failed.
func withCredentials(h lifecycle.Host, s lifecycle.Step) lifecycle.Step {
	r, ok := s.(lifecycle.Record)
	if !ok {
		return s
	}
	f, ok := r.Fact.(lifecycle.Failed)
	if !ok || f.Kind != event.Enroll {
		return s
	}
	tried := lifecycle.Credentials(h.Intent)
	f.Tried = &tried
	return lifecycle.Record{Fact: f}
}
