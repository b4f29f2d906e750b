package stories_test

import (
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// site is where a story is told: what its user sees and does, and what comes of it.
type site struct {
	user
	course
	machine
	name string
}

// user is what somebody does who has the objects.
type user interface {
	// apply creates the host's object, or changes it.
	apply(edit func(*v1alpha1.BareMetalHost))
	// remove deletes it.
	remove()
	// secret puts user name and password into its Secret; nil deletes that.
	secret(data map[string]string)
	// shown is the object as it is now, nil if there is none.
	shown() *v1alpha1.BareMetalHost
	wishes
}

// course is what happens to the host.
type course interface {
	// until lets things happen until the condition holds of the host as it is, or
	// has been since it was waited for last.
	until(what string, cond condition)
	// pass lets time pass.
	pass(d time.Duration)
	// restart ends all services and begins them anew.
	restart()
	// history is the host at each of its revisions.
	history() []lifecycle.Host
	// at is the host as it was waited for last.
	at() lifecycle.Host
}

// condition is what is waited for: of the host on the bus, and of its object.
type condition struct {
	host   func(lifecycle.Host) bool
	object func(*v1alpha1.BareMetalHost) bool
	// firmware is about the objects beside it that tell of its firmware.
	firmware func(papers) bool
	// now says that it is about the newest revision only.
	now bool
}

func (c condition) holds(h lifecycle.Host) bool { return c.host == nil || c.host(h) }

func (c condition) shows(o *v1alpha1.BareMetalHost) bool { return c.object == nil || c.object(o) }

// papers are the objects about a host's firmware, empty ones where there are none.
type papers struct {
	settings   *v1alpha1.HostFirmwareSettings
	components *v1alpha1.HostFirmwareComponents
}

// patience is how long a story waits by the real clock for what must come, where
// hardware takes next to no time.
const patience = 60 * time.Second

// await waits until the condition holds.
func await(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	deadline := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(deadline) {
			tb.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
