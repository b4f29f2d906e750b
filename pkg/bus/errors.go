package bus

import (
	"errors"
	"fmt"

	"github.com/metalbus/metalbus/api/event"
)

// ErrConflict says that the host is no longer what it was when it was loaded, so
// nothing was appended. Load it again and decide anew.
var ErrConflict = errors.New("the host has changed since it was loaded")

// ErrUnanswered says that NATS did not answer in time. Whether an event was appended is
// unknown until the host is loaded again.
var ErrUnanswered = errors.New("NATS did not answer in time")

// ErrUnavailable says that no server answers for a stream at the moment, as
// while its replicas choose a leader. Nothing was appended.
var ErrUnavailable = errors.New("no NATS server answers for the stream at the moment: are enough of them up?")

// ErrNotInitialized says that the streams of the bus are not there.
var ErrNotInitialized = errors.New("the bus is not initialized: run 'metalbus bus init' with the administrator's credentials")

// ErrFull says that a stream has reached its limit of bytes, and takes no more events.
var ErrFull = errors.New("the stream is full: nothing is done until it is given more bytes (metalbus bus init) or hosts are purged")

// BadEventError is a message on the bus that is no event of ours, though it
// comes from where one was due. The state of its host cannot be known.
type BadEventError struct {
	UID     string
	Section event.Section
	Seq     uint64
	Cause   error
}

func (e *BadEventError) Error() string {
	return fmt.Sprintf("event %d of section %s of host %s is unreadable: %v; purge the host to have it restored from its object", e.Seq, e.Section, e.UID, e.Cause)
}

func (e *BadEventError) Unwrap() error { return e.Cause }

// NewerError is an event that asks for a newer reader.
type NewerError struct {
	UID     string
	Section event.Section
	Needs   int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("section %s of host %s needs a reader of level %d, this one has %d: upgrade this service", e.Section, e.UID, e.Needs, readerLevel)
}
