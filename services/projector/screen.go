package projector

import (
	"sync"
	"time"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// screen is what this replica remembers of how a host is shown, to save reads.
// Nothing depends on it.
type screen struct {
	mu sync.Mutex
	// done is the revision up to which nothing is left to do, and painted the
	// one that was shown last, in the log of epoch.
	epoch         string
	done, painted uint64
	// last is the host at the newest revision whose news were told, and told
	// that revision; last is dropped when the host comes to rest.
	last lifecycle.Host
	told uint64
	// digest names the hardware that is shown.
	digest string
	// state is the state that is shown, since stateAt.
	state   v1alpha1.ProvisioningState
	stateAt time.Time
}

// screens are the screens of all hosts.
type screens struct {
	mu    sync.Mutex
	byUID map[string]*screen
}

func newScreens() *screens { return &screens{byUID: map[string]*screen{}} }

// lock is the host's screen, locked.
func (s *screens) lock(uid string) *screen {
	s.mu.Lock()
	sc, ok := s.byUID[uid]
	if !ok {
		sc = &screen{}
		s.byUID[uid] = sc
	}
	s.mu.Unlock()
	sc.mu.Lock()
	return sc
}

// drop forgets a host that is gone.
func (s *screens) drop(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byUID, uid)
}

// in makes the screen one of the log of that epoch, as far as rev. What was
// remembered of another log, or of one that has begun anew, is void.
func (s *screen) in(epoch string, rev uint64) {
	if s.epoch != epoch || max(s.done, s.painted) > rev {
		s.epoch, s.done, s.painted, s.told, s.last = epoch, 0, 0, 0, lifecycle.Host{}
	}
}

// shows reports whether this replica is done with a revision, of the log that
// the object shows.
func (s *screen) shows(o *v1alpha1.BareMetalHost, rev uint64) bool {
	shown, ok := shownBy(o)
	return ok && s.epoch == shown.Epoch && s.done >= rev
}
