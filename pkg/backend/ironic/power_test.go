package ironic_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// running is a host in use that is on.
func running(l *lab) lifecycle.Host {
	l.Helper()
	h := l.deploy(l.available(l.host()))
	return l.does(h, event.PowerOn, lifecycle.Switched{Kind: event.PowerOn, On: true})
}

// targets are the power actions that were asked for, since there were so many.
func (l *lab) targets(since int) []string {
	l.Helper()
	var list []string
	for _, r := range l.ironic.Requests() {
		if r.Method != http.MethodPut || !strings.HasSuffix(r.Path, "/states/power") {
			continue
		}
		target := string(r.Body)
		target = strings.Split(strings.TrimPrefix(target[strings.Index(target, `"target":`):], `"target":"`), `"`)[0]
		list = append(list, target)
	}
	return list[since:]
}

func powerPath(method, path string, _ []byte) bool {
	return method == http.MethodPut && strings.HasSuffix(path, "/states/power")
}

// B23: where the driver has no soft power-off, the power is cut at once; where the
// system does not shut down, it is cut afterwards, once; and what does not go off at
// all is told.
func TestB23SoftPowerOff(t *testing.T) {
	t.Run("a driver without it", func(t *testing.T) {
		l := newLab(t, ironictest.Config{}, nil)
		h := running(l)
		h.Intent.Spec.Online = false
		since := len(l.targets(0))
		l.ironic.Inject(1, ironictest.Fault{Status: 400, Text: `The driver redfish does not support the power state, "soft power off"`}, powerPath)
		l.does(h, event.PowerOff, lifecycle.Switched{Kind: event.PowerOff})
		if got := strings.Join(l.targets(since), ", "); got != "soft power off, power off" {
			t.Errorf("asked for %s", got)
		}
	})
	t.Run("a machine that does not go off", func(t *testing.T) {
		l := newLab(t, ironictest.Config{}, nil)
		h := running(l)
		h.Intent.Spec.Online = false
		since := len(l.targets(0))
		l.machine(h).SetFaults(ironictest.Faults{IgnorePower: true})
		h, p := l.fails(h, event.PowerOff)
		if got := strings.Join(l.targets(since), ", "); got != "soft power off, power off" {
			t.Errorf("asked for %s", got)
		}
		if p.Type != v1alpha1.PowerManagementError || p.Message == "" {
			t.Errorf("problem %+v", p)
		}
		l.machine(h).SetFaults(ironictest.Faults{})
		l.does(h, event.PowerOff, lifecycle.Switched{Kind: event.PowerOff})
		if l.machine(h).View().On {
			t.Error("the machine is on")
		}
	})
	t.Run("hard is asked for", func(t *testing.T) {
		l := newLab(t, ironictest.Config{}, nil)
		h := running(l)
		h.Intent.Reboots = []event.RebootRequest{{ID: "1", Mode: v1alpha1.RebootModeHard}}
		since := len(l.targets(0))
		l.does(h, event.PowerOff, lifecycle.Switched{Kind: event.PowerOff})
		if got := strings.Join(l.targets(since), ", "); got != "power off" {
			t.Errorf("asked for %s", got)
		}
	})
}

// B24: a machine is off once it was seen to be off, not when Ironic has accepted
// that it should be.
func TestB24AcceptedIsNotDone(t *testing.T) {
	l := newLab(t, ironictest.Config{Delays: ironictest.Delays{Power: 30 * time.Millisecond}}, nil)
	h := running(l)
	h.Intent.Spec.Online = false
	h = l.begin(h, event.PowerOff)
	polls := 0
	for {
		on := l.machine(h).View().On // before the look: it may go off meanwhile
		switch l.look(h, event.PowerOff).(type) {
		case lifecycle.Finished:
			if l.machine(h).View().On {
				t.Fatal("the machine is told to be off while it is on")
			}
			if polls == 0 {
				t.Error("the test saw nothing of the way")
			}
			return
		case lifecycle.Underway:
			polls++
		default:
			t.Fatalf("%#v while the machine is on: %v", l.look(h, event.PowerOff), on)
		}
	}
}

// A host that is never powered off is rebooted instead.
func TestReboot(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.host()
	h.Intent.Spec.DisablePowerOff, h.Intent.Spec.AutomatedCleaningMode = true, v1alpha1.CleaningModeDisabled
	h = l.enroll(h)
	l.machine(h).SetPower(true)
	l.ironic.SyncPower()
	h = l.record(h, lifecycle.Inspected{Digest: "d"})
	boots := l.machine(h).View().Boots
	h.Intent.Spec.Online = true
	h.Intent.Reboots = []event.RebootRequest{{ID: "1", Force: true}}
	since := len(l.targets(0))
	l.does(h, event.Reboot, lifecycle.Switched{Kind: event.Reboot, On: true})
	if v := l.machine(h).View(); !v.On || v.Boots != boots+1 {
		t.Errorf("on %v after %d boots, want one more than %d", v.On, v.Boots, boots)
	}
	if got := strings.Join(l.targets(since), ", "); got != "soft rebooting" {
		t.Errorf("asked for %s", got)
	}
	_, p := l.fails(h, event.PowerOff)
	if p.Class != event.ClassUnsupported {
		t.Errorf("problem %+v", p)
	}
}

func TestDisablePowerOffWithOldIronic(t *testing.T) {
	l := newLab(t, ironictest.Config{Release: ironictest.Ironic21}, nil)
	h := l.host()
	h.Intent.Spec.DisablePowerOff = true
	_, p := l.fails(h, event.Enroll)
	if p.Class != event.ClassUnsupported || !strings.Contains(p.Message, "1.95") || !strings.Contains(p.Message, "1.82") {
		t.Errorf("problem %+v, want the version needed and the one found", p)
	}
	if n := len(l.ironic.Nodes()); n != 0 {
		t.Error("a node was made all the same")
	}
}

// A BMC that cannot be reached is a fault of that host: Ironic finds it by its power
// syncs, and finds out by itself when it is over.
func TestPowerFault(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := running(l)
	l.machine(h).SetFaults(ironictest.Faults{Down: true})
	for range 6 {
		l.ironic.SyncPower()
	}
	s, err := l.backend.Power(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	if s.On != nil || !strings.Contains(s.Fault, "lost control") {
		t.Errorf("power %+v", s)
	}
	h.Intent.Spec.Online = false
	h, p := l.fails(h, event.PowerOff)
	if p.Class != event.ClassUnreachable {
		t.Errorf("problem %+v", p)
	}
	l.machine(h).SetFaults(ironictest.Faults{})
	l.ironic.SyncPower()
	l.does(h, event.PowerOff, lifecycle.Switched{Kind: event.PowerOff})
}

// The power of a host at rest is not asked of Ironic anew each time, but always after
// something has happened to the host.
func TestPowerAtRest(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := running(l)
	l.ironic.SyncPower()
	power := func() (on bool, health string) {
		t.Helper()
		s, err := l.backend.Power(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		return s.On != nil && *s.On, s.Health
	}
	if on, health := power(); !on || health != "OK" {
		t.Errorf("on %v, health %q", on, health)
	}
	if _, err := l.backend.Fleet(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := len(l.ironic.Requests())
	for range 10 {
		power()
	}
	if n := len(l.ironic.Requests()) - before; n != 0 {
		t.Errorf("%d requests for a host at rest right after a listing, want none", n)
	}
	h.Intent.Spec.Online = false
	h = l.does(h, event.PowerOff, lifecycle.Switched{Kind: event.PowerOff})
	if on, _ := power(); on {
		t.Error("after it was powered off, it is told to be on by an answer of before")
	}
}
