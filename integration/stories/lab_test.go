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
	now    func() time.Time
	logins redfish.Secrets
	// password is what is in the version of a Secret that a host names.
	password func(event.SecretRef) string
}

// labs are the labs that stories can be told in, by the name of their backend.
// «real» hardware, or a real Ironic, has no lab here: stories that could be told
// there too say so, and are run where there is one.
func labs() map[string]func(*testing.T, surroundings) lab {
	return map[string]func(*testing.T, surroundings) lab{
		"fixture": newFixtureLab,
		"redfish": newRedfishLab,
		"ironic":  newIronicLab,
	}
}

// elsewhere are names of backends that stories may name, and that have their lab
// in another place.
func elsewhere() []string { return []string{"real"} }

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
