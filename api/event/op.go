package event

import (
	"strings"
	"time"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Kind names an operation on a host: a verb of the field.
type Kind string

// The operations, by the section that carries them.
const (
	Enroll Kind = "enroll" // registration: make the host a node of its backend, and check its credentials
	Adopt  Kind = "adopt"  // registration: take a running host over again after the backend lost its records
	Detach Kind = "detach" // registration: take the node out of its backend, leave the machine alone
	Remove Kind = "remove" // registration: take the node out of its backend for good

	Inspect Kind = "inspect" // inspection: learn the hardware

	Prepare  Kind = "prepare"  // provisioning: RAID, firmware and cleaning before a host is available
	Deploy   Kind = "deploy"   // provisioning: bring the image onto the host
	Undeploy Kind = "undeploy" // provisioning: take it off again, and clean
	Media    Kind = "media"    // provisioning: bring the virtual CD of a host in use to what is wanted
	Service  Kind = "service"  // provisioning: change firmware or settings of a host in use

	PowerOn  Kind = "on"     // power: switch the host on
	PowerOff Kind = "off"    // power: switch it off
	Reboot   Kind = "reboot" // power: restart it without a time off, where power-off is disabled

	Subscribe Kind = "subscribe" // power: make, or end, a subscription to the BMC's events
)

// Section is the section that carries operations of this kind.
func (k Kind) Section() Section {
	switch k {
	case Enroll, Adopt, Detach, Remove:
		return SectionRegistration
	case Inspect:
		return SectionInspection
	case Prepare, Deploy, Undeploy, Media, Service:
		return SectionProvisioning
	case PowerOn, PowerOff, Reboot, Subscribe:
		return SectionPower
	default:
		return ""
	}
}

// Phase is how far an operation has come. A fact of an operation is named
// <kind>.<phase>.
type Phase string

// The phases of an operation.
const (
	Started   Phase = "started"   // begun, and its first write claimed
	Claimed   Phase = "claimed"   // a further write claimed
	Accepted  Phase = "accepted"  // the claimed write has been answered
	Resumed   Phase = "resumed"   // taken up again after its work token was lost
	Succeeded Phase = "succeeded" // ended as wanted
	Failed    Phase = "failed"    // ended, or tried in vain, with a problem
	Aborted   Phase = "aborted"   // given up since it is no longer wanted
)

// Fact is the name of the fact that an operation of kind k reached phase p.
func (k Kind) Fact(p Phase) string { return string(k) + "." + string(p) }

// UnderWay reports whether the fact tells of an operation that goes on. Such
// facts concern the operation's owner alone; everybody else waits for its end.
func UnderWay(fact string) bool {
	i := strings.LastIndexByte(fact, '.')
	switch Phase(fact[i+1:]) {
	case Started, Claimed, Accepted, Resumed:
		return i > 0
	default:
		return false
	}
}

// Op is an operation under way. A host has at most one.
type Op struct {
	// ID is <kind>-<hostrev of its start>, the correlation id of its events.
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// Step names the write to the outside that was claimed last.
	Step string `json:"step,omitempty"`
	// Claim counts the claims of the operation from 1.
	Claim int `json:"claim,omitempty"`
	// Answered is true once the claimed write has been answered.
	Answered bool `json:"answered,omitempty"`
	// Refusals counts answers of "busy, later" in a row.
	Refusals  int       `json:"refusals,omitempty"`
	StartedAt time.Time `json:"startedAt"`
	// StepAt is the time of the newest claim.
	StepAt time.Time `json:"stepAt,omitzero"`
	// Attempt is 1 for the first try, 2 for the one after a first failure.
	Attempt int `json:"attempt,omitempty"`
	// Forced: the newest claim serves a reboot that may interrupt the operation.
	Forced bool `json:"forced,omitempty"`
	// Mode is how a power operation is done: soft or hard.
	Mode v1alpha1.RebootMode `json:"mode,omitempty"`
	// Reason says why the operation was begun, in a few words for people.
	Reason string `json:"reason,omitempty"`
}

// Class sorts problems by what people have to do about them.
type Class string

// The classes of problems. Each has a next step of its own, see pkg/lifecycle.
const (
	ClassCredentials Class = "Credentials" // user name, password or their Secret
	ClassAddress     Class = "Address"     // the BMC address, or a field that goes with it
	ClassUnreachable Class = "Unreachable" // the BMC or its network
	ClassTLS         Class = "TLS"         // certificates
	ClassPower       Class = "Power"       // power actions refused or without effect
	ClassMedia       Class = "Media"       // virtual media
	ClassInspection  Class = "Inspection"  // inventory
	ClassImage       Class = "Image"       // the image, its checksum, its server
	ClassHardware    Class = "Hardware"    // RAID, firmware, disks
	ClassTimeout     Class = "Timeout"     // something took too long
	ClassUnsupported Class = "Unsupported" // the backend cannot do this
	ClassConflict    Class = "Conflict"    // something else claims the host or one of its names
	ClassBackend     Class = "Backend"     // the backend's own trouble with this host
	ClassInternal    Class = "Internal"    // a fault of metalbus
)

// Problem is an error of a host that its user should see.
type Problem struct {
	Type  v1alpha1.ErrorType `json:"type"`
	Class Class              `json:"class,omitempty"`
	// Message says what is wrong, with names and values; never a secret.
	Message string `json:"message"`
	// Next says what to do about it.
	Next string    `json:"next,omitempty"`
	At   time.Time `json:"at,omitzero"`
	// Kind is the operation that the problem ended, if any.
	Kind Kind `json:"kind,omitempty"`
	// Local: it was found without asking the BMC or the backend, in what the
	// user wrote.
	Local bool `json:"local,omitempty"`
}

// Change says in words what an event changed, and why.
type Change struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Data is the data of every event of a host. S is the type of its section.
type Data[S any] struct {
	// State is the whole section after the event.
	State S `json:"state"`
	// Change is for people and for filters.
	Change Change `json:"change,omitzero"`
	// Op is the operation that the event belongs to; also when it has just ended.
	Op *Op `json:"op,omitempty"`
}
