package system_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	corev1 "k8s.io/api/core/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/integration/internal/plant"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bus"
)

// A mistake is something wrong with a host as it was declared, what its user is
// told, and how it is put right.
type mistake struct {
	make plant.Change
	kind v1alpha1.ErrorType
	// reason is the Kubernetes Event's.
	reason string
	// says is in the message: what is wrong, and what to do.
	says []string
	// at is the state in which the host shows it.
	at v1alpha1.ProvisioningState
	// correct puts it right, and nothing else.
	correct func(*testing.T, *plant.Plant, *bmcsim.Host)
}

func mistakes(t *testing.T) map[string]mistake {
	t.Helper()
	nobody := fmt.Sprintf("127.0.0.1:%d", lab.FreePort(t))
	return map[string]mistake{
		"wrong password": {
			make: func(_ *v1alpha1.BareMetalHost, s *corev1.Secret) { s.StringData["password"] = "not it" },
			kind: v1alpha1.RegistrationError, reason: "RegistrationError", at: v1alpha1.StateRegistering,
			says:    []string{"refuses the password of user", "correct them in the Secret"},
			correct: rightPassword,
		},
		"missing Secret": {
			make: func(_ *v1alpha1.BareMetalHost, s *corev1.Secret) { s.Name = "" },
			kind: v1alpha1.RegistrationError, reason: "BMCCredentialError", at: v1alpha1.StateRegistering,
			says:    []string{"does not exist", "Create it with the keys username and password"},
			correct: createSecret,
		},
		"Secret without a password": {
			make: func(_ *v1alpha1.BareMetalHost, s *corev1.Secret) { delete(s.StringData, "password") },
			kind: v1alpha1.RegistrationError, reason: "BMCCredentialError", at: v1alpha1.StateRegistering,
			says:    []string{`has no key "password"`, "add it"},
			correct: rightPassword,
		},
		"nobody at the address": {
			make: addressed("redfish-virtualmedia+http://" + nobody + "/redfish/v1/Systems/1"),
			kind: v1alpha1.RegistrationError, reason: "RegistrationError", at: v1alpha1.StateRegistering,
			says:    []string{nobody + " refuses the connection", "check address and port"},
			correct: rightAddress,
		},
		"unknown name": {
			make: addressed("redfish-virtualmedia+http://bmc.invalid/redfish/v1/Systems/1"),
			kind: v1alpha1.RegistrationError, reason: "RegistrationError", at: v1alpha1.StateRegistering,
			says:    []string{"bmc.invalid"},
			correct: rightAddress,
		},
		"no such system": {
			make: wrongSystem,
			kind: v1alpha1.RegistrationError, reason: "RegistrationError", at: v1alpha1.StateRegistering,
			says:    []string{"/redfish/v1/Systems/none"},
			correct: rightAddress,
		},
		"bad address": {
			make: addressed("redphish://192.0.2.1/redfish/v1/Systems/1"),
			kind: v1alpha1.RegistrationError, reason: "RegistrationError", at: v1alpha1.StateRegistering,
			says:    []string{"spec.bmc.address", "redphish", "Correct the host"},
			correct: rightAddress,
		},
		"unsupported image": {
			make: func(h *v1alpha1.BareMetalHost, _ *corev1.Secret) {
				format := "qcow2"
				h.Spec.Image = &v1alpha1.Image{URL: "http://images.example/os.qcow2", Checksum: strings.Repeat("0", 64), ChecksumType: v1alpha1.SHA256, DiskFormat: &format}
			},
			kind: v1alpha1.ProvisioningError, reason: "ProvisioningError", at: v1alpha1.StateAvailable,
			says: []string{"cannot write an image to disk", "live-iso", "Use the ironic backend for this host"},
			correct: func(t *testing.T, p *plant.Plant, m *bmcsim.Host) {
				t.Helper()
				p.Update(t, m.Name(), func(h *v1alpha1.BareMetalHost) { plant.WithImage(h, nil) })
			},
		},
	}
}

func addressed(address string) plant.Change {
	return func(h *v1alpha1.BareMetalHost, _ *corev1.Secret) { h.Spec.BMC.Address = address }
}

func wrongSystem(h *v1alpha1.BareMetalHost, _ *corev1.Secret) {
	server, _, _ := strings.Cut(h.Spec.BMC.Address, "/redfish/v1/")
	h.Spec.BMC.Address = server + "/redfish/v1/Systems/none"
}

func rightPassword(t *testing.T, p *plant.Plant, m *bmcsim.Host) {
	t.Helper()
	_, password := m.Credentials()
	p.SetPassword(t, m, password)
}

func createSecret(t *testing.T, p *plant.Plant, m *bmcsim.Host) {
	t.Helper()
	_, secret := p.Manifests(m)
	p.Create(t, secret)
}

func rightAddress(t *testing.T, p *plant.Plant, m *bmcsim.Host) {
	t.Helper()
	right, _ := p.Manifests(m)
	p.Update(t, m.Name(), func(h *v1alpha1.BareMetalHost) { h.Spec.BMC.Address = right.Spec.BMC.Address })
}

// Whatever is wrong with a host, its status and a Kubernetes Event say what,
// and what to do about it. Doing that is enough: what the correction
// leads to at once is what succeeds, and not a try that was due later.
func TestMistakesAreToldAndCorrected(t *testing.T) {
	p := newPlant(t)
	p.Start(t, 1)
	made := map[string]*bmcsim.Host{}
	all := mistakes(t)
	for name, m := range all {
		_, made[name] = p.Declare(t, m.make)
	}
	for name, m := range all {
		t.Run(name, func(t *testing.T) {
			told(t, p, made[name].Name(), m)
			m.correct(t, p, made[name])
			p.Await(t, made[name].Name(), "well", func(l plant.Life) bool { return well(l, m) })
			followed(t, p, made[name].Name(), m)
		})
	}
}

// eventPatience is how long a Kubernetes Event may take once the status tells
// of the trouble.
const eventPatience = 30 * time.Second

// told wants a host's trouble in its status and in an Event, in the same words.
func told(t *testing.T, p *plant.Plant, host string, m mistake) {
	t.Helper()
	life := p.Await(t, host, string(m.kind), func(l plant.Life) bool {
		return l.Now != nil && l.Now.Status.ErrorType == m.kind && l.Now.Status.ErrorCount > 0 // it is counted once it was tried
	})
	s := life.Now.Status
	if s.OperationalStatus != v1alpha1.OperationalStatusError || s.Provisioning.State != m.at {
		t.Errorf("the host is %q, %q", s.Provisioning.State, s.OperationalStatus)
	}
	for _, want := range m.says {
		if !strings.Contains(s.ErrorMessage, want) {
			t.Errorf("the message is %q, and does not say %q", s.ErrorMessage, want)
		}
	}
	lab.Eventually(t, eventPatience, "find the Event", func() error {
		for _, e := range p.Warnings(t, host) {
			if e.Reason == m.reason && containsAll(e.Message, m.says) {
				return nil
			}
		}
		return fmt.Errorf("no Event with reason %s says %q", m.reason, m.says)
	})
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// well is a host past its mistake.
func well(l plant.Life, m mistake) bool {
	if l.Now == nil || l.Now.Status.ErrorType != "" || l.Now.Status.ErrorMessage != "" {
		return false
	}
	if m.at == v1alpha1.StateAvailable {
		return plant.InUse(l)
	}
	return l.Now.Status.Provisioning.State == v1alpha1.StateAvailable
}

// followed wants what came after the last failure to be caused by the change
// of what the host asks.
func followed(t *testing.T, p *plant.Plant, host string, m mistake) {
	t.Helper()
	section, kind := event.SectionRegistration, event.Enroll
	if m.at == v1alpha1.StateAvailable {
		section, kind = event.SectionProvisioning, event.Deploy
	}
	uid := string(p.Hosts.Life(host).Now.UID)
	wishes, next := map[string]bool{}, cloudevents.Event{}
	for _, e := range history(t, p.Bus(t), bus.HistoryFilter{UID: uid, Sections: []event.Section{event.SectionIntent, section}}) {
		switch e.Type() {
		case event.Type(event.SectionIntent, event.Changed):
			wishes[e.ID()] = true
		case event.Type(section, kind.Fact(event.Failed)):
			next = cloudevents.Event{}
		default:
			if next.ID() == "" {
				next = e
			}
		}
	}
	if cause, _ := next.Extensions()[event.ExtCausation].(string); !wishes[cause] {
		t.Errorf("%s was caused by %q, want one of the changes of the wish: %v", next.ID(), cause, wishes)
	}
}

// history are the events that a filter chooses.
func history(t *testing.T, b *bus.Bus, f bus.HistoryFilter) (list []cloudevents.Event) {
	t.Helper()
	for e, err := range b.History(t.Context(), f, false) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}
