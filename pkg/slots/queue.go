package slots

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Store is where the queues are kept, which all replicas share.
type Store interface {
	// Slots is what was last stored for a backend, and its revision: nothing
	// and 0 if nothing was.
	Slots(ctx context.Context, backend string) (data []byte, revision uint64, err error)
	// PutSlots stores what follows from a revision; it is not stored if
	// somebody else has stored something meanwhile.
	PutSlots(ctx context.Context, backend string, data []byte, revision uint64) (stored bool, err error)
	// Load is a host as it is now; one that is not known does not exist.
	Load(ctx context.Context, uid string) (lifecycle.Host, error)
	// Wake has a service look at a host again.
	Wake(ctx context.Context, service, uid, reason string) error
}

// Limits are how many operations a backend is asked for at once, by its name.
// One that is not named has no limit.
type Limits map[string]int

// Validate reports everything that is wrong.
func (l Limits) Validate() error {
	var errs []error
	for backend, n := range l {
		if n < 1 {
			errs = append(errs, fmt.Errorf("slots %s=%d: want at least 1, or leave the backend out for no limit", backend, n))
		}
	}
	return errors.Join(errs...)
}

// A Queue gives out the slots of all backends. It is safe for concurrent use.
type Queue struct {
	store  Store
	limits Limits
	now    func() time.Time

	mu sync.Mutex
	// weeded is when the queue of a backend was last gone through, and
	// suspects are those who had no right to their place then.
	weeded   map[string]time.Time
	suspects map[string]map[string]bool
}

// New is a Queue.
func New(s Store, l Limits, now func() time.Time) *Queue {
	return &Queue{store: s, limits: l, now: now, weeded: map[string]time.Time{}, suspects: map[string]map[string]bool{}}
}

// Step is the step that a service of the section takes for a host, own, or the
// waiting for a slot in its place.
func (q *Queue) Step(ctx context.Context, h lifecycle.Host, section event.Section, own func(context.Context, lifecycle.Host) (lifecycle.Step, error)) (lifecycle.Step, error) {
	backend := h.Registration.Backend
	limit := q.limits[backend]
	if limit == 0 {
		return own(ctx, h)
	}
	if w := lifecycle.Waiting(h); w != nil && w.Kind.Section() == section {
		place, err := q.ask(ctx, backend, limit, waiterOf(h, w.Kind))
		if err != nil || place > 0 {
			return wait(h, w.Kind, place), err
		}
	}
	step, err := own(ctx, h)
	if err != nil {
		return nil, err
	}
	k, begins := beginning(h, step)
	switch {
	case begins:
		place, err := q.ask(ctx, backend, limit, waiterOf(h, k))
		if err == nil && place > 0 {
			step = wait(h, k, place)
		}
		return step, err
	case h.Work(section).Op == nil:
		return step, q.leave(ctx, backend, limit, h.UID, section)
	default:
		return step, nil
	}
}

// limited reports whether an operation needs a slot: those that keep a backend
// busy for minutes do.
func limited(k event.Kind) bool {
	switch k {
	case event.Inspect, event.Prepare, event.Deploy, event.Undeploy:
		return true
	default:
		return false
	}
}

// beginning reports whether a step begins an operation that needs a slot.
func beginning(h lifecycle.Host, s lifecycle.Step) (event.Kind, bool) {
	w, is := s.(lifecycle.Write)
	return w.Kind, is && limited(w.Kind) && !h.Doing(w.Kind)
}

func waiterOf(h lifecycle.Host, k event.Kind) waiter {
	return waiter{UID: h.UID, Namespace: h.Intent.Namespace, Kind: k}
}

// wait records a host's place where that is news: when it begins to wait, is the
// next, or has come half the way.
func wait(h lifecycle.Host, k event.Kind, place int) lifecycle.Step {
	known := h.Inspection.Waiting
	if k.Section() == event.SectionProvisioning {
		known = h.Provisioning.Waiting
	}
	if known == nil || known.Kind != k || (place < known.Position && (place == 1 || place <= known.Position/2)) {
		return lifecycle.Record{Fact: lifecycle.Queued{Kind: k, Position: place}}
	}
	return lifecycle.Wait{For: "a slot", Every: lifecycle.Long, Steady: true}
}

// ask gives the host a slot or a place in the queue, as book.ask does.
func (q *Queue) ask(ctx context.Context, backend string, limit int, w waiter) (place int, err error) {
	err = q.change(ctx, backend, func(b *book) {
		if trial := b.clone(); trial.ask(w, limit) > 0 {
			q.weed(ctx, backend, limit, b)
		}
		place = b.ask(w, limit)
	})
	return place, err
}

// leave takes a host out, and tells those whose turn it is then.
func (q *Queue) leave(ctx context.Context, backend string, limit int, uid string, section event.Section) error {
	var next []waiter
	err := q.change(ctx, backend, func(b *book) {
		next = nil
		if b.has(uid, section) {
			b.leave(uid, section)
			next = b.next(limit)
		}
	})
	if err != nil {
		return err
	}
	return q.wake(ctx, next)
}

func (q *Queue) wake(ctx context.Context, all []waiter) error {
	for _, w := range all {
		if err := q.store.Wake(ctx, w.Kind.Section().Writer(), w.UID, "slot"); err != nil {
			return err
		}
	}
	return nil
}

// tries is how often a change is tried that others came before.
const tries = 10

// errCrowded says that too many others change the same queue.
var errCrowded = errors.New("the queue for slots was changed by others each time: it is tried again later")

// change stores what f makes of a backend's book, if that is another one.
func (q *Queue) change(ctx context.Context, backend string, f func(*book)) error {
	for range tries {
		data, revision, err := q.store.Slots(ctx, backend)
		if err != nil {
			return err
		}
		var was book
		if len(data) > 0 {
			if err := json.Unmarshal(data, &was); err != nil {
				was = book{} // only the order is lost
			}
		}
		b := was.clone()
		f(&b)
		if reflect.DeepEqual(was, b) {
			return nil
		}
		if data, err = json.Marshal(b); err != nil {
			return err
		}
		if stored, err := q.store.PutSlots(ctx, backend, data, revision); err != nil || stored {
			return err
		}
	}
	return errCrowded
}

// weeding is the least time between two goings through a queue. Who has no right
// to a place in two of them loses it: between a slot and the start of what it is
// for there is a moment.
const weeding = 10 * time.Second

// weed takes out of the book who has a slot and is not at work, and who is before
// others and no longer waits.
// Of hosts that cannot be read nothing is assumed.
func (q *Queue) weed(ctx context.Context, backend string, limit int, b *book) {
	if !q.due(backend) {
		return
	}
	suspects := map[string]bool{}
	for uid, k := range b.Holders {
		if h, err := q.store.Load(ctx, uid); err == nil && !h.Doing(k) {
			suspects[uid] = true
		}
	}
	order := b.order()
	for _, w := range order[:min(limit, len(order))] {
		if h, err := q.store.Load(ctx, w.UID); err == nil && !waits(h, w.Kind) {
			suspects[w.UID] = true
		}
	}
	for uid := range q.confirmed(backend, suspects) {
		delete(b.Holders, uid)
		b.unqueue(uid)
	}
}

func waits(h lifecycle.Host, k event.Kind) bool {
	w := lifecycle.Waiting(h)
	return w != nil && w.Kind == k
}

// due reports whether it is time to go through a queue, and notes that.
func (q *Queue) due(backend string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	if now.Sub(q.weeded[backend]) < weeding {
		return false
	}
	q.weeded[backend] = now
	return true
}

// confirmed are those that were suspects the last time too.
func (q *Queue) confirmed(backend string, suspects map[string]bool) map[string]bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	twice := map[string]bool{}
	for uid := range suspects {
		if q.suspects[backend][uid] {
			twice[uid] = true
		}
	}
	q.suspects[backend] = suspects
	return twice
}
