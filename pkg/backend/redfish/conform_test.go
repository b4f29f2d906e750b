package redfish_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/backend/backendtest"
	"github.com/metalbus/metalbus/pkg/backend/redfish"
	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func TestConform(t *testing.T) {
	for _, profile := range bmcsim.Profiles() {
		t.Run(profile, func(t *testing.T) {
			backendtest.Conform(t, func(t *testing.T) backendtest.Lab { return newRack(t, profile).lab() })
		})
	}
}

// rack is a simulator and a backend that speaks to it.
type rack struct {
	sim     *bmcsim.Sim
	url     string
	backend *redfish.Backend
	secrets secrets
	hosts   map[string]*bmcsim.Host // by uid
	passed  time.Duration
}

// secrets are credentials by the name of their Secret.
type secrets map[string][2]string

func (s secrets) Credentials(_ context.Context, _, name string) (string, string, error) {
	c := s[name]
	return c[0], c[1], nil
}

func (s secrets) Get(_ context.Context, _, name string) (map[string][]byte, string, error) {
	return map[string][]byte{"X-Rack": []byte(name)}, "1", nil
}

func newRack(t *testing.T, profile string) *rack {
	t.Helper()
	sim, err := bmcsim.New(bmcsim.Config{Now: time.Now, Seed: t.Name(), Profiles: []string{profile}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(server.Close)
	r := &rack{sim: sim, url: server.URL, secrets: secrets{}, hosts: map[string]*bmcsim.Host{}}
	pool, err := bmc.New(bmc.Config{Now: r.now, FirstPause: time.Millisecond, LongestPause: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close(context.WithoutCancel(t.Context())) })
	limits := redfish.DefaultLimits()
	limits.SoftOff = 5 * time.Second
	r.backend = redfish.New(pool, r.secrets, limits, r.now)
	return r
}

// now is a clock that can be put forward.
func (r *rack) now() time.Time { return time.Now().Add(r.passed) }

func (r *rack) lab() backendtest.Lab {
	format := v1alpha1.DiskFormatLiveISO
	return backendtest.Lab{
		Backend: r.backend, NewHost: r.newHost, Machine: r.machine, Now: r.now,
		Image:      v1alpha1.Image{URL: "http://192.0.2.80/live.iso", DiskFormat: &format},
		Subscribed: func(_ *testing.T, h lifecycle.Host) []string { return r.hosts[h.UID].Subscriptions() },
		Pass:       func(d time.Duration) { time.Sleep(time.Millisecond); r.passed += d },
		Break: func(_ *testing.T, h lifecycle.Host) func() {
			r.hosts[h.UID].SetFaults(bmcsim.Faults{Down: true})
			return func() { r.hosts[h.UID].SetFaults(bmcsim.Faults{}) }
		},
	}
}

func (r *rack) newHost(t *testing.T) lifecycle.Host {
	t.Helper()
	sim, err := r.sim.Add(bmcsim.HostSpec{})
	if err != nil {
		t.Fatal(err)
	}
	user, password := sim.Credentials()
	r.secrets[sim.Name()] = [2]string{user, password}
	h := lifecycle.Host{UID: fmt.Sprint("uid-", sim.Name())}
	r.hosts[h.UID] = sim
	h.Intent = event.Intent{Namespace: "lab", Name: sim.Name(), UID: h.UID, Credentials: event.SecretRef{Namespace: "lab", Name: sim.Name(), Version: "1"}}
	h.Intent.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish-virtualmedia+" + r.url + sim.SystemPath(), CredentialsName: sim.Name()}
	return h.WithNewest(event.SectionIntent, lifecycle.Meta{Seq: 1, Rev: 1, Fact: event.Created})
}

func (r *rack) machine(_ *testing.T, h lifecycle.Host) backendtest.Machine {
	v := r.hosts[h.UID].View()
	return backendtest.Machine{On: v.Power == "On", Image: v.Running.Image, Boots: v.Boots}
}
