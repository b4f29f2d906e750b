package bus_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// suspended is the clock of a process that is suspended for an hour right
// after it looked at the clock to begin its first claim.
type suspended struct {
	mu    sync.Mutex
	armed bool
	asked int
}

func (s *suspended) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.armed {
		return now
	}
	if s.asked++; s.asked > 1 {
		return now.Add(time.Hour)
	}
	return now
}

func (s *suspended) arm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = true
}

func TestAProcessThatWasSuspendedDoesNotWrite(t *testing.T) {
	clock := &suspended{}
	s := bustest.Server(t)
	b := bustest.On(t, s, "registrar", bus.WithClock(clock.now))
	enroll := enrollIn("create")
	w := bustest.Registrar(func(h lifecycle.Host) (lifecycle.Step, error) {
		step, err := enroll(h)
		if _, ok := step.(lifecycle.Write); ok {
			clock.arm()
		}
		return step, err
	})
	bustest.Serve(t, b, w)
	bustest.Append(t, bustest.On(t, s, "test"), "u1", bustest.The(created("u1")))
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	if got := counter(t, b, "metalbus_claim_window_missed_total"); got != 1 {
		t.Errorf("the window was missed %v times, want once", got)
	}
	writes, claims := len(w.Writes()), int(counter(t, b, "metalbus_claims_total"))
	if writes != 1 || claims != 2 {
		t.Errorf("%d writes for %d claims: want the first claim unused", writes, claims)
	}
	bustest.Clean(t, b)
}

func TestTheWindowEndsTheWrite(t *testing.T) {
	b := bustest.New(t)
	w := bustest.Registrar(enrollIn("create"))
	var left time.Duration
	w.OnDo = func(ctx context.Context, _ lifecycle.Host, _ lifecycle.Write) error {
		if len(w.Writes()) > 1 {
			return nil
		}
		ends, _ := ctx.Deadline()
		left = time.Until(ends)
		<-ctx.Done()
		return ctx.Err()
	}
	bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	if window := bustest.Timing().Window; left <= 0 || left > window {
		t.Errorf("the write had %s, more than the window of %s", left, window)
	}
	bustest.Clean(t, b)
}
