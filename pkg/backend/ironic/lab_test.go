package ironic_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/backend/backendtest"
	backend "github.com/metalbus/metalbus/pkg/backend/ironic"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

const namespace = "lab"

// secrets are Secrets in memory, by namespace and name.
type secrets struct {
	mu   sync.Mutex
	kept map[string]secret
	read []string
}

type secret struct {
	version string
	data    map[string]string
}

func (s *secrets) Get(_ context.Context, namespace, name string) (map[string][]byte, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = append(s.read, namespace+"/"+name)
	found, ok := s.kept[namespace+"/"+name]
	if !ok {
		return nil, "", &lifecycle.ProblemError{Problem: lifecycle.NewProblem(v1alpha1.RegistrationError, event.ClassCredentials, "no Secret "+namespace+"/"+name)}
	}
	data := map[string][]byte{}
	for k, v := range found.data {
		data[k] = []byte(v)
	}
	return data, found.version, nil
}

func (s *secrets) put(name, version string, data map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[namespace+"/"+name] = secret{version: version, data: maps.Clone(data)}
}

// lab is a backend over an Ironic in this process, with machines.
type lab struct {
	*testing.T
	ironic  *ironictest.Ironic
	address string
	secrets *secrets
	backend *backend.Backend
	set     backend.Settings
	beside  backend.Beside
	hosts   sync.Map // machine by uid
	passed  atomic.Int64
	count   atomic.Int64
}

// newLab is a lab; change may change what it is made of.
func newLab(t *testing.T, cfg ironictest.Config, change func(*backend.Settings, *backend.Beside)) *lab {
	t.Helper()
	l := &lab{T: t, secrets: &secrets{kept: map[string]secret{}}}
	if cfg.Now == nil {
		cfg.Now = l.now
	}
	i, address, stop, err := ironictest.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	l.ironic, l.address = i, address
	l.set = backend.DefaultSettings()
	l.set.Ramdisk = backend.RamdiskURLs{ISO: "http://192.0.2.80/agent.iso"}
	l.beside = backend.Beside{Secrets: l.secrets, Now: l.now}
	if change != nil {
		change(&l.set, &l.beside)
	}
	c, err := ironic.New(ironic.Config{Name: backend.Name, Endpoint: address}, l.now, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if l.backend, err = backend.New(c, l.set, l.beside); err != nil {
		t.Fatal(err)
	}
	return l
}

// now is a clock that can be put forward.
func (l *lab) now() time.Time { return time.Now().Add(time.Duration(l.passed.Load())) }

func (l *lab) pass(d time.Duration) {
	l.passed.Add(int64(d))
	time.Sleep(time.Millisecond) // for what Ironic does on its own
}

// host declares a host with a machine of its own.
func (l *lab) host() lifecycle.Host {
	l.Helper()
	n := l.count.Add(1)
	name := fmt.Sprint("host-", n)
	m, err := l.ironic.Rack().Add(ironictest.Spec{Name: name, SystemID: "/redfish/v1/Systems/1"})
	if err != nil {
		l.Fatal(err)
	}
	spec := m.Spec()
	l.secrets.put(name, "1", map[string]string{"username": spec.Username, "password": spec.Password + "\n"})
	h := lifecycle.Host{UID: uuid.NewString(), Epoch: "e1"}
	l.hosts.Store(h.UID, m)
	h.Intent = event.Intent{Namespace: namespace, Name: name, UID: h.UID, Credentials: event.SecretRef{Namespace: namespace, Name: name, Version: "1"}}
	h.Intent.Spec.BootMACAddress = spec.MACs[0]
	h.Intent.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish-virtualmedia+" + spec.Address + spec.SystemID, CredentialsName: name}
	return h.WithNewest(event.SectionIntent, lifecycle.Meta{Seq: 1, Rev: 1, Fact: event.Created, At: l.now()})
}

// machine is the machine of a host.
func (l *lab) machine(h lifecycle.Host) *ironictest.Machine {
	l.Helper()
	m, ok := l.hosts.Load(h.UID)
	if !ok {
		l.Fatal("no such host")
	}
	return m.(*ironictest.Machine)
}

// bench is the lab as the suite of all backends wants it.
func (l *lab) bench() backendtest.Lab {
	return backendtest.Lab{
		Backend: l.backend,
		NewHost: func(*testing.T) lifecycle.Host { return l.host() },
		Machine: func(_ *testing.T, h lifecycle.Host) backendtest.Machine {
			v := l.machine(h).View()
			return backendtest.Machine{On: v.On, Image: v.Disk.Image, Boots: v.Boots}
		},
		Image: v1alpha1.Image{URL: "http://192.0.2.80/os.qcow2", Checksum: "http://192.0.2.80/os.sha256"},
		Now:   l.now, Pass: l.pass,
		Break: func(_ *testing.T, h lifecycle.Host) func() {
			l.machine(h).SetFaults(ironictest.Faults{Down: true})
			return func() { l.machine(h).SetFaults(ironictest.Faults{}) }
		},
	}
}
