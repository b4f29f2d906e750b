package slots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// yard has hosts that want to be prepared, and the queue's store.
type yard struct {
	t        *testing.T
	now      time.Time
	hosts    map[string]lifecycle.Host
	data     []byte
	revision uint64
	races    int // how many of the next stores come too late
	woken    []string
	asked    []string // hosts whose backend was looked at
}

func newYard(t *testing.T) *yard {
	t.Helper()
	return &yard{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), hosts: map[string]lifecycle.Host{}}
}

func (y *yard) queue() *Queue { return New(y, Limits{"ironic": 2}, func() time.Time { return y.now }) }

// add makes a host that is registered and inspected, and yet to be prepared.
func (y *yard) add(namespace, name string) string {
	uid := namespace + "-" + name
	h := lifecycle.Host{UID: uid}.WithNewest(event.SectionIntent, lifecycle.Meta{Seq: 1, Rev: 1})
	h.Intent.Namespace, h.Intent.Name = namespace, name
	h.Intent.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish://192.0.2.1", CredentialsName: "s"}
	h.Intent.Credentials = event.SecretRef{Namespace: namespace, Name: "s", Version: "7"}
	h.Registration = event.Registration{Registered: true, Backend: "ironic", Address: h.Intent.Spec.BMC.Address, Good: lifecycle.Credentials(h.Intent)}
	h.Inspection.Done, h.Provisioning.Phase = true, event.Unprepared
	y.hosts[uid] = h
	return uid
}

func (y *yard) apply(uid string, f lifecycle.Fact) {
	y.hosts[uid] = lifecycle.Apply(y.hosts[uid], f, y.now)
}

// turn is a turn of the provisioner for a host: what it is to do is recorded, and
// said in a word.
func (y *yard) turn(q *Queue, uid string) string {
	y.t.Helper()
	step, err := q.Step(y.t.Context(), y.hosts[uid], event.SectionProvisioning, y.own)
	if err != nil {
		y.t.Fatal(err)
	}
	switch s := step.(type) {
	case lifecycle.Write:
		y.apply(uid, lifecycle.Started{Kind: s.Kind, Step: s.Name})
		return "begins"
	case lifecycle.Record:
		y.apply(uid, s.Fact)
		if queued, is := s.Fact.(lifecycle.Queued); is {
			return fmt.Sprintf("place %d", queued.Position)
		}
		return s.Fact.Name()
	case lifecycle.Wait:
		return "waits"
	default:
		return "rests"
	}
}

// own is what the provisioner would do.
func (y *yard) own(_ context.Context, h lifecycle.Host) (lifecycle.Step, error) {
	if lifecycle.Stage(h) != v1alpha1.StatePreparing || h.Intent.Paused || lifecycle.Leaving(h) {
		return lifecycle.Nothing{}, nil
	}
	y.asked = append(y.asked, h.UID)
	if h.Doing(event.Prepare) {
		return lifecycle.Wait{Every: lifecycle.Quick}, nil
	}
	return lifecycle.Write{Kind: event.Prepare, Name: "clean"}, nil
}

// end ends a host's preparation, and takes the turn that follows.
func (y *yard) end(q *Queue, uid string) {
	y.t.Helper()
	y.apply(uid, lifecycle.ReadyForImage{})
	if got := y.turn(q, uid); got != "rests" {
		y.t.Errorf("the prepared host %s %s", uid, got)
	}
}

func (y *yard) Slots(context.Context, string) ([]byte, uint64, error) {
	return slices.Clone(y.data), y.revision, nil
}

func (y *yard) PutSlots(_ context.Context, _ string, data []byte, revision uint64) (bool, error) {
	if y.races > 0 || revision != y.revision {
		y.races--
		return false, nil
	}
	y.data, y.revision = data, revision+1
	return true, nil
}

func (y *yard) Load(_ context.Context, uid string) (lifecycle.Host, error) { return y.hosts[uid], nil }

func (y *yard) Wake(_ context.Context, service, uid, _ string) error {
	y.woken = append(y.woken, service+" "+uid)
	return nil
}

func TestHostsBeginAsSlotsGetFree(t *testing.T) {
	y := newYard(t)
	q := y.queue()
	a1, a2, a3, b1 := y.add("a", "1"), y.add("a", "2"), y.add("a", "3"), y.add("b", "1")
	var got []string
	for _, uid := range []string{a1, a2, a3, b1, a3, b1} {
		got = append(got, y.turn(q, uid))
	}
	if diff := cmp.Diff([]string{"begins", "begins", "place 1", "place 2", "waits", "waits"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := lifecycle.Status(y.hosts[b1]); s.OperationalStatus != v1alpha1.OperationalStatusDelayed {
		t.Errorf("who waits shows %q", s.OperationalStatus)
	}
	y.end(q, a2)
	if diff := cmp.Diff([]string{"provisioner a-3"}, y.woken); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	if got := y.turn(q, b1) + ", " + y.turn(q, a3); got != "place 1, begins" && got != "waits, begins" {
		t.Errorf("then %s", got)
	}
}

// Nothing outside is asked for a host that waits, at however many looks.
func TestWhoWaitsAsksNothing(t *testing.T) {
	y := newYard(t)
	q := y.queue()
	for _, uid := range []string{y.add("a", "1"), y.add("a", "2"), y.add("a", "3")} {
		y.turn(q, uid)
	}
	y.asked = nil
	for range 5 {
		y.turn(q, "a-3")
	}
	if len(y.asked) > 0 {
		t.Errorf("asked about %v", y.asked)
	}
}

// Who is asked for something else meanwhile goes that way, and leaves its place.
func TestWhoWaitsReactsAtOnce(t *testing.T) {
	for what, change := range map[string]func(*event.Intent){
		"deleted": func(i *event.Intent) { i.DeletedAt = time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC) },
		"paused":  func(i *event.Intent) { i.Paused = true },
	} {
		t.Run(what, func(t *testing.T) {
			y := newYard(t)
			q := y.queue()
			for _, uid := range []string{y.add("a", "1"), y.add("a", "2"), y.add("a", "3"), y.add("a", "4")} {
				y.turn(q, uid)
			}
			h := y.hosts["a-3"]
			change(&h.Intent)
			y.hosts["a-3"] = h
			if got := y.turn(q, "a-3"); got != "rests" {
				t.Errorf("it %s", got)
			}
			if got := y.turn(q, "a-4"); got != "place 1" {
				t.Errorf("the one behind it: %s", got)
			}
		})
	}
}

// What a crash left behind is weeded out by those who need the place: a slot of a
// host that is not at work, a place of one that no longer waits.
func TestWhatACrashLeavesIsWeededOut(t *testing.T) {
	y := newYard(t)
	q := y.queue()
	for _, uid := range []string{y.add("a", "1"), y.add("a", "2"), y.add("a", "3"), y.add("a", "4"), y.add("a", "5")} {
		y.turn(q, uid)
	}
	y.apply("a-1", lifecycle.ReadyForImage{}) // and whose turn it was then has died
	delete(y.hosts, "a-2")
	delete(y.hosts, "a-3")
	for range 2 {
		if got := y.turn(q, "a-5"); got != "waits" {
			t.Fatalf("at once it %s", got)
		}
		y.now = y.now.Add(weeding)
	}
	if got := y.turn(q, "a-5"); got != "begins" {
		t.Errorf("later it %s", got)
	}
}

func TestChangesOfOthersAreNotOverwritten(t *testing.T) {
	y := newYard(t)
	q := y.queue()
	uid := y.add("a", "1")
	y.races = 3
	if got := y.turn(q, uid); got != "begins" {
		t.Errorf("it %s", got)
	}
	y.end(q, uid)
	y.races = tries
	if _, err := q.Step(t.Context(), y.hosts[y.add("a", "2")], event.SectionProvisioning, y.own); !errors.Is(err, errCrowded) {
		t.Errorf("got %v", err)
	}
}

func TestABackendWithoutALimitIsLeftAlone(t *testing.T) {
	y := newYard(t)
	q := New(y, Limits{"other": 1}, func() time.Time { return y.now })
	for _, uid := range []string{y.add("a", "1"), y.add("a", "2"), y.add("a", "3")} {
		if got := y.turn(q, uid); got != "begins" {
			t.Errorf("%s %s", uid, got)
		}
	}
	if y.revision != 0 {
		t.Error("something was stored")
	}
}

func TestLimitsAreChecked(t *testing.T) {
	if err := (Limits{"ironic": 1}).Validate(); err != nil {
		t.Error(err)
	}
	if err := (Limits{"ironic": 0}).Validate(); err == nil {
		t.Error("no slot at all is accepted")
	}
}
