package lifecycle

import (
	"errors"

	"github.com/metalbus/metalbus/api/event"
)

// ErrBusy says that the backend or the BMC asked to come back later; nothing was done.
var ErrBusy = errors.New("busy")

// ErrUnregistered says that the backend does not know the host.
var ErrUnregistered = errors.New("the backend does not know the host")

// ProblemError is a problem of one host that turned up in a write.
type ProblemError struct{ Problem event.Problem }

func (e *ProblemError) Error() string { return e.Problem.Message }
