package stories_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/lifecycle"
	"github.com/metalbus/metalbus/services/inspector"
	"github.com/metalbus/metalbus/services/powermonitor"
	"github.com/metalbus/metalbus/services/provisioner"
	"github.com/metalbus/metalbus/services/registrar"
)

// memory tells a story by the table alone: the four services' decisions, one
// after the other, by a clock that goes where the next of them is due. What the
// bus does is done in the simplest way: there is one host, nothing is lost, and
// nobody races.
type memory struct {
	*desk
	t      *testing.T
	now    time.Time
	host   lifecycle.Host
	past   []lifecycle.Host
	cursor int // revisions before it were waited for already
	actors []*actor
	login  map[string]string
	docs   map[string][]byte
	timing bus.Timing
}

// actor is a service in such a story.
type actor struct {
	bus.Worker
	due   time.Time // zero if it waits for something to happen
	looks int       // since something happened
	errs  int       // in a row
	woken bool
}

var beginning = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// inMemory sets a story up.
func inMemory(t *testing.T, name string, open func(*testing.T, surroundings) lab) *site {
	t.Helper()
	m := &memory{t: t, now: beginning, desk: &desk{since: beginning}, docs: map[string][]byte{}, timing: bus.DefaultTiming()}
	m.firm = m.firmware
	clock := func() time.Time { return m.now }
	l := open(t, surroundings{now: clock, secrets: m, password: func(event.SecretRef) string { return m.login["password"] }})
	set := backend.NewSet(l.backend())
	m.host.UID = "uid-" + name
	for _, w := range []bus.Worker{
		registrar.New(set, m, clock, registrar.DefaultConfig()), inspector.New(set, m),
		provisioner.New(set, m, clock, provisioner.DefaultConfig()), powermonitor.New(set, clock, powermonitor.DefaultConfig()),
	} {
		m.actors = append(m.actors, &actor{Worker: w})
	}
	x := l.machine(t, name)
	x.born(m.host.UID)
	return &site{user: m, course: m, machine: x, name: name}
}

// Credentials are what is in the Secret.
func (m *memory) Credentials(context.Context, string, string) (user, password string, err error) {
	if m.login == nil {
		p := lifecycle.NewProblem(v1alpha1.RegistrationError, event.ClassCredentials, "the Secret is gone")
		return "", "", &lifecycle.ProblemError{Problem: p}
	}
	return m.login["username"], m.login["password"], nil
}

// Get is never asked: no such story names other Secrets.
func (m *memory) Get(context.Context, string, string) (data map[string][]byte, version string, err error) {
	return nil, "", errors.New("Secrets are read in a theatre only")
}

// PutData keeps a document.
func (m *memory) PutData(_ context.Context, _, _ string, value any) (string, error) {
	text, err := json.Marshal(value)
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:])
	m.docs[digest] = text
	return digest, err
}

// GetData reads a document.
func (m *memory) GetData(_ context.Context, _, _, digest string, value any) error {
	return json.Unmarshal(m.docs[digest], value)
}

func (m *memory) apply(edit func(*v1alpha1.BareMetalHost)) {
	if m.object == nil {
		m.object = &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{
			Namespace: "lab", Name: strings.TrimPrefix(m.host.UID, "uid-"), UID: "", CreationTimestamp: metav1.NewTime(m.now), Annotations: map[string]string{},
		}}
		m.object.UID = "uid"
	}
	edit(m.object)
	m.hear()
}

func (m *memory) remove() {
	at := metav1.NewTime(m.now)
	m.object.DeletionTimestamp = &at
	m.hear()
}

func (m *memory) secret(data map[string]string) {
	m.login = data
	if data == nil {
		m.desk.secret, m.since = "", m.now
	} else {
		m.desk.secret = fmt.Sprintf("v%d", len(m.past)+1)
	}
	m.hear()
}

func (m *memory) shown() *v1alpha1.BareMetalHost {
	if m.object == nil {
		return nil
	}
	o := m.object.DeepCopy()
	o.Status = lifecycle.Status(m.host)
	return o
}

func (m *memory) history() []lifecycle.Host { return m.past }

func (m *memory) at() lifecycle.Host { return m.host }

func (*memory) restart() {} // its services remember nothing

// hear records what the object asks, as long as that changes.
func (m *memory) hear() {
	for {
		w, ok := m.wish(m.host)
		if !ok {
			return
		}
		m.append(w)
	}
}

// append records a fact and tells everybody.
func (m *memory) append(f lifecycle.Fact) {
	after := lifecycle.Apply(m.host, f, m.now)
	after = after.WithNewest(f.Section(), lifecycle.Meta{Seq: m.host.Head + 1, Rev: m.host.Rev + 1, Fact: f.Name(), At: m.now})
	if err := lifecycle.Check(m.host, after, f); err != nil {
		m.t.Fatalf("after %d facts: %v", len(m.past), err)
	}
	m.host = after
	m.past = append(m.past, after)
	t := bus.Trigger{Section: f.Section(), Fact: f.Name(), UID: after.UID, Rev: after.Rev, Stage: lifecycle.Stage(after), Deliveries: 1, At: m.now}
	for _, a := range m.actors {
		m.tell(a, t)
	}
	if f.Section() != event.SectionIntent {
		m.hear()
	}
}

// tell lets an actor know of a fact, as the bus would.
func (m *memory) tell(a *actor, t bus.Trigger) {
	own := t.Section == a.Section()
	w := m.host.Work(a.Section())
	switch {
	case own && w.Op == nil && w.Problem != nil && strings.HasSuffix(t.Fact, "."+string(event.Failed)):
		a.rest(m.now.Add(doubled(m.timing.BackOff, m.timing.BackOffMax, w.Failures)))
	case own && w.Op != nil && w.Op.Refusals > 0:
		a.rest(m.now.Add(doubled(m.timing.Busy, m.timing.BusyMax, w.Op.Refusals-1)))
	case own && w.Op != nil && !w.Op.Answered:
		// whoever claimed is at it
	case (!own || w.Op == nil) && !a.Cares(t):
	case w.Op == nil && w.Problem != nil && m.host.Newest(event.SectionIntent).Rev < m.host.Newest(a.Section()).Rev && !own:
		// it backs off
	default:
		a.rest(m.now)
	}
}

func (a *actor) rest(until time.Time) { a.due, a.looks, a.errs = until, 0, 0 }

// next is the actor whose turn comes first.
func (m *memory) next() *actor {
	var first *actor
	for _, a := range m.actors {
		if !a.due.IsZero() && (first == nil || a.due.Before(first.due)) {
			first = a
		}
	}
	return first
}

// turn lets the next actor have its turn, if that is before the end.
func (m *memory) turn(end time.Time) bool {
	a := m.next()
	if a == nil || a.due.After(end) {
		return false
	}
	if a.due.After(m.now) {
		m.now = a.due
	}
	a.due = time.Time{}
	m.play(a)
	return true
}

// play is one turn of an actor.
func (m *memory) play(a *actor) {
	ask := a.Step
	if w, ok := a.Worker.(bus.Waker); ok && a.woken {
		ask = w.Woken
	}
	a.woken = false
	step, err := ask(m.t.Context(), m.host)
	if err != nil {
		m.trouble(a, err)
		return
	}
	op := m.host.Work(a.Section()).Op
	stalled := m.host.Work(a.Section()).Stalled != nil
	switch s := step.(type) {
	case lifecycle.Nothing:
		switch {
		case stalled:
			m.append(lifecycle.Recovered{In: a.Section()})
		case op != nil:
			m.later(a, doubled(m.timing.Poll, lifecycle.Long, a.looks))
		}
	case lifecycle.Wait:
		switch {
		case stalled:
			m.append(lifecycle.Recovered{In: a.Section()})
		case s.Steady:
			m.later(a, s.Every)
		default:
			m.later(a, doubled(m.timing.Poll, s.Every, a.looks))
		}
	case lifecycle.Record:
		m.append(s.Fact)
	case lifecycle.Write:
		m.write(a, s)
	}
}

func (m *memory) later(a *actor, d time.Duration) {
	a.looks++
	a.due = m.now.Add(d)
}

// trouble is what the bus does about an error: again, later and later.
func (m *memory) trouble(a *actor, err error) {
	a.errs++
	if errors.Is(err, lifecycle.ErrUnregistered) {
		r := m.actors[0]
		r.rest(m.now)
		r.woken = true
	}
	_, newest := m.host.NewestFact()
	lasts := m.now.Sub(newest.At) > 2*m.timing.RetryMax
	if lasts && m.host.Work(a.Section()).Stalled == nil && !errors.Is(err, lifecycle.ErrUnregistered) && !lifecycle.AtRest(lifecycle.Stage(m.host)) {
		m.append(lifecycle.Stalled{In: a.Section(), Message: err.Error()})
		return
	}
	if a.due.IsZero() {
		a.due = m.now.Add(doubled(m.timing.Retry, m.timing.RetryMax, a.errs-1))
	}
}

// write claims a write, makes it, and records the answer.
func (m *memory) write(a *actor, s lifecycle.Write) {
	op, section := m.host.Op()
	switch {
	case op != nil && section != a.Section():
		if m.host.Work(a.Section()).Problem != nil {
			m.later(a, lifecycle.Long) // its end is no trigger meanwhile
		}
		return
	case op != nil && op.Kind != s.Kind:
		m.t.Fatalf("%s asks for a write of %s while %s is under way", a.Section().Writer(), s.Kind, op.ID)
	case op != nil:
		m.append(lifecycle.Claimed{Kind: s.Kind, Step: s.Name})
	default:
		m.append(lifecycle.Started{Kind: s.Kind, Step: s.Name, Mode: s.Mode, Reason: s.Reason})
	}
	err := a.Do(m.t.Context(), m.host, s)
	var p *lifecycle.ProblemError
	switch {
	case errors.As(err, &p):
		m.append(lifecycle.Failed{Kind: s.Kind, Problem: p.Problem})
	case errors.Is(err, context.DeadlineExceeded):
		a.due = m.now.Add(m.timing.Quarantine)
	default:
		m.append(lifecycle.Accepted{Kind: s.Kind, Busy: err != nil})
	}
}

// doubled is first, doubled n times, at most limit.
func doubled(first, limit time.Duration, n int) time.Duration {
	for ; n > 0 && first < limit; n-- {
		first *= 2
	}
	return min(first, limit)
}

// longest is how long a story waits by its own clock for what must come.
const longest = 48 * time.Hour

func (m *memory) until(what string, c condition) {
	m.t.Helper()
	end := m.now.Add(longest)
	for {
		if c.now {
			m.cursor = max(m.cursor, len(m.past)-1)
		}
		if i := slices.IndexFunc(m.past[m.cursor:], c.holds); i >= 0 && c.shows(m.shown()) {
			m.cursor += i
			return
		}
		if len(m.past) > m.cursor {
			m.cursor = len(m.past) - 1
		}
		if !m.turn(end) {
			m.t.Fatalf("nothing more happens while the story waits for %s; the host is %s", what, describe(m.host))
		}
	}
}

func (m *memory) pass(d time.Duration) {
	end := m.now.Add(d)
	for m.turn(end) {
	}
	m.now = end
}

func describe(h lifecycle.Host) string {
	s := lifecycle.Status(h)
	op, _ := h.Op()
	asked := h.Intent
	asked.Hash = ""
	text, err := json.Marshal(asked)
	section, newest := h.NewestFact()
	return fmt.Sprintf("%q after %s.%s, %s, error %q %q (%d), on %v, operation %+v, asked for %s (%v)",
		s.Provisioning.State, section, newest.Fact, s.OperationalStatus, s.ErrorType, s.ErrorMessage, s.ErrorCount, s.PoweredOn, op, text, err)
}
