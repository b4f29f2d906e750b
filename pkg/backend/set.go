package backend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Set holds the backends of an installation.
type Set struct {
	list []Backend
}

// NewSet is a Set in which the first backend is the default one.
func NewSet(first Backend, others ...Backend) *Set {
	return &Set{list: append([]Backend{first}, others...)}
}

// Of is the backend that holds the host: the one that registered it, else the
// one that the host asks for by name, else the first that claims it, else the
// default. A host never changes its backend by itself, only by being detached
// and attached again. A name that is not in the set is a *lifecycle.ProblemError.
func (s *Set) Of(h lifecycle.Host) (Backend, error) {
	name := h.Intent.Backend
	if r := h.Registration; r.Backend != "" && !r.Detached {
		name = r.Backend
	}
	if name == "" {
		return s.claimant(h), nil
	}
	i := slices.IndexFunc(s.list, func(b Backend) bool { return b.Name() == name })
	if i < 0 {
		p := lifecycle.NewProblem(v1alpha1.RegistrationError, event.ClassUnsupported,
			fmt.Sprintf("no backend is named %q; there are: %s", name, strings.Join(s.Names(), ", ")))
		p.Local = true
		return nil, &lifecycle.ProblemError{Problem: p}
	}
	return s.list[i], nil
}

// claimant is the backend of a host that asks for none.
func (s *Set) claimant(h lifecycle.Host) Backend {
	for _, b := range s.list {
		if c, ok := b.(Claimer); ok && c.Claims(h) {
			return b
		}
	}
	return s.list[0]
}

// Names are the names of the backends, the default one first.
func (s *Set) Names() []string {
	var names []string
	for _, b := range s.list {
		names = append(names, b.Name())
	}
	return names
}

// Look asks the host's backend how an operation stands.
func (s *Set) Look(ctx context.Context, k event.Kind, h lifecycle.Host) (lifecycle.Outlook, error) {
	b, err := s.Of(h)
	if err != nil {
		return broken(err)
	}
	o, err := b.Look(ctx, k, h)
	if err != nil {
		return broken(err)
	}
	if f, ok := o.(lifecycle.Finished); ok {
		f.Result.Backend = b.Name()
		return f, nil
	}
	return o, nil
}

// broken turns a host's own problem into an outlook; other errors stay errors.
func broken(err error) (lifecycle.Outlook, error) {
	if p, ok := errors.AsType[*lifecycle.ProblemError](err); ok {
		return lifecycle.Broken{Problem: p.Problem}, nil
	}
	return nil, err
}

// Do has the host's backend make a write.
func (s *Set) Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error {
	b, err := s.Of(h)
	if err != nil {
		return err
	}
	return b.Do(ctx, h, w)
}

// Power reads the host's power from its backend.
func (s *Set) Power(ctx context.Context, h lifecycle.Host) (PowerState, error) {
	b, err := s.Of(h)
	if err != nil {
		return PowerState{}, err
	}
	return b.Power(ctx, h)
}

// Firmware reads a machine's firmware by its host's backend.
func (s *Set) Firmware(ctx context.Context, h lifecycle.Host) (*event.Firmware, error) {
	b, err := s.Of(h)
	if err != nil {
		return nil, err
	}
	return b.Firmware(ctx, h)
}
