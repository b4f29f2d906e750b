package powermonitor

import (
	"strings"
	"sync"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

const (
	// effect is for how long after one of our operations a change may be its doing,
	// where nobody has looked in between.
	effect = 10 * time.Minute
	// forgetAfter bounds what is kept of hosts that are not looked at any more.
	forgetAfter = time.Hour
)

// calm remembers at which looks of this replica hosts were as they are known, so that
// what changes after that is known not to be our doing.
type calm struct {
	mu    sync.Mutex
	byUID map[string]calmLook
}

// calmLook is such a look, by the newest revision that an operation had made by then.
type calmLook struct {
	rev uint64
	at  time.Time
}

func newCalm() *calm { return &calm{byUID: map[string]calmLook{}} }

// note remembers that the host is as it is known.
func (c *calm) note(h lifecycle.Host, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byUID)%1024 == 1023 {
		for uid, l := range c.byUID {
			if now.Sub(l.at) > forgetAfter {
				delete(c.byUID, uid)
			}
		}
	}
	c.byUID[h.UID] = calmLook{rev: touched(h).Rev, at: now}
}

// broken reports whether an operation of ours may have changed the machine since it
// was last seen as it is known.
func (c *calm) broken(h lifecycle.Host, now time.Time) bool {
	last, own := touched(h), h.Newest(event.SectionPower)
	switch {
	case own.Rev == 0: // it is known from elsewhere
		return true
	case strings.HasSuffix(own.Fact, "."+string(event.Failed)), strings.HasSuffix(own.Fact, "."+string(event.Aborted)): // that may have its effect late
		return true
	case own.Rev > last.Rev && own.Fact != event.Stalled && own.Fact != event.Recovered: // which says how it was seen
		return false
	}
	c.mu.Lock()
	seen := c.byUID[h.UID].rev >= last.Rev
	c.mu.Unlock()
	return !seen && now.Sub(last.At) < effect
}

// touched is the newest fact of those sections whose operations change the power of a
// machine as they go.
func touched(h lifecycle.Host) lifecycle.Meta {
	last := h.Newest(event.SectionInspection)
	if m := h.Newest(event.SectionProvisioning); m.Rev > last.Rev {
		last = m
	}
	return last
}
