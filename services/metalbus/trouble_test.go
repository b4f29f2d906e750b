package metalbus_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/lifecycle"
	"github.com/metalbus/metalbus/services/metalbus"
)

// patchy is a bus of which some cannot be read.
type patchy struct {
	mu      sync.Mutex
	hosts   map[string]lifecycle.Host
	broken  map[string]error
	outage  error
	history []cloudevents.Event
	asked   int
}

func (p *patchy) Hosts(context.Context) iter.Seq2[lifecycle.Host, error] {
	return func(yield func(lifecycle.Host, error) bool) {
		if p.outage != nil {
			yield(lifecycle.Host{}, p.outage)
			return
		}
		for _, uid := range []string{"uid-1", "uid-2", "uid-3"} {
			h, err := p.Load(context.Background(), uid)
			if !yield(h, err) {
				return
			}
		}
	}
}

func (p *patchy) Load(_ context.Context, uid string) (lifecycle.Host, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.broken[uid]; err != nil {
		return lifecycle.Host{UID: uid}, err
	}
	return p.hosts[uid], nil
}

// History ends at once each time, as in an outage.
func (p *patchy) History(context.Context, bus.HistoryFilter, bool) iter.Seq2[cloudevents.Event, error] {
	return func(yield func(cloudevents.Event, error) bool) {
		p.mu.Lock()
		p.asked++
		events := p.history
		p.mu.Unlock()
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		yield(cloudevents.Event{}, errors.New("the history is away"))
	}
}

func newPatchy() *patchy {
	p := &patchy{hosts: map[string]lifecycle.Host{}, broken: map[string]error{"uid-2": errors.New("event 7 of host uid-2 is unreadable")}}
	for _, n := range []string{"1", "2", "3"} {
		p.hosts["uid-"+n] = lifecycle.Host{UID: "uid-" + n, Rev: 1, Intent: event.Intent{Namespace: "metal", Name: "sim-" + n}}
	}
	return p
}

func TestOneBrokenHostHidesNoOther(t *testing.T) {
	p := newPatchy()
	names, broken, err := metalbus.Present(t.Context(), p)
	if err != nil || broken == nil || !strings.Contains(broken.Error(), "uid-2 is unreadable") {
		t.Errorf("broken: %v, error: %v", broken, err)
	}
	if diff := cmp.Diff([]string{"metal/sim-1", "metal/sim-3"}, names); diff != "" {
		t.Error(diff)
	}
	p.outage = errors.New("no bus")
	if _, _, err := metalbus.Present(t.Context(), p); err == nil {
		t.Error("an outage is no broken host")
	}
}

func TestTheViewOutlivesTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPatchy()
		f, err := metalbus.NewFleet(t.Context(), p, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var following sync.WaitGroup
		following.Go(func() { f.Follow(ctx) })
		time.Sleep(3500 * time.Millisecond) // of the bubble's time: it asks again each second
		frame := f.Frame(ctx)
		for _, want := range []string{"2 hosts", "uid-2 is unreadable", "the history is away"} {
			if !strings.Contains(frame, want) {
				t.Errorf("no %q in\n%s", want, frame)
			}
		}
		p.mu.Lock()
		if p.asked != 4 {
			t.Errorf("the history was asked %d times, want 4", p.asked)
		}
		p.broken, p.history = nil, []cloudevents.Event{changedEvent("uid-2")}
		p.mu.Unlock()
		time.Sleep(time.Second)
		if frame := f.Frame(ctx); !strings.Contains(frame, "3 hosts") || strings.Contains(frame, "unreadable") {
			t.Errorf("the host is back:\n%s", frame)
		}
		cancel()
		following.Wait()
	})
}

func changedEvent(uid string) cloudevents.Event {
	e := cloudevents.New()
	e.SetType(event.Type(event.SectionIntent, event.Changed))
	e.SetExtension(event.ExtHostUID, uid)
	e.SetExtension(event.ExtHostRev, int32(2))
	return e
}

func TestEventsAreFollowed(t *testing.T) {
	d := newDesk(t)
	out := &lines{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- d.follow(ctx, out) }()
	out.await(t, "registration.enroll.failed") // the last one of the past
	d.append("uid-1", lifecycle.Observed{What: event.HealthChanged, Health: "Warning"})
	out.await(t, "power.health.changed")
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
}
