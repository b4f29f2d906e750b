package projector_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/kube/hostwish"
	"github.com/metalbus/metalbus/pkg/kube/kubetest"
	"github.com/metalbus/metalbus/pkg/kube/preprov"
	"github.com/metalbus/metalbus/pkg/lifecycle"
	"github.com/metalbus/metalbus/services/projector"
)

const namespace = "lab"

// site is an API, a bus and projectors between them. The test plays the user
// and the other services.
type site struct {
	*testing.T
	api  *kubetest.Server
	bus  *bus.Bus
	cfg  projector.Config
	user kubetest.User
	uids map[string]string
	// ramdisks are the settings of hosts' own images.
	ramdisks preprov.Config
	// unlisted: they cannot be listed.
	unlisted bool
	// projector is the replica that was started last.
	projector *projector.Projector
}

func newSite(t *testing.T) *site {
	t.Helper()
	api := kubetest.New(t)
	cfg := projector.DefaultConfig()
	cfg.StatusDelay = 20 * time.Millisecond
	return &site{T: t, api: api, bus: bustest.New(t), cfg: cfg, user: kubetest.NewUser(t, api.Config(), namespace), uids: map[string]string{}}
}

// start runs a replica until it is stopped, or the test ends.
func (s *site) start(identity string) (stop func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	registry := prometheus.NewRegistry()
	log := slog.New(slog.NewTextHandler(s.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	c, err := kube.New(s.api.Config(), kube.Config{Identity: identity, Namespaces: []string{namespace}, EventsPerSecond: 10000}, kube.Options{Log: log, Metrics: registry, Now: time.Now})
	if err != nil {
		s.Fatal(err)
	}
	wishes, err := hostwish.New(c, log)
	if err != nil {
		s.Fatal(err)
	}
	o := projector.Options{
		Log: log, Metrics: registry, Now: time.Now, Wishes: wishes, Beside: []projector.Part{wishes.Run}, Leading: []projector.Part{wishes.Lead},
	}
	if s.ramdisks.Enabled {
		images, err := preprov.New(s.ramdisks, c, log, time.Now)
		if err != nil {
			s.Fatal(err)
		}
		o.Ramdisks, o.Leading = images, append(o.Leading, images.Run)
	}
	if s.unlisted {
		o.Ramdisks = unlisted{}
	}
	s.projector = projector.New(s.cfg, c, s.bus, o)
	p, done := s.projector, make(chan struct{})
	go func() {
		defer close(done)
		if err := p.Run(ctx); err != nil {
			s.Errorf("projector %s: %v", identity, err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	s.Cleanup(stop)
	return stop
}

func (s *site) host(name string) *v1alpha1.BareMetalHost {
	s.Helper()
	o := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if !s.api.Object("baremetalhosts", namespace, name, o) {
		s.Fatalf("host %s is gone", name)
	}
	s.uids[name] = string(o.UID)
	return o
}

// apply makes a host and its Secret.
func (s *site) apply(name string, change ...func(*v1alpha1.BareMetalHost)) {
	s.Helper()
	s.secret(name + "-bmc")
	s.applyHost(name, change...)
}

func (s *site) secret(name string) {
	s.Helper()
	data := map[string][]byte{"username": []byte("admin"), "password": []byte("s3cret-canary")}
	s.user.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data})
}

// event waits for a Kubernetes Event.
func (s *site) event(reason, kind string) corev1.Event {
	s.Helper()
	var found corev1.Event
	kubetest.Eventually(s, "there is an Event "+reason, func() bool {
		for _, name := range s.api.Names("events") {
			var e corev1.Event
			if s.api.Object("events", namespace, strings.TrimPrefix(name, namespace+"/"), &e) && e.Reason == reason {
				found = e
			}
		}
		return found.Reason == reason
	})
	if found.Type != kind {
		s.Errorf("Event %s is %s, want %s", reason, found.Type, kind)
	}
	return found
}

func (s *site) applyHost(name string, change ...func(*v1alpha1.BareMetalHost)) {
	s.Helper()
	o := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	o.Spec.Online = true
	o.Spec.BootMACAddress = "00:00:5e:00:53:01"
	o.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish-virtualmedia+https://admin:s3cret-canary@192.0.2.10/redfish/v1/Systems/1", CredentialsName: name + "-bmc"}
	for _, c := range change {
		c(o)
	}
	s.user.Create(o)
	s.host(name)
}

// known waits until the bus knows the host.
func (s *site) known(name string) lifecycle.Host {
	s.Helper()
	return s.loaded(name, "the bus knows the host", lifecycle.Host.Exists)
}

func (s *site) loaded(name, what string, ok func(lifecycle.Host) bool) lifecycle.Host {
	s.Helper()
	var h lifecycle.Host
	kubetest.Eventually(s, what, func() bool {
		var err error
		if h, err = s.bus.Load(s.Context(), s.uids[name]); err != nil {
			s.Fatal(err)
		}
		return ok(h)
	})
	return h
}

// happens records facts of the other services.
func (s *site) happens(name string, facts ...lifecycle.Fact) {
	s.Helper()
	for _, f := range facts {
		err := bus.ErrConflict
		for errors.Is(err, bus.ErrConflict) {
			var h lifecycle.Host
			if h, err = s.bus.Load(s.Context(), s.uids[name]); err == nil {
				_, err = s.bus.Append(s.Context(), h, f)
			}
		}
		if err != nil {
			s.Fatalf("%s: %v", f.Name(), err)
		}
	}
}

// shows waits until the object shows a state.
func (s *site) shows(name string, state v1alpha1.ProvisioningState) *v1alpha1.BareMetalHost {
	s.Helper()
	return s.eventually(name, fmt.Sprintf("state %q is shown", state), func(o *v1alpha1.BareMetalHost) bool {
		return o.Status.Provisioning.State == state
	})
}

func (s *site) eventually(name, what string, ok func(*v1alpha1.BareMetalHost) bool) *v1alpha1.BareMetalHost {
	s.Helper()
	o := &v1alpha1.BareMetalHost{}
	defer func() {
		if s.Failed() {
			s.Logf("%s: %+v", name, o.Status)
		}
	}()
	kubetest.Eventually(s, name+": "+what, func() bool {
		o = s.host(name)
		return ok(o)
	})
	return o
}

// caughtUp waits until the object shows the host as the bus has it.
func (s *site) caughtUp(name string) *v1alpha1.BareMetalHost {
	s.Helper()
	return s.eventually(name, "what the bus knows is shown", func(o *v1alpha1.BareMetalHost) bool {
		h, err := s.bus.Load(s.Context(), s.uids[name])
		if err != nil {
			s.Fatal(err)
		}
		want, got := lifecycle.Status(h), o.Status
		return got.Provisioning.State == want.Provisioning.State && got.PoweredOn == want.PoweredOn &&
			got.OperationalStatus == want.OperationalStatus && got.ErrorMessage == want.ErrorMessage
	})
}

// writes are how many patches of hosts were made so far, of their status or of
// the rest.
func (s *site) writes(subresource string) (n int) {
	for _, w := range s.api.Writes() {
		if w.Resource == "baremetalhosts" && w.Subresource == subresource && w.Code < 300 && w.Verb == "patch" {
			n++
		}
	}
	return n
}

// states are the states that were written, in order.
func (s *site) states(name string) []string {
	var states []string
	for _, w := range s.api.Writes() {
		if w.Subresource != "status" || w.Name != name || w.Code >= 300 {
			continue
		}
		if _, rest, found := strings.Cut(w.Body, `"state":"`); found {
			state, _, _ := strings.Cut(rest, `"`)
			states = append(states, state)
		}
	}
	return slices.Compact(states)
}

func (s *site) hardware(name string) string {
	s.Helper()
	digest, err := s.bus.PutData(s.Context(), s.uids[name], event.DataHardware, hardware())
	if err != nil {
		s.Fatal(err)
	}
	return digest
}

func hardware() *v1alpha1.HardwareDetails {
	return &v1alpha1.HardwareDetails{
		RAMMebibytes: 131072, Hostname: "host-a", CPU: v1alpha1.CPU{Arch: "x86_64", Count: 64},
		NIC: []v1alpha1.NIC{{Name: "eth0", MAC: "00:00:5e:00:53:01", IP: "192.0.2.20"}, {Name: "eth0", MAC: "00:00:5e:00:53:01", IP: "2001:db8::20"}},
	}
}

func (s *site) enrolled(name string) lifecycle.Fact {
	h, err := s.bus.Load(s.Context(), s.uids[name])
	if err != nil {
		s.Fatal(err)
	}
	return lifecycle.Enrolled{Backend: "redfish", Node: "node-" + name, Address: h.Intent.Spec.BMC.Address, Profile: "unknown", Credentials: lifecycle.Credentials(h.Intent)}
}

// available brings a new host to available, as fast as the bus takes it.
func (s *site) available(name string) {
	s.Helper()
	s.known(name)
	s.happens(name,
		lifecycle.Started{Kind: event.Enroll, Step: "enrol"}, lifecycle.Accepted{Kind: event.Enroll}, s.enrolled(name),
		lifecycle.Started{Kind: event.Inspect, Step: "inspect"}, lifecycle.Accepted{Kind: event.Inspect},
		lifecycle.Inspected{Digest: s.hardware(name), Source: "redfish", Arch: "x86_64"},
		lifecycle.Started{Kind: event.Prepare, Step: "prepare"}, lifecycle.Accepted{Kind: event.Prepare}, lifecycle.ReadyForImage{},
	)
	s.shows(name, v1alpha1.StateAvailable)
}

// provisioned brings an available host to provisioned, and on.
func (s *site) provisioned(name string) *v1alpha1.BareMetalHost {
	s.Helper()
	s.user.Change(name, func(o *v1alpha1.BareMetalHost) {
		o.Spec.Image = &v1alpha1.Image{URL: "http://192.0.2.80/os.iso", DiskFormat: new("live-iso")}
	})
	s.loaded(name, "the image is wanted", func(h lifecycle.Host) bool { return h.Intent.Spec.Image != nil })
	on := true
	s.happens(name,
		lifecycle.Started{Kind: event.Deploy, Step: "insert"}, lifecycle.Accepted{Kind: event.Deploy}, lifecycle.Provisioned{},
		lifecycle.Observed{What: event.PowerChanged, On: &on},
	)
	return s.eventually(name, "it is provisioned and on", func(o *v1alpha1.BareMetalHost) bool {
		return o.Status.Provisioning.State == v1alpha1.StateProvisioned && o.Status.PoweredOn
	})
}

// projected is the revision that the object shows.
func projected(o *v1alpha1.BareMetalHost) string {
	if c := condition(o, "Projected"); c != nil {
		return c.Message[strings.LastIndexByte(c.Message, '/')+1:]
	}
	return ""
}
