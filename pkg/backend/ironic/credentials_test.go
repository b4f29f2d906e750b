package ironic_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	backend "github.com/metalbus/metalbus/pkg/backend/ironic"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

const canary = "S3cret-canary"

// B10, B11: new credentials come to a running host at once, are tried, and are in no
// text that anybody sees.
func TestB10NewCredentials(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := running(l)
	before := l.machine(h).Changes()

	l.secrets.put(h.Intent.Name, "2", map[string]string{"username": "admin", "password": canary})
	h.Intent.Credentials.Version = "2"
	h, p := l.fails(h, event.Enroll)
	if p.Type != v1alpha1.RegistrationError || p.Class != event.ClassCredentials || strings.Contains(fmt.Sprint(p), canary) {
		t.Errorf("problem %+v", p)
	}
	if s := lifecycle.Stage(h); s != v1alpha1.StateProvisioned {
		t.Errorf("the host is %s", s)
	}

	h = l.record(h, lifecycle.Failed{Kind: event.Enroll, Problem: p})
	h, p = l.fails(h, event.Enroll) // the node has them by now, and they are no better for it
	h = l.record(h, lifecycle.Failed{Kind: event.Enroll, Problem: p})

	l.machine(h).SetCredentials("admin", canary)
	h = l.enroll(h)
	if _, done := l.look(h, event.Enroll).(lifecycle.Finished); !done {
		t.Error("registered with the new credentials, it wants to be again")
	}
	if after := l.machine(h).Changes(); after != before {
		t.Errorf("the machine was changed: %v", l.machine(h).Acts())
	}
	if info := fmt.Sprint(l.node(h)["extra"]); strings.Contains(info, canary) {
		t.Errorf("extra %s", info)
	}
}

// A machine whose password was wrong for so long that Ironic gave it up is back at
// once with the right one.
func TestNewCredentialsEndAFault(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := running(l)
	l.machine(h).SetCredentials("admin", canary)
	for range 6 {
		l.ironic.SyncPower()
	}
	if l.node(h)["fault"] != "power failure" {
		t.Fatal("there is no fault")
	}
	l.secrets.put(h.Intent.Name, "2", map[string]string{"username": "admin", "password": canary})
	h.Intent.Credentials.Version = "2"
	h = l.enroll(h)
	if n := l.node(h); n["fault"] != nil || n["maintenance"] != false {
		t.Errorf("fault %v, maintenance %v", n["fault"], n["maintenance"])
	}
}

func TestBadCredentials(t *testing.T) {
	tests := map[string]struct {
		data map[string]string
		says string
	}{
		"no user name":      {map[string]string{"password": canary}, "Missing BMC connection detail 'username' in credentials"},
		"a blank password":  {map[string]string{"username": "admin", "password": " \n"}, "Missing BMC connection detail 'password' in credentials"},
		"a wrong password":  {map[string]string{"username": "admin", "password": canary}, "401"},
		"a wrong user name": {map[string]string{"username": canary, "password": "password"}, "401"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, ironictest.Config{}, nil)
			h := l.host()
			l.secrets.put(h.Intent.Name, "1", tc.data)
			h, p := l.fails(h, event.Enroll)
			if p.Type != v1alpha1.RegistrationError || p.Class != event.ClassCredentials || !strings.Contains(p.Message, tc.says) {
				t.Errorf("problem %+v", p)
			}
			if text := fmt.Sprintf("%v %+v", p, h); strings.Contains(text, canary) {
				t.Error("the problem or the host shows the secret")
			}
			l.secrets.put(h.Intent.Name, "2", map[string]string{"username": " admin", "password": "password\n"})
			h.Intent.Credentials.Version = "2"
			l.enroll(h)
		})
	}
}

// A Secret that has changed since the host was told of it is waited for.
func TestSecretAheadOfItsHost(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.host()
	l.secrets.put(h.Intent.Name, "9", map[string]string{"username": "admin", "password": "password"})
	h = l.record(h, lifecycle.Started{Kind: event.Enroll, Step: "enroll"})
	if err := l.backend.Do(t.Context(), h, lifecycle.Write{Kind: event.Enroll, Name: "enroll"}); !errors.Is(err, lifecycle.ErrBusy) {
		t.Errorf("error %v, want ErrBusy", err)
	}
	h.Intent.Credentials.Version = "9"
	l.enroll(h)
}

// B04: what was wrong for a moment is right by itself.
func TestB04AMomentWithoutBMC(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.host()
	l.machine(h).SetFaults(ironictest.Faults{Down: true})
	for range 3 {
		h, _ = l.fails(h, event.Enroll)
	}
	l.machine(h).SetFaults(ironictest.Faults{})
	l.available(h)
}

// An address that was wrong while the host had never been reached can be corrected
// to one of another kind.
func TestAddressOfAnotherKind(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.host()
	right := h.Intent.Spec.BMC.Address
	h.Intent.Spec.BMC.Address = "ipmi://192.0.2.99"
	h, _ = l.fails(h, event.Enroll)
	h.Intent.Spec.BMC.Address = right
	h = l.enroll(h)
	if n := l.node(h); n["driver"] != "redfish" || n["provision_state"] != "manageable" {
		t.Errorf("driver %v in state %v", n["driver"], n["provision_state"])
	}
}

func TestBadAddress(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.host()
	h.Intent.Spec.BMC.Address = "ilo4://192.0.2.10"
	_, p := l.fails(h, event.Enroll)
	if p.Type != v1alpha1.RegistrationError || p.Class != event.ClassAddress {
		t.Errorf("problem %+v", p)
	}
	if n := len(l.ironic.Nodes()); n != 0 {
		t.Error("a node was made all the same")
	}
}

// Nothing of the backend shows a secret when it is printed or logged.
func TestPrintedBackend(t *testing.T) {
	l := newLab(t, ironictest.Config{Username: "api", Password: canary}, func(*backend.Settings, *backend.Beside) {})
	var b strings.Builder
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "backend", l.backend)
	if text := fmt.Sprintf("%v %+v %#v", l.backend, l.set, l.beside) + b.String(); strings.Contains(text, canary) {
		t.Error("a backend shows the password of its Ironic")
	}
}

// An Ironic that refuses our own credentials is trouble of ours, and of no host.
func TestIronicRefusesUs(t *testing.T) {
	l := newLab(t, ironictest.Config{Username: "api", Password: "other"}, nil)
	_, err := l.backend.Look(t.Context(), event.Enroll, l.host())
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v", err)
	}
	if _, is := errors.AsType[*lifecycle.ProblemError](err); is {
		t.Errorf("error %v, want none of the host's own", err)
	}
}

// What a discovery of machines has left in Ironic becomes the host's node.
func TestDiscoveredNode(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	other := l.enroll(l.host())
	h := l.host()
	uuid := l.discovered(h)
	h = l.available(h)
	if h.Registration.Node != uuid || h.Registration.Node == other.Registration.Node {
		t.Errorf("node %s, want %s", h.Registration.Node, uuid)
	}
}
