package lifecycle

import (
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Step is what a service does next for a host. The bus carries it out.
//
//sumtype:decl
type Step interface{ isStep() }

// Nothing is to be done by this service until something else happens.
type Nothing struct{}

// Wait for something that goes on elsewhere, and look again.
type Wait struct {
	// For says what is waited for, for people.
	For string
	// Every is the longest time until the next look. The first looks come
	// sooner: 200 ms, 400 ms and so on up to it.
	Every time.Duration
	// Steady: nothing is expected to happen soon, so the first looks come no
	// sooner than the later ones.
	Steady bool
}

// Write asks for one write to the outside: the bus claims it for this service
// by an append, and only then calls Do.
type Write struct {
	// Kind is the operation that the write belongs to. If it is not under way
	// the claim starts it.
	Kind event.Kind
	// Name is the write's name within the operation.
	Name string
	// Mode is how a power operation is done.
	Mode v1alpha1.RebootMode
	// Reason says why the operation is begun, in a few words.
	Reason string
}

// Record a fact.
type Record struct{ Fact Fact }

func (Nothing) isStep() {}
func (Wait) isStep()    {}
func (Write) isStep()   {}
func (Record) isStep()  {}

// Outlook is how an operation stands, as a backend sees it.
//
//sumtype:decl
type Outlook interface{ isOutlook() }

// Finished says that what the operation was to bring about is so.
type Finished struct{ Result Result }

// Underway says that the backend or the machine is at it.
type Underway struct {
	For   string
	Every time.Duration
}

// Needs says which write comes next.
type Needs struct{ Write string }

// Broken says that the operation cannot go on without somebody's help, or not now.
type Broken struct{ Problem event.Problem }

func (Finished) isOutlook() {}
func (Underway) isOutlook() {}
func (Needs) isOutlook()    {}
func (Broken) isOutlook()   {}

// Result is what a finished operation yields; each kind of operation fills its
// own fields.
type Result struct {
	// Backend is the name of the backend that answered.
	Backend string
	// Node is the host's identity at the backend (enroll, adopt).
	Node string
	// Hardware is the inventory (inspect).
	Hardware *v1alpha1.HardwareDetails
	// Subscription is a subscription's name at the BMC, "" if there is none (subscribe).
	Subscription string
	// Undone says what could not be done and was left (remove).
	Undone string
}

// Polls of operations that take seconds, and of those that take minutes.
const (
	Quick = 3 * time.Second
	Long  = 10 * time.Second
)
