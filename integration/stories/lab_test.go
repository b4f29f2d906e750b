package stories_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/backend/redfish"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// lab is a backend with machines for stories to be told of.
type lab interface {
	// backend is what the services are given.
	backend() backend.Backend
	// machine makes the machine of a host of that name, which is off and empty.
	machine(t *testing.T, name string) machine
}

// machine is a host's machine as somebody sees it who stands before it.
type machine interface {
	view
	// login is how its BMC is reached: address, user name and password.
	login() (address, user, password string)
	// fault makes something go wrong by word of a story, and heal mends it. A word
	// that this lab does not know is an error.
	fault(words []string) (heal func(), err error)
	// born says which uid the host got.
	born(uid string)
}

// view is how somebody sees a machine who stands before it.
type view interface {
	// acts are what its backend had done to it, the oldest first.
	acts() []string
	// look is how it is now.
	look() string
	// tidy replaces what is different each time in a text.
	tidy(text string) string
}

// surroundings are what a lab finds where it is set up.
type surroundings struct {
	now     func() time.Time
	secrets redfish.Secrets
	// password is what is in the version of a Secret that a host names.
	password func(event.SecretRef) string
}

// pace is how fast services go in a lab.
type pace struct {
	// watch is how often they look at the power of hosts at rest, and poll the first
	// pause of those that wait for an operation.
	watch, poll time.Duration
	// patience is how long a story waits for what must come.
	patience time.Duration
}

// paced is a lab that is in no hurry.
type paced interface{ pace() pace }

// paceOf is how fast services go in a lab: as fast as they can, if it does not mind.
func paceOf(l lab) pace {
	if p, ok := l.(paced); ok {
		return p.pace()
	}
	return pace{watch: 50 * time.Millisecond, poll: timing().Poll, patience: patience}
}

// labs are the labs that all stories are told in, by the name of their backend.
func labs() map[string]func(*testing.T, surroundings) lab {
	return map[string]func(*testing.T, surroundings) lab{
		"fixture": newFixtureLab,
		"redfish": newRedfishLab,
		"ironic":  newIronicLab,
	}
}

// realIronic is how stories name a real Ironic.
const realIronic = "real"

func unknownFault(words []string) error {
	return fmt.Errorf("this backend knows no fault %q", strings.Join(words, " "))
}

func kindOf(word string) (event.Kind, error) {
	for _, k := range event.Kinds() {
		if string(k) == word {
			return k, nil
		}
	}
	return "", fmt.Errorf("%q is no operation", word)
}

func problem(k event.Kind, c event.Class, message string) *event.Problem {
	p := lifecycle.NewProblem(lifecycle.ErrorTypeOf(k), c, message)
	return &p
}
