package ironic

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// noSystem is what Ironic says of a system that the BMC does not know.
var noSystem = regexp.MustCompile(`resource \S*/systems/\S+ not found`)

// classify sorts what Ironic says by what people have to do about it.
func classify(text string, otherwise event.Class) event.Class {
	text = strings.ToLower(text)
	if noSystem.MatchString(text) {
		return event.ClassAddress
	}
	for _, c := range []struct {
		class event.Class
		parts []string
	}{
		{event.ClassCredentials, []string{"code 401", "novalidsession", "unauthorized", "invalid username", "invalid credentials", "accesserror", "authentication failed"}},
		{event.ClassTLS, []string{"certificate verify failed", "ssl:", "certificate"}},
		{event.ClassAddress, []string{"name or service not known", "nodename nor servname", "missing the following redfish properties", "missing the following ipmi"}},
		{event.ClassImage, []string{"validation of image href", "checksum", "image_source", "could not be downloaded"}},
		{event.ClassUnreachable, []string{"unable to connect", "connection failed", "econnrefused", "connection refused", "no route to host", "max retries exceeded", "ipmi call failed", "timed out connecting"}},
		{event.ClassTimeout, []string{"timeout reached", "timed out", "timeout"}},
	} {
		for _, part := range c.parts {
			if strings.Contains(text, part) {
				return c.class
			}
		}
	}
	return otherwise
}

// problemError is an error that is the host's own problem.
func problemError(k event.Kind, c event.Class, message, next string) error {
	if next == "" {
		next = lifecycle.NextStep(c)
	}
	return &lifecycle.ProblemError{Problem: event.Problem{Type: lifecycle.ErrorTypeOf(k), Class: c, Message: message, Next: next}}
}

// ofHost makes an error the host's own problem where it is; ok is false for what
// is trouble of Ironic as a whole, or may pass by itself.
func ofHost(k event.Kind, err error) (p event.Problem, ok bool) {
	if own, is := errors.AsType[*lifecycle.ProblemError](err); is {
		p := own.Problem
		p.Type = lifecycle.ErrorTypeOf(k) // who reads a Secret does not know what for
		return p, true
	}
	class := event.ClassBackend
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return event.Problem{}, false
	case errors.Is(err, ironic.ErrUnsupported):
		class = event.ClassUnsupported
	case errors.Is(err, ironic.ErrConflict), errors.Is(err, ironic.ErrForbidden):
		class = event.ClassConflict
	case errors.Is(err, ironic.ErrHidden), errors.Is(err, ironic.ErrInvalid), errors.Is(err, ironic.ErrFailed):
	default:
		return event.Problem{}, false
	}
	text := err.Error()
	p = lifecycle.NewProblem(lifecycle.ErrorTypeOf(k), classify(ironic.Detail(err), class), text)
	if e, is := errors.AsType[*ironic.Error](err); is && e.Advice != "" {
		p.Next = "" // the message says it, and better
	}
	return p, true
}

// lookFailed is what an error of a read means to whoever looks.
func lookFailed(k event.Kind, err error) (lifecycle.Outlook, error) {
	if p, ok := ofHost(k, err); ok {
		return lifecycle.Broken{Problem: p}, nil
	}
	return nil, err
}

// writeFailed is what an error of a write means to the bus.
func writeFailed(k event.Kind, err error) error {
	if err == nil {
		return nil
	}
	if p, ok := ofHost(k, err); ok {
		return &lifecycle.ProblemError{Problem: p}
	}
	if errors.Is(err, ironic.ErrNoNode) {
		return fmt.Errorf("%w: %w", lifecycle.ErrUnregistered, err)
	}
	return err
}
