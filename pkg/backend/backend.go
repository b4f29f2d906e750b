// Package backend is the door to the hardware: one small interface that each
// backend meets, and the choice of the backend that holds a host.
//
// A backend knows how an operation is done there. Whether it is to be done is
// decided by the services.
package backend

import (
	"context"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Backend carries out operations on hosts, one write at a time. Its methods
// are safe for concurrent use, bounded by their context, and may be repeated
// after a crash at any point: what is so already is success.
type Backend interface {
	// Name is how users call the backend.
	Name() string
	// Look reads how an operation on the host stands, and writes nothing. An
	// error is trouble of the backend as a whole; what is wrong with this host
	// is a lifecycle.Broken.
	Look(ctx context.Context, k event.Kind, h lifecycle.Host) (lifecycle.Outlook, error)
	// Do makes the one write that Look asked for. An error that wraps lifecycle.ErrBusy
	// is "not now, nothing was done", a *lifecycle.ProblemError is the
	// host's own problem, and a time-out leaves open whether it was done.
	Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error
	// Power reads the host's power, cheaply.
	Power(ctx context.Context, h lifecycle.Host) (PowerState, error)
	FirmwareReader
}

// Claimer is a backend that wants some of the hosts that name none.
type Claimer interface {
	// Claims reports whether the host is to be this backend's.
	Claims(h lifecycle.Host) bool
}

// PowerState is what a backend knows of a host's power.
type PowerState struct {
	// On is nil while unknown.
	On *bool
	// Fault says why the power cannot be controlled, "" if it can.
	Fault string
	// Health is OK, Warning, Critical or "".
	Health string
	// Maintenance is why somebody has the backend leave the host alone, "" if
	// nobody has, or it was metalbus.
	Maintenance string
	// Astray is the state in which the backend has the host, if neither the host
	// nor an operation on it explains that, "" if one does.
	Astray string
	// Passing: the backend is on its way from there to another state.
	Passing bool
	// Others says who else has a hand in the host through the backend, "" if
	// nobody has.
	Others string
}
