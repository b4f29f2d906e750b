package ironic_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
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
	client  *ironic.Client
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
	i, err := ironictest.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", cfg.Now().UTC().Format(http.TimeFormat)) // Ironic's clock is the lab's
		i.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		i.Close()
	})
	l.ironic, l.address = i, server.URL
	l.set = backend.DefaultSettings()
	l.set.Ramdisk = backend.RamdiskURLs{ISO: "http://192.0.2.80/agent.iso"}
	l.beside = backend.Beside{Secrets: l.secrets, Now: l.now}
	if change != nil {
		change(&l.set, &l.beside)
	}
	c, err := ironic.New(ironic.Config{Name: backend.Name, Endpoint: l.address}, l.now, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	l.client = c
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

// record is the host after a fact.
func (l *lab) record(h lifecycle.Host, f lifecycle.Fact) lifecycle.Host {
	after := lifecycle.Apply(h, f, l.now())
	return after.WithNewest(f.Section(), lifecycle.Meta{Seq: h.Head + 1, Rev: h.Rev + 1, Fact: f.Name(), At: l.now()})
}

// drive brings an operation to its end. Where the machine that runs the tests is
// slow, an Ironic may seem to be busy.
func (l *lab) drive(h lifecycle.Host, k event.Kind) (after lifecycle.Host, res lifecycle.Result, problem *event.Problem) {
	l.Helper()
	var err error
	for range 100 {
		h, res, problem, err = l.bench().Drive(l.Context(), h, k)
		if !errors.Is(err, lifecycle.ErrBusy) {
			break
		}
		l.pass(time.Second)
	}
	if err != nil {
		l.Fatal(err)
	}
	return h, res, problem
}

// must drives an operation to a good end.
func (l *lab) must(h lifecycle.Host, k event.Kind) (lifecycle.Host, lifecycle.Result) {
	l.Helper()
	h, res, problem := l.drive(h, k)
	if problem != nil {
		l.Fatalf("%s: %s", k, lifecycle.Message(*problem))
	}
	return h, res
}

// fails drives an operation to a problem.
func (l *lab) fails(h lifecycle.Host, k event.Kind) (lifecycle.Host, event.Problem) {
	l.Helper()
	h, _, problem := l.drive(h, k)
	if problem == nil {
		l.Fatalf("%s came to a good end", k)
	}
	return h, *problem
}

// does drives an operation to a good end, and records it.
func (l *lab) does(h lifecycle.Host, k event.Kind, f lifecycle.Fact) lifecycle.Host {
	l.Helper()
	h, _ = l.must(h, k)
	return l.record(h, f)
}

func (l *lab) enroll(h lifecycle.Host) lifecycle.Host {
	l.Helper()
	h, r := l.must(h, event.Enroll)
	return l.record(h, lifecycle.Enrolled{
		Backend: backend.Name, Node: r.Node, Address: h.Intent.Spec.BMC.Address, Profile: "unknown", Credentials: lifecycle.Credentials(h.Intent),
	})
}

func (l *lab) prepare(h lifecycle.Host) lifecycle.Host {
	l.Helper()
	return l.does(h, event.Prepare, lifecycle.ReadyForImage{RAID: lifecycle.TargetRAID(h)})
}

// available takes a host to where it may be used.
func (l *lab) available(h lifecycle.Host) lifecycle.Host {
	l.Helper()
	return l.prepare(l.does(l.enroll(h), event.Inspect, lifecycle.Inspected{Digest: "d"}))
}

// deploy gives an available host an image, unless it has a wish of its own.
func (l *lab) deploy(h lifecycle.Host) lifecycle.Host {
	l.Helper()
	if h.Intent.Spec.Image == nil && h.Intent.Spec.CustomDeploy == nil {
		image := l.bench().Image
		h.Intent.Spec.Image = &image
	}
	h.Intent.Spec.Online = true
	return l.does(h, event.Deploy, lifecycle.Provisioned{})
}

// node is the host's node as Ironic has it.
func (l *lab) node(h lifecycle.Host) map[string]any {
	l.Helper()
	n, ok := l.ironic.Node(namespace + "~" + h.Intent.Name)
	if !ok {
		l.Fatalf("there is no node of %s", h.Name())
	}
	return n
}

// look is how an operation stands, in short.
func (l *lab) look(h lifecycle.Host, k event.Kind) lifecycle.Outlook {
	l.Helper()
	o, err := l.backend.Look(l.Context(), k, h)
	if err != nil {
		l.Fatal(err)
	}
	return o
}

// bench is the lab as the suite of all backends wants it.
func (l *lab) bench() backendtest.Lab {
	return backendtest.Lab{
		Backend: l.backend,
		NewHost: func(*testing.T) lifecycle.Host { return l.host() },
		Machine: func(_ *testing.T, h lifecycle.Host) backendtest.Machine {
			v := l.machine(h).View()
			return backendtest.Machine{On: v.On, Image: v.Disk.Image, Boots: v.Boots, Media: v.CD != ""}
		},
		Image: v1alpha1.Image{URL: "http://192.0.2.80/os.qcow2", Checksum: "http://192.0.2.80/os.sha256"},
		Subscribed: func(_ *testing.T, h lifecycle.Host) (list []string) {
			for _, s := range l.machine(h).Subscriptions() {
				list = append(list, s.Destination)
			}
			return list
		},
		DataImages: []string{"http://192.0.2.80/data.iso", "http://192.0.2.80/more.iso"},
		Now:        l.now, Pass: l.pass,
		Break: func(_ *testing.T, h lifecycle.Host) func() {
			l.machine(h).SetFaults(ironictest.Faults{Down: true})
			return func() { l.machine(h).SetFaults(ironictest.Faults{}) }
		},
	}
}

// discovered is the UUID of a node without a name that has the host's MAC address.
func (l *lab) discovered(h lifecycle.Host) string {
	l.Helper()
	n, err := l.client.Create(l.Context(), map[string]any{"driver": "redfish"})
	if err != nil {
		l.Fatal(err)
	}
	if err := l.client.AddPort(l.Context(), n.UUID, h.Intent.Spec.BootMACAddress, true); err != nil {
		l.Fatal(err)
	}
	return n.UUID
}
