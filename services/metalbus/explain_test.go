package metalbus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
	"github.com/metalbus/metalbus/services/metalbus"
)

func TestWhatGetsAHostGoing(t *testing.T) {
	wrong := &event.Problem{Type: v1alpha1.RegistrationError, Class: event.ClassCredentials, Message: "refused"}
	tests := map[string]struct {
		make func(*lifecycle.Host)
		want []string
	}{
		"all is well": {func(*lifecycle.Host) {}, nil},
		"paused, whatever else": {func(h *lifecycle.Host) {
			h.Intent.Paused, h.Registration.Problem = true, wrong
		}, []string{v1alpha1.PausedAnnotation}},
		"detached": {func(h *lifecycle.Host) {
			h.Intent.Detached, h.Registration.Detached = &event.DetachRequest{}, true
		}, []string{v1alpha1.DetachedAnnotation}},
		"no BMC": {func(h *lifecycle.Host) {
			h.Intent.Spec.BMC, h.Registration = v1alpha1.BMCDetails{}, event.Registration{}
		}, []string{"spec.bmc"}},
		"no Secret": {func(h *lifecycle.Host) { h.Intent.Credentials.Version = "" }, []string{"creating the Secret metal/sim-1-bmc"}},
		"kept off": {func(h *lifecycle.Host) {
			h.Provisioning.Phase, h.Intent.Reboots = event.Deployed, []event.RebootRequest{{ID: "1", Key: "fencing"}}
		}, []string{"reboot.metal3.io/fencing"}},
		"in a queue": {func(h *lifecycle.Host) {
			h.Provisioning.Phase, h.Inspection.Done, h.Inspection.Waiting = event.Unprepared, false, &event.Waiting{Kind: event.Inspect, Position: 3}
		}, []string{"a slot"}},
		"its image": {func(h *lifecycle.Host) {
			h.Provisioning.Phase, h.Intent.Ramdisk = event.Deploying, &event.RamdiskWish{Waits: "the image"}
		}, []string{"its PreprovisioningImage being ready"}},
		"a problem": {func(h *lifecycle.Host) { h.Registration.Problem = wrong }, []string{"a change of its spec", v1alpha1.RetryAnnotation}},
		"stalled":   {func(h *lifecycle.Host) { h.Power.Stalled = &event.Stall{Message: "no answer"} }, []string{"being back"}},
		"a deletion that fails": {func(h *lifecycle.Host) {
			h.Intent.DeletedAt, h.Registration.Problem = noon(), wrong
		}, []string{"a change of its spec", v1alpha1.RetryAnnotation, v1alpha1.ForceDeleteAnnotation}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := metalbus.Unblocks(atRest(tc.make))
			if len(got) != len(tc.want) {
				t.Fatalf("%q, want %q", got, tc.want)
			}
			for i, want := range tc.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("%q, want %q in it", got[i], want)
				}
			}
		})
	}
}

// atRest is an available host, changed.
func atRest(change func(*lifecycle.Host)) lifecycle.Host {
	h := lifecycle.Host{UID: "uid-1", Rev: 9}
	h.Intent = wish("sim-1", "1")(h).(lifecycle.Wish).Intent
	h.Intent.Spec.Image = nil
	on := true
	h.Registration.Registered, h.Registration.Backend, h.Registration.Node, h.Registration.Address = true, "redfish", "node-1", h.Intent.Spec.BMC.Address
	h.Registration.Good = lifecycle.Credentials(h.Intent)
	h.Inspection.Done, h.Provisioning.Phase, h.Power.On = true, event.Prepared, &on
	change(&h)
	return h
}

func TestAHostIsExplained(t *testing.T) {
	d := newDesk(t)
	refused := lifecycle.Failed{Kind: event.PowerOff, Problem: lifecycle.NewProblem(v1alpha1.PowerManagementError, event.ClassPower, "the BMC refuses.")}
	d.append("uid-1", asked("metal", func(i *event.Intent) { i.Spec.Online, i.Hash = false, "2" }))
	for range 2 {
		d.append("uid-1", lifecycle.Started{Kind: event.PowerOff, Mode: v1alpha1.RebootModeHard})
		d.append("uid-1", refused)
	}
	bustest.Append(t, d.bus, "uid-3", fact(asked("other", func(*event.Intent) {})))
	awaitHistory(t, d.bus, 18)
	tests := map[string]struct {
		host string
		code int
		says []string
	}{
		"a problem, how often, and the way out": {"sim-1", 0, []string{"2 times in a row): the BMC refuses.\n", "What to do: Look at the BMC's event log", "It waits until that is solved", "of 15 events", "power.off.failed"}},
		"one of several of a name":              {"sim-2", 2, []string{"say which"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			code, out, complaint := d.run("explain", "host", tc.host)
			if code != tc.code {
				t.Fatalf("exit code %d after %s: %s", code, time.Since(begun), complaint)
			}
			for _, want := range tc.says {
				if !strings.Contains(out+complaint, want) {
					t.Errorf("no %q in\n%s%s", want, out, complaint)
				}
			}
		})
	}
}

// asked is a wish that differs from the usual one.
func asked(namespace string, change func(*event.Intent)) lifecycle.Wish {
	w := wish("sim-1", "1")(lifecycle.Host{}).(lifecycle.Wish)
	w.Fact, w.Intent.Namespace = event.Changed, namespace
	if namespace == "other" {
		w.Fact, w.Intent.Name, w.Intent.UID = event.Created, "sim-2", "uid-3"
	}
	change(&w.Intent)
	return w
}

func TestAFailureThatIsOverIsTold(t *testing.T) {
	d := newDesk(t)
	d.append("uid-2", lifecycle.Enrolled{Backend: "redfish", Node: "node-2", Address: "x", Credentials: v1alpha1.CredentialsStatus{}})
	awaitHistory(t, d.bus, 13)
	_, out, _ := d.run("explain", "host", "metal/sim-2")
	if !strings.Contains(out, "The last failure was 59m ago") || strings.Contains(out, "Problem") {
		t.Errorf("the failure is over:\n%s", out)
	}
}

func TestWhatOthersDidIsExplained(t *testing.T) {
	d := newDesk(t)
	d.append("uid-1", lifecycle.Observed{What: event.MaintenanceChanged, Maintenance: "maintenance, new fans", Suspect: "another client of Ironic"})
	awaitHistory(t, d.bus, 13)
	_, out, _ := d.run("explain", "host", "sim-1")
	for _, want := range []string{
		"Behind our back: the backend is to leave the host alone (maintenance, new fans).\n",
		"power.maintenance.changed: the backend is to leave the host alone (maintenance, new fans), which metalbus did not do; suspected is another client of Ironic",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
