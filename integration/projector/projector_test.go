package projector_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/integration/internal/programs"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/lifecycle"
	"github.com/metalbus/metalbus/services/projector"
)

const (
	home     = "metalbus-system"
	patience = time.Minute
)

// site is a real API with our rights in it, a bus, and a projector between them
// that acts under its own account.
type site struct {
	*testing.T
	kube      *lab.Kube
	bus       *bus.Bus
	namespace string
	metrics   *prometheus.Registry
}

// newSite grants the rights of the named files of deploy/rbac.
func newSite(t *testing.T, scoped bool) *site {
	t.Helper()
	s := &site{T: t, kube: shared.StartKube(t, t.TempDir()), bus: newBus(t), metrics: prometheus.NewRegistry()}
	s.must(s.kube.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}}))
	s.namespace = s.kube.Namespace(t)
	s.apply("accounts.yaml")
	cfg := kube.Config{Identity: "a", LeaseNamespace: home, EventsPerSecond: 1000}
	if scoped {
		s.apply("namespaced.yaml")
		cfg.Namespaces = []string{s.namespace}
	} else {
		s.apply("cluster.yaml")
	}
	s.run(cfg)
	return s
}

// newBus is a bus with the waits of production.
func newBus(t *testing.T) *bus.Bus {
	t.Helper()
	b := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "projector"}, bus.WithServer(bustest.Server(t)))
	if _, err := b.Init(t.Context(), bus.InitOptions{Replicas: 1, MaxBytes: 1 << 30, Memory: true}); err != nil {
		t.Fatal(err)
	}
	return b
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// apply makes the objects of a file, in the hosts' namespace if they name none.
func (s *site) apply(file string) {
	s.Helper()
	root, err := programs.Root(".")
	s.must(err)
	text, err := os.ReadFile(filepath.Join(root, "deploy", "rbac", file))
	s.must(err)
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			s.Fatalf("%s: %v", file, err)
		}
		if o.GetNamespace() == "" && !strings.HasPrefix(o.GetKind(), "Cluster") {
			o.SetNamespace(s.namespace)
		}
		s.must(s.kube.Client.Create(s.Context(), o))
	}
}

func (s *site) run(cfg kube.Config) {
	s.Helper()
	access := rest.CopyConfig(s.kube.Config)
	access.Impersonate = rest.ImpersonationConfig{UserName: account("projector"), Groups: []string{"system:authenticated"}}
	log := slog.New(slog.NewTextHandler(s.Output(), nil))
	c, err := kube.New(access, cfg, kube.Options{Log: log, Metrics: s.metrics, Now: time.Now})
	s.must(err)
	p := projector.New(projector.DefaultConfig(), c, s.bus, projector.Options{Log: log, Metrics: s.metrics, Now: time.Now})
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	s.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.Error(err)
		}
	})
	lab.Eventually(s, patience, "the hosts are listed", func() error { return c.Hosts.Ready(s.Context()) })
	if err := c.FieldsKnown()(s.Context()); err != nil {
		s.Errorf("the CRD of this version is not enough: %v", err)
	}
}

func account(service string) string { return "system:serviceaccount:" + home + ":" + service }

// declare makes a host and its Secret, and returns the host's uid.
func (s *site) declare(name string) string {
	s.Helper()
	s.must(s.kube.Client.Create(s.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name + "-bmc"},
		StringData: map[string]string{"username": "admin", "password": "secret"},
	}))
	o := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	o.Spec = v1alpha1.BareMetalHostSpec{
		Online: true, BootMACAddress: "00:00:5e:00:53:01",
		BMC: v1alpha1.BMCDetails{Address: "redfish-virtualmedia+https://192.0.2.10/redfish/v1/Systems/1", CredentialsName: name + "-bmc"},
	}
	s.must(s.kube.Client.Create(s.Context(), o))
	return string(o.UID)
}

// happens records what the other services would.
func (s *site) happens(uid string, facts ...lifecycle.Fact) {
	s.Helper()
	for _, f := range facts {
		lab.Eventually(s, patience, f.Name()+" is recorded", func() error {
			h, err := s.bus.Load(s.Context(), uid)
			if err == nil && !h.Exists() {
				err = errors.New("the bus does not know the host yet")
			}
			if e, enrolled := f.(lifecycle.Enrolled); enrolled {
				e.Credentials = lifecycle.Credentials(h.Intent)
				f = e
			}
			if err == nil {
				_, err = s.bus.Append(s.Context(), h, f)
			}
			return err
		})
	}
}

func (s *site) host(name string) (*v1alpha1.BareMetalHost, error) {
	o := &v1alpha1.BareMetalHost{}
	return o, s.kube.Client.Get(s.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, o)
}

func (s *site) shows(name string, state v1alpha1.ProvisioningState) *v1alpha1.BareMetalHost {
	s.Helper()
	var o *v1alpha1.BareMetalHost
	lab.Eventually(s, patience, fmt.Sprintf("%s shows %q", name, state), func() (err error) {
		if o, err = s.host(name); err == nil && o.Status.Provisioning.State != state {
			err = fmt.Errorf("it shows %q", o.Status.Provisioning.State)
		}
		return err
	})
	return o
}

// prepared are the facts that bring a host to available, but for inspection.
func (s *site) inspected(uid string) lifecycle.Fact {
	s.Helper()
	hw := v1alpha1.HardwareDetails{RAMMebibytes: 131072, CPU: v1alpha1.CPU{Arch: "x86_64", Count: 64, ClockMegahertz: 2400.5}}
	for i := range 8 {
		hw.NIC = append(hw.NIC, v1alpha1.NIC{Name: fmt.Sprintf("eth%d", i), MAC: fmt.Sprintf("00:00:5e:00:53:%02x", i), IP: "192.0.2.20", SpeedGbps: 25})
		hw.Storage = append(hw.Storage, v1alpha1.Storage{Name: fmt.Sprintf("/dev/sd%c", 'a'+i), Type: "SSD", SizeBytes: 960197124096, Model: "fast", SerialNumber: fmt.Sprint("s", i)})
	}
	digest, err := s.bus.PutData(s.Context(), uid, event.DataHardware, hw)
	s.must(err)
	return lifecycle.Inspected{Digest: digest, Source: "redfish", Arch: "x86_64"}
}

func TestAHostLivesAndGoesWithTheRightsThatAreShipped(t *testing.T) {
	for name, scoped := range map[string]bool{"in all namespaces": false, "in one namespace": true} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, scoped)
			uid := s.declare("host-a")
			s.shows("host-a", v1alpha1.StateRegistering)
			s.happens(uid, lifecycle.Enrolled{Backend: "redfish", Node: "node-a", Profile: "unknown"}, s.inspected(uid), lifecycle.Started{Kind: event.Prepare}, lifecycle.ReadyForImage{})
			o := s.shows("host-a", v1alpha1.StateAvailable)
			if o.Status.HardwareDetails == nil {
				t.Errorf("host is %+v", o)
			}
			lab.Eventually(t, patience, "its metadata are written", func() (err error) {
				if o, err = s.host("host-a"); err == nil && (o.Annotations[v1alpha1.StatusAnnotation] == "" || o.Spec.Architecture != "x86_64") {
					err = fmt.Errorf("architecture %q, annotations %v", o.Spec.Architecture, o.Annotations)
				}
				return err
			})
			data := &v1alpha1.HardwareData{}
			s.must(s.kube.Client.Get(t.Context(), client.ObjectKeyFromObject(o), data))
			if !metav1.IsControlledBy(data, o) {
				t.Errorf("HardwareData is owned by %+v", data.OwnerReferences)
			}
			lab.Eventually(t, patience, "there are Events", func() error {
				var events corev1.EventList
				if err := s.kube.Client.List(t.Context(), &events, client.InNamespace(s.namespace)); err != nil || len(events.Items) > 2 {
					return err
				}
				return errors.New("too few")
			})

			s.must(s.kube.Client.Delete(t.Context(), o))
			s.shows("host-a", v1alpha1.StatePoweringOffBeforeDelete)
			s.happens(uid, lifecycle.Switched{Kind: event.PowerOff})
			s.shows("host-a", v1alpha1.StateDeleting)
			s.happens(uid, lifecycle.Removed{})
			for _, left := range []client.Object{o, data, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "host-a-bmc"}}} {
				lab.Eventually(t, patience, fmt.Sprintf("%T is gone", left), func() error { // what it owns is collected
					err := s.kube.Client.Get(t.Context(), client.ObjectKeyFromObject(left), left)
					if err == nil {
						return errors.New("it is there")
					}
					return client.IgnoreNotFound(err)
				})
			}
			lab.Eventually(t, patience, "it is forgotten", func() error {
				h, err := s.bus.Load(t.Context(), uid)
				if err == nil && h.Newest(event.SectionIntent).Fact != event.Forgotten {
					err = errors.New(h.Newest(event.SectionIntent).Fact)
				}
				return err
			})
		})
	}
}

// The others read Secrets by name, and nothing else.
func TestOtherServicesHaveNoOtherRights(t *testing.T) {
	s := newSite(t, false)
	s.declare("host-a")
	secret := client.ObjectKey{Namespace: s.namespace, Name: "host-a-bmc"}
	for _, service := range []string{"registrar", "inspector", "provisioner", "powermonitor"} {
		as := s.kube.As(t, account(service), "system:authenticated")
		if err := as.Get(t.Context(), secret, &corev1.Secret{}); err != nil {
			t.Errorf("%s can not read a Secret: %v", service, err)
		}
		for what, err := range map[string]error{
			"list Secrets": as.List(t.Context(), &corev1.SecretList{}, client.InNamespace(s.namespace)),
			"list hosts":   as.List(t.Context(), &v1alpha1.BareMetalHostList{}, client.InNamespace(s.namespace)),
		} {
			if !apierrors.IsForbidden(err) {
				t.Errorf("%s can %s: %v", service, what, err)
			}
		}
	}
}

// What the way to available costs the API is counted, for many hosts at once.
// A host costs a write of its status for each state till it is available, and one for
// its power and all else that is known of it then.
func TestWhatAHostCosts(t *testing.T) {
	s := newSite(t, false)
	const hosts = 100
	began := time.Now()
	var all sync.WaitGroup
	for i := range hosts {
		name := fmt.Sprintf("host-%d", i)
		uid := s.declare(name)
		all.Go(func() {
			phase := func(facts ...lifecycle.Fact) {
				s.happens(uid, facts...)
				select { // a phase of hardware
				case <-time.After(300 * time.Millisecond):
				case <-t.Context().Done():
				}
			}
			phase(lifecycle.Started{Kind: event.Enroll, Step: "enroll"}, lifecycle.Accepted{Kind: event.Enroll})
			phase(lifecycle.Enrolled{Backend: "redfish", Node: "node-" + name, Profile: "unknown"}, lifecycle.Started{Kind: event.Inspect, Step: "read"}, lifecycle.Accepted{Kind: event.Inspect})
			phase(s.inspected(uid), lifecycle.Started{Kind: event.Prepare, Step: "check"}, lifecycle.Accepted{Kind: event.Prepare})
			s.happens(uid, lifecycle.ReadyForImage{}, lifecycle.Observed{What: event.PowerChanged, On: new(true)})
		})
	}
	all.Wait()
	for i := range hosts {
		s.shows(fmt.Sprintf("host-%d", i), v1alpha1.StateAvailable)
		lab.Eventually(t, patience, "its power is shown", func() error {
			o, err := s.host(fmt.Sprintf("host-%d", i))
			if err == nil && !o.Status.PoweredOn {
				err = errors.New("off")
			}
			return err
		})
	}
	t.Logf("%d hosts are available and on after %s", hosts, time.Since(began).Round(10*time.Millisecond))
	counts := s.writes()
	t.Logf("writes: %v", counts)
	for kind, most := range map[string]float64{"status": 5, "metadata": 1, "finalizer": 1, "secret": 1, "hardwaredata": 1} {
		if got := counts[kind+" ok"] / hosts; got > most {
			t.Errorf("%.2f writes of %s a host, want %v", got, kind, most)
		}
	}
}

// writes are the writes by kind and outcome.
func (s *site) writes() map[string]float64 {
	s.Helper()
	families, err := s.metrics.Gather()
	s.must(err)
	counts := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "metalbus_kube_writes_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			counts[strings.Join(labels, " ")] = m.GetCounter().GetValue()
		}
	}
	return counts
}
