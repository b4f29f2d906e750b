// Package backend_test runs the suite that every backend passes with the Ironic
// backend and a real Ironic.
package backend_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/containers"
	"github.com/metalbus/metalbus/integration/ironic/rack"
	"github.com/metalbus/metalbus/integration/ironic/rig"
	"github.com/metalbus/metalbus/pkg/backend/backendtest"
	"github.com/metalbus/metalbus/pkg/backend/ironic"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	client "github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

var (
	docker   containers.Session
	releases = flag.String("releases", "39", "releases to run the suite on, such as 29,39")
)

func TestMain(m *testing.M) { os.Exit(docker.Run(m)) }

const (
	namespace = "real"
	// hosts are more than the suite has cases.
	hosts = 12
	// dataImage is a file that can be put into virtual CD drives.
	dataImage = "data.iso"
	// pause is what passes between two looks: a real Ironic is not to be hurried.
	pause = time.Second
)

func TestBackendOnARealIronic(t *testing.T) {
	for name := range strings.SplitSeq(*releases, ",") {
		n, err := strconv.Atoi(name)
		if err != nil {
			t.Fatalf("-releases=%s: %q is no release: give some of %v", *releases, name, ironictest.Releases())
		}
		t.Run(name, func(t *testing.T) {
			r := rig.Start(t, &docker, rig.Config{Release: ironictest.Release(n), Hosts: hosts, FastTrack: ironictest.Release(n) == ironictest.Ironic29})
			l := newLab(t, r)
			backendtest.Conform(t, func(t *testing.T) backendtest.Lab { t.Helper(); return l.bench() })
		})
	}
}

// secrets are the machines' logins, by the names of their hosts.
type secrets map[string]rack.State

func (s secrets) Get(_ context.Context, _, name string) (map[string][]byte, string, error) {
	m, ok := s[name]
	if !ok {
		return nil, "", fmt.Errorf("no Secret %s", name)
	}
	return map[string][]byte{"username": []byte(m.Username), "password": []byte(m.Password)}, "1", nil
}

type lab struct {
	rig     *rig.Rig
	client  *client.Client
	backend *ironic.Backend
	logins  secrets
	free    []rack.State
	taken   map[string]string // name of the machine by the host's UID
}

func newLab(t *testing.T, r *rig.Rig) *lab {
	t.Helper()
	l := &lab{rig: r, logins: secrets{}, taken: map[string]string{}}
	var err error
	if l.free, err = r.Rack.Machines(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{Name: "real", Endpoint: r.URL}, time.Now, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	l.client = c
	if err := r.Rack.Upload(t.Context(), dataImage, []byte(strings.Repeat("a data image\n", 1000))); err != nil {
		t.Fatal(err)
	}
	set := ironic.DefaultSettings()
	set.Ramdisk = ironic.RamdiskURLs{ISO: r.Files() + "/agent.iso"}
	set.SoftPowerOff = 10 * time.Second // which machines without a system let pass
	if l.backend, err = ironic.New(c, set, ironic.Beside{Secrets: l.logins, Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) bench() backendtest.Lab {
	files, old := l.rig.Files(), l.rig.Release() < ironictest.Ironic29
	b := backendtest.Lab{
		Backend: l.backend, Now: time.Now, Pass: func(time.Duration) { time.Sleep(pause) },
		Image:   v1alpha1.Image{URL: files + "/disk.raw", Checksum: files + "/disk.raw.sha256sum", ChecksumType: v1alpha1.SHA256, DiskFormat: new("raw")},
		NewHost: l.host, Machine: l.machine, Break: l.cut, Subscribed: l.subscribed,
		Sparse: old, NoService: old,
	}
	if !old {
		b.DataImages = []string{files + "/agent.iso", files + "/" + dataImage}
	}
	return b
}

func (l *lab) host(t *testing.T) lifecycle.Host {
	t.Helper()
	if len(l.free) == 0 {
		t.Fatalf("the rack of %d machines is used up: raise the number", hosts)
	}
	m := l.free[0]
	l.free = l.free[1:]
	name := m.View.Name
	h := lifecycle.Host{UID: uuid.NewString(), Epoch: "e1"}
	l.logins[name], l.taken[h.UID] = m, name
	h.Intent = event.Intent{Namespace: namespace, Name: name, UID: h.UID, Credentials: event.SecretRef{Namespace: namespace, Name: name, Version: "1"}}
	h.Intent.Spec.BootMACAddress = m.MACs[0]
	if l.rig.Release() < ironictest.Ironic29 { // which has no agents that inspect
		h.Intent.Spec.InspectionMode = v1alpha1.InspectionModeFast
	}
	h.Intent.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish-virtualmedia+" + l.rig.BMC + m.SystemPath, CredentialsName: name}
	return h.WithNewest(event.SectionIntent, lifecycle.Meta{Seq: 1, Rev: 1, Fact: event.Created, At: time.Now()})
}

func (l *lab) machine(t *testing.T, h lifecycle.Host) backendtest.Machine {
	t.Helper()
	s, err := l.rig.Rack.Machine(t.Context(), l.taken[h.UID])
	if err != nil {
		t.Fatal(err)
	}
	return backendtest.Machine{On: s.View.Power == "On", Image: s.Disk.Image, Boots: s.View.Boots, Media: len(s.View.Media) > 0}
}

// subscribed is what Ironic says of the subscriptions at the host's BMC.
func (l *lab) subscribed(t *testing.T, h lifecycle.Host) (destinations []string) {
	t.Helper()
	all, err := l.client.Subscriptions(t.Context(), h.Registration.Node)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		destinations = append(destinations, s.Destination)
	}
	return destinations
}

func (l *lab) cut(t *testing.T, h lifecycle.Host) (mend func()) {
	t.Helper()
	down := func(is bool) {
		t.Helper()
		if _, err := l.rig.Rack.Change(t.Context(), l.taken[h.UID], rack.Change{BMC: &bmcsim.Faults{Down: is}}); err != nil {
			t.Fatal(err)
		}
	}
	down(true)
	return func() { t.Helper(); down(false) }
}
