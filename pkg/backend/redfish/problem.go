package redfish

import (
	"context"
	"errors"
	"fmt"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/bmcaddress"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// broken turns an error into an outlook where it is the host's own problem.
func (b *Backend) broken(k event.Kind, err error) (lifecycle.Outlook, error) {
	if p, ok := b.problem(k, err); ok {
		return lifecycle.Broken{Problem: p}, nil
	}
	return nil, err
}

// failed says what an error of a write means to the bus: busy, a problem of
// the host, or an open question.
func (b *Backend) failed(k event.Kind, err error) error {
	switch {
	case errors.Is(err, bmc.ErrBusy):
		return fmt.Errorf("%w: %w", lifecycle.ErrBusy, err)
	case errors.Is(err, bmc.ErrUnreachable), errors.Is(err, bmc.ErrTimeout):
		// Whether it was carried out is open: the next look will tell.
		return fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	if p, ok := b.problem(k, err); ok {
		return &lifecycle.ProblemError{Problem: p}
	}
	return err
}

// problem is what an error means to the host; ok is false for trouble of ours.
func (b *Backend) problem(k event.Kind, err error) (p event.Problem, ok bool) {
	if own, is := errors.AsType[*lifecycle.ProblemError](err); is {
		return own.Problem, true
	}
	e, is := errors.AsType[*bmc.Error](err)
	if !is || errors.Is(err, context.Canceled) {
		return event.Problem{}, false
	}
	class := classOf(k, e.Reason)
	p = event.Problem{Type: lifecycle.ErrorTypeOf(k), Class: class, Message: e.Error(), Next: lifecycle.NextStep(class)}
	if e.Advice != "" {
		p.Next = "" // the message says it already, and better
	}
	return p, true
}

func classOf(k event.Kind, reason error) event.Class {
	for _, c := range []struct {
		reason error
		class  event.Class
	}{
		{bmc.ErrUnauthorized, event.ClassCredentials},
		{bmc.ErrUnknownHost, event.ClassAddress},
		{bmc.ErrUnreachable, event.ClassUnreachable},
		{bmc.ErrTLS, event.ClassTLS},
		{bmc.ErrTimeout, event.ClassTimeout},
		{bmc.ErrNotRedfish, event.ClassAddress},
		{bmc.ErrNoSystem, event.ClassAddress},
		{bmc.ErrSeveralSystems, event.ClassAddress},
		{bmc.ErrBusy, event.ClassBackend},
	} {
		if errors.Is(reason, c.reason) {
			return c.class
		}
	}
	switch k {
	case event.Inspect:
		return event.ClassInspection
	case event.Deploy, event.Undeploy:
		return event.ClassMedia
	default:
		return event.ClassPower
	}
}

// parse reads the host's BMC address.
func parse(h lifecycle.Host) (bmcaddress.Address, error) {
	spec := h.Intent.Spec.BMC
	a, err := bmcaddress.Parse(spec.Address, spec.DisableCertificateVerification)
	if err != nil {
		p := lifecycle.NewProblem(v1alpha1.RegistrationError, event.ClassAddress, err.Error())
		p.Local = true
		return a, &lifecycle.ProblemError{Problem: p}
	}
	return a, nil
}
