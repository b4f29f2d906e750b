package metalbus

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// hostLog is the bus, as far as people look at it.
type hostLog interface {
	Hosts(ctx context.Context) iter.Seq2[lifecycle.Host, error]
	Load(ctx context.Context, uid string) (lifecycle.Host, error)
	History(ctx context.Context, f bus.HistoryFilter, follow bool) iter.Seq2[cloudevents.Event, error]
}

const (
	// remembered is how many of the newest events a fleet keeps.
	remembered = 50
	// rateWindow is the time over which events are counted for their rate.
	rateWindow = 5 * time.Second
)

// fleet is all hosts as the bus knows them, kept up to date by its events. It
// is safe for concurrent use.
type fleet struct {
	log hostLog
	now func() time.Time

	mu      sync.Mutex
	hosts   map[string]lifecycle.Host // by uid
	stale   map[string]bool           // uids that have a newer event
	recent  []record                  // the newest last
	seen    []time.Time               // when events came, within rateWindow
	trouble map[string]error          // by uid, "" for all hosts
}

// readHosts are all hosts that can be read. broken says which cannot; err is
// trouble with all of them.
func readHosts(ctx context.Context, log hostLog) (hosts []lifecycle.Host, broken map[string]error, err error) {
	broken = map[string]error{}
	for h, err := range log.Hosts(ctx) {
		switch {
		case err == nil:
			hosts = append(hosts, h)
		case h.UID != "":
			broken[h.UID] = err
		default:
			return hosts, broken, err
		}
	}
	return hosts, broken, nil
}

// newFleet reads all hosts.
func newFleet(ctx context.Context, log hostLog, now func() time.Time) (*fleet, error) {
	f := &fleet{log: log, now: now, hosts: map[string]lifecycle.Host{}, stale: map[string]bool{}}
	hosts, broken, err := readHosts(ctx, log)
	for _, h := range hosts {
		f.hosts[h.UID] = h
	}
	f.trouble = broken
	return f, err
}

// followPause is the pause before the history is asked again after trouble.
const followPause = time.Second

// follow hears the events from since on until ctx ends. What it heard already
// does no harm.
func (f *fleet) follow(ctx context.Context, since time.Time) {
	for ctx.Err() == nil {
		for e, err := range f.log.History(ctx, bus.HistoryFilter{Since: since}, true) {
			f.note("", err)
			if err == nil {
				f.hear(readRecord(e))
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(followPause):
		}
	}
}

// note remembers the trouble with a host, or with all; nil ends it.
func (f *fleet) note(uid string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.trouble, uid)
		return
	}
	f.trouble[uid] = err
}

func (f *fleet) hear(r record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Rev <= f.hosts[r.UID].Rev {
		return // it was there when all hosts were read
	}
	f.stale[r.UID] = true
	f.recent = append(f.recent, r)
	if len(f.recent) > remembered {
		f.recent = slices.Delete(f.recent, 0, len(f.recent)-remembered)
	}
	f.seen = append(f.seen, f.now())
}

// refresh reads the hosts that have a newer event. One that cannot be read now
// is tried again the next time.
func (f *fleet) refresh(ctx context.Context) {
	f.mu.Lock()
	stale := f.stale
	f.stale = map[string]bool{}
	f.mu.Unlock()
	for uid := range stale {
		h, err := f.log.Load(ctx, uid)
		f.note(uid, err)
		f.mu.Lock()
		if err != nil {
			f.stale[uid] = true
		} else {
			f.hosts[uid] = h
		}
		f.mu.Unlock()
	}
}

// summary is the fleet at a moment.
type summary struct {
	// Total counts the hosts that are there, Settled those that are as they
	// were asked to be.
	Total, Settled int
	ByState        map[v1alpha1.ProvisioningState]int
	// Troubled are the hosts that have a problem, by name.
	Troubled []lifecycle.Host
	// Recent are the newest events, the newest last.
	Recent []record
	// Rate is how many events there were a second lately.
	Rate float64
	// Trouble is what keeps the fleet from being known in whole, by host.
	Trouble []error
}

func (f *fleet) summary() summary {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := summary{ByState: map[v1alpha1.ProvisioningState]int{}, Recent: slices.Clone(f.recent), Rate: f.rate()}
	for _, h := range f.hosts {
		if gone(h) {
			continue
		}
		s.Total++
		s.ByState[lifecycle.Stage(h)]++
		if settled(h) {
			s.Settled++
		}
		if lifecycle.Problem(h) != nil {
			s.Troubled = append(s.Troubled, h)
		}
	}
	slices.SortFunc(s.Troubled, byName)
	for _, uid := range slices.Sorted(maps.Keys(f.trouble)) {
		s.Trouble = append(s.Trouble, f.trouble[uid])
	}
	return s
}

func (f *fleet) rate() float64 {
	oldest := f.now().Add(-rateWindow)
	f.seen = slices.DeleteFunc(f.seen, func(at time.Time) bool { return at.Before(oldest) })
	return float64(len(f.seen)) / rateWindow.Seconds()
}

// present are the hosts that are there, by name.
func (f *fleet) present() []lifecycle.Host {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.SortedFunc(slices.Values(slices.DeleteFunc(slices.Collect(maps.Values(f.hosts)), gone)), byName)
}

// byName sorts hosts as people count: sim-2 before sim-10.
func byName(a, b lifecycle.Host) int { return natural(a.Name(), b.Name()) }

// natural compares texts, with the numbers in them by value.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, restA := part(a)
		y, restB := part(b)
		if x != y {
			if digit(x[0]) && digit(y[0]) && len(x) != len(y) {
				return len(x) - len(y)
			}
			return strings.Compare(x, y)
		}
		a, b = restA, restB
	}
	return len(a) - len(b)
}

// part is the number without its leading zeros, or the text, that s begins with.
func part(s string) (part, rest string) {
	end := 1
	for end < len(s) && digit(s[end]) == digit(s[0]) {
		end++
	}
	return s[:end], s[end:]
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// gone reports whether the host's object is no longer there: its events are
// kept for a while.
func gone(h lifecycle.Host) bool {
	return !h.Exists() || h.Newest(event.SectionIntent).Fact == event.Forgotten
}

// settled reports whether the host is as it was asked to be, or is left alone
// at its user's wish.
func settled(h lifecycle.Host) bool {
	op, _ := h.Op()
	stage := lifecycle.Stage(h)
	switch {
	case h.Intent.Paused || (h.Registration.Detached && h.Intent.DeletedAt.IsZero()):
		return true
	case op != nil || lifecycle.Problem(h) != nil || !h.Intent.DeletedAt.IsZero():
		return false
	case stage == v1alpha1.StateUnmanaged:
		return true
	case stage == v1alpha1.StateAvailable:
		return powered(h) && !lifecycle.WantsImage(h)
	case stage == v1alpha1.StateProvisioned:
		return powered(h) && !lifecycle.Cancelled(h)
	case stage == v1alpha1.StateExternallyProvisioned:
		return powered(h)
	default:
		return false
	}
}

func powered(h lifecycle.Host) bool {
	return h.Power.On != nil && *h.Power.On == h.Intent.Spec.Online
}
