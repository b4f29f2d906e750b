package firmware_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/kube/firmware"
	"github.com/metalbus/metalbus/pkg/kube/kubetest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

const namespace = "lab"

// site is an API and a bus in memory, with the controller between them.
type site struct {
	*testing.T
	api     *kubetest.Server
	user    kubetest.User
	cluster *kube.Cluster
	fw      *firmware.Controller

	mu    sync.Mutex
	hosts map[string]lifecycle.Host
	known event.Firmware
	loads int
}

func newSite(t *testing.T) *site {
	t.Helper()
	api := kubetest.New(t)
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	c, err := kube.New(api.Config(), kube.Config{Identity: "a", Namespaces: []string{namespace}, EventsPerSecond: 1000, Writes: 1}, kube.Options{Log: log, Metrics: prometheus.NewRegistry(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, api: api, user: kubetest.NewUser(t, api.Config(), namespace), cluster: c, hosts: map[string]lifecycle.Host{}}
	s.known = event.Firmware{
		Settings:   map[string]string{"Turbo": "Enabled"},
		Schema:     map[string]v1alpha1.SettingSchema{"Turbo": {AttributeType: v1alpha1.AttributeEnumeration, AllowableValues: []string{"Enabled", "Disabled"}}},
		Components: []v1alpha1.FirmwareComponentStatus{{Component: "bios", InitialVersion: "1.0.0", CurrentVersion: "1.0.0"}},
	}
	if s.fw, err = firmware.New(c, s, log, time.Now); err != nil {
		t.Fatal(err)
	}
	s.background(func(ctx context.Context) { c.Watch(ctx) })
	s.background(func(ctx context.Context) { c.Announcer.Run(ctx) })
	return s
}

// background runs something until the test ends, or it is stopped.
func (s *site) background(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() { defer close(done); run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	s.Cleanup(stop)
	return stop
}

// run lets the controller lead.
func (s *site) run() (stop func()) {
	return s.background(func(ctx context.Context) {
		if err := s.fw.Run(ctx); err != nil && ctx.Err() == nil {
			s.Error(err)
		}
	})
}

// Load is a host as the bus has it.
func (s *site) Load(_ context.Context, uid string) (lifecycle.Host, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	return s.hosts[uid], nil
}

// GetData is what was read of every machine's firmware.
func (s *site) GetData(_ context.Context, _, _, _ string, value any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*value.(*event.Firmware) = s.known
	return nil
}

func (s *site) loaded() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads
}

// host makes a registered host; read is what came of reading its firmware.
func (s *site) host(name string, read event.FirmwareRead, change func(*v1alpha1.BareMetalHost)) string {
	s.Helper()
	o := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
	if change != nil {
		change(o)
	}
	s.user.Create(o)
	h := lifecycle.Host{UID: string(o.UID)}.WithNewest(event.SectionIntent, lifecycle.Meta{Seq: 1, Rev: 1})
	h.Intent.Namespace, h.Intent.Name = namespace, name
	h.Registration = event.Registration{Registered: true, Backend: "redfish", Firmware: read}
	s.mu.Lock()
	s.hosts[h.UID] = h
	s.mu.Unlock()
	s.fw.Heard(h.UID) // the services' work shows on the host, and is heard of by that
	return h.UID
}

func done() event.FirmwareRead { return event.FirmwareRead{Digest: "d", At: time.Now()} }

func (s *site) settings(name string) *v1alpha1.HostFirmwareSettings {
	o := &v1alpha1.HostFirmwareSettings{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.user.Read(o)
	return o
}

func (s *site) components(name string) *v1alpha1.HostFirmwareComponents {
	o := &v1alpha1.HostFirmwareComponents{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.user.Read(o)
	return o
}

// is reports a condition as Status/Reason, if it is about the object as it is.
func is(list []metav1.Condition, kind string, generation int64) string {
	for _, c := range list {
		if c.Type == kind && c.ObservedGeneration == generation {
			return string(c.Status) + "/" + c.Reason
		}
	}
	return ""
}

// shown waits until both objects of a host show what is known.
func (s *site) shown(name string) {
	s.Helper()
	kubetest.Eventually(s, name+" shows its firmware", func() bool {
		hfs, hfc := s.settings(name), s.components(name)
		return is(hfs.Status.Conditions, "Valid", hfs.Generation) == "True/Success" && is(hfc.Status.Conditions, "Valid", hfc.Generation) == "True/OK"
	})
}

// writes counts the writes of the kinds of firmware.
func (s *site) writes() int {
	n := 0
	for _, w := range s.api.Writes() {
		if strings.HasPrefix(w.Resource, "hostfirmware") || w.Resource == "firmwareschemas" || w.Resource == "hostupdatepolicies" {
			n++
		}
	}
	return n
}

// What it costs: two objects and two statuses a host, a schema for all, and nothing
// while nothing changes, also when another replica comes to lead.
func TestWhatItCosts(t *testing.T) {
	const many = 20
	s := newSite(t)
	stop := s.run()
	for i := range many {
		s.host(fmt.Sprint("host-", i), done(), nil)
	}
	for i := range many {
		s.shown(fmt.Sprint("host-", i))
	}
	hfs, hfc := s.settings("host-0"), s.components("host-0")
	if hfs.Status.Settings["Turbo"] != "Enabled" || hfs.Status.LastUpdated == nil || len(hfs.OwnerReferences) != 1 || hfs.OwnerReferences[0].Controller != nil || hfs.Spec.Settings == nil {
		t.Errorf("settings %+v", hfs)
	}
	if len(hfc.Status.Components) != 1 || len(hfc.OwnerReferences) != 1 {
		t.Errorf("components %+v", hfc)
	}
	schema := &v1alpha1.FirmwareSchema{ObjectMeta: metav1.ObjectMeta{Name: hfs.Status.FirmwareSchema.Name}}
	if !s.user.Read(schema) || schema.Spec.Schema["Turbo"].AllowableValues == nil || len(s.api.Names("firmwareschemas")) != 1 {
		t.Errorf("schema %+v of %v", schema, s.api.Names("firmwareschemas"))
	}
	if n := s.writes(); n != 4*many+1 {
		t.Errorf("%d writes for %d hosts", n, many)
	}
	stop()
	before, loads := s.writes(), s.loaded()
	s.run()
	s.host("last", done(), nil)
	s.shown("last")
	kubetest.Eventually(t, "all are looked at again", func() bool { return s.loaded() >= loads+many+1 })
	if n := s.writes() - before; n != 4 {
		t.Errorf("%d writes after another replica came to lead, want the 4 of a new host", n)
	}
}

// Hosts that are paused, moved away, detached or deleted are left alone.
func TestWhatIsLeftAlone(t *testing.T) {
	s := newSite(t)
	for name, annotation := range map[string]string{"paused": v1alpha1.PausedAnnotation, "moved": v1alpha1.DeleteForMoveAnnotation} {
		s.host(name, done(), func(o *v1alpha1.BareMetalHost) { o.Annotations[annotation] = "" })
	}
	uid := s.host("detached", done(), nil)
	s.mu.Lock()
	h := s.hosts[uid]
	h.Intent.Detached, h.Provisioning.Phase = &event.DetachRequest{}, event.Prepared
	h.Inspection.Done = true
	s.hosts[uid] = h
	s.mu.Unlock()
	s.host("deleted", done(), func(o *v1alpha1.BareMetalHost) { o.Finalizers = []string{"example.org/keep"} })
	s.user.DeleteHost("deleted")
	s.run()
	s.host("other", done(), nil)
	s.shown("other")
	if names := s.api.Names("hostfirmwaresettings"); len(names) != 1 {
		t.Errorf("settings were made: %v", names)
	}
	s.user.Change("paused", func(o *v1alpha1.BareMetalHost) { delete(o.Annotations, v1alpha1.PausedAnnotation) })
	s.shown("paused")
}

// What users made goes with its host. Their wish is told once it can be seen on the
// objects what it comes to.
func TestWishes(t *testing.T) {
	s := newSite(t)
	want := &v1alpha1.HostFirmwareSettings{ObjectMeta: metav1.ObjectMeta{Name: "host-a"}}
	want.Spec.Settings = v1alpha1.DesiredSettingsMap{"Turbo": intstr.FromString("Disabled")}
	policy := &v1alpha1.HostUpdatePolicy{ObjectMeta: metav1.ObjectMeta{Name: "host-a"}}
	policy.Spec.FirmwareSettings = v1alpha1.HostUpdatePolicyOnReboot
	s.user.Create(want, policy)
	uid := s.host("host-a", done(), nil)
	if _, known := s.fw.Wish(uid); known {
		t.Error("a wish is known before anybody looked")
	}
	s.run()
	wished := func(check func(w *event.FirmwareWish) bool) func() bool {
		return func() bool { w, known := s.fw.Wish(uid); return known && check(w) }
	}
	kubetest.Eventually(t, "the wish is known", wished(func(w *event.FirmwareWish) bool {
		return w != nil && w.SettingsInUse && !w.UpdatesInUse && len(w.Settings) == 1 && w.Settings[0] == event.SettingChange{Name: "Turbo", From: "Enabled", To: "Disabled"}
	}))
	hfs := s.settings("host-a")
	if is(hfs.Status.Conditions, "ChangeDetected", hfs.Generation) != "True/Success" || len(hfs.OwnerReferences) != 1 {
		t.Errorf("a wish is known, and its object is %+v", hfs)
	}
	if s.user.Read(policy); len(policy.OwnerReferences) != 1 || policy.OwnerReferences[0].Name != "host-a" {
		t.Errorf("policy %+v", policy.OwnerReferences)
	}
	s.user.Edit(want, func() { want.Spec.Settings["Turbo"] = intstr.FromString("off") })
	kubetest.Eventually(t, "there is no wish any more", wished(func(w *event.FirmwareWish) bool { return w == nil }))
	hfs = s.settings("host-a")
	if is(hfs.Status.Conditions, "Valid", hfs.Generation) != "False/ConfigurationError" {
		t.Errorf("conditions %+v", hfs.Status.Conditions)
	}
	kubetest.Eventually(t, "an Event tells of it", func() bool {
		for _, name := range s.api.Names("events") {
			var e corev1.Event
			s.api.Object("events", namespace, strings.TrimPrefix(name, namespace+"/"), &e)
			if e.Reason == "ValidationFailed" && e.InvolvedObject.Kind == "HostFirmwareSettings" && e.Source.Component == "metal3-hostfirmwaresettings-controller" && strings.Contains(e.Message, "Disabled") {
				return true
			}
		}
		return false
	})
}

// A machine without firmware that can be read gets no objects, and what users made
// for it says why nothing comes of it.
func TestWithoutFirmware(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"none", "unread", "new"} {
		s.user.Create(&v1alpha1.HostFirmwareSettings{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.HostFirmwareSettingsSpec{Settings: v1alpha1.DesiredSettingsMap{}}},
			&v1alpha1.HostFirmwareComponents{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.HostFirmwareComponentsSpec{Updates: []v1alpha1.FirmwareUpdate{}}})
	}
	shown := s.settings("unread")
	shown.Status.Settings = v1alpha1.SettingsMap{"Turbo": "Enabled"}
	if err := kubetest.Client(t, s.api.Config()).Status().Update(t.Context(), shown); err != nil {
		t.Fatal(err)
	}
	s.host("none", event.FirmwareRead{At: time.Now()}, nil)
	s.host("unread", event.FirmwareRead{At: time.Now(), Problem: "the BMC answers 500"}, nil)
	s.host("new", event.FirmwareRead{}, nil)
	s.host("bare", event.FirmwareRead{At: time.Now()}, nil)
	s.run()
	for name, want := range map[string][2]string{"none": {v1alpha1.SupportedCondition, "False/NotSupported"}, "unread": {"Valid", "Unknown/NotRead"}, "new": {"ChangeDetected", "Unknown/NotRead"}} {
		kubetest.Eventually(t, name+" says why", func() bool {
			hfs, hfc := s.settings(name), s.components(name)
			return is(hfs.Status.Conditions, want[0], hfs.Generation) == want[1] && is(hfc.Status.Conditions, want[0], hfc.Generation) == want[1]
		})
	}
	if text := s.settings("none").Status.Conditions[0].Message; !strings.Contains(text, "redfish") {
		t.Errorf("it does not name the backend: %s", text)
	}
	if text := s.settings("unread").Status.Conditions[0].Message; !strings.Contains(text, "500") {
		t.Errorf("it does not say why: %s", text)
	}
	if known := s.settings("unread").Status.Settings; known["Turbo"] != "Enabled" {
		t.Errorf("what was shown before is lost: %v", known)
	}
	if names := s.api.Names("hostfirmwaresettings"); len(names) != 3 {
		t.Errorf("settings were made: %v", names)
	}
}

// While the API is busy with the states of hosts, objects that nobody has made wait;
// those that somebody has made do not.
func TestObjectsOfLessInterestWait(t *testing.T) {
	s := newSite(t)
	s.run()
	s.host("first", done(), nil)
	s.shown("first") // so it runs
	release := s.occupy()
	before := s.loaded()
	s.host("asks-nothing", done(), nil)
	asks := &v1alpha1.HostFirmwareSettings{ObjectMeta: metav1.ObjectMeta{Name: "asks"}, Spec: v1alpha1.HostFirmwareSettingsSpec{Settings: v1alpha1.DesiredSettingsMap{"Turbo": intstr.FromString("Disabled")}}}
	s.user.Create(asks)
	s.host("asks", done(), nil)
	kubetest.Eventually(s, "what is asked is judged", func() bool {
		hfs := s.settings("asks")
		return is(hfs.Status.Conditions, "Valid", hfs.Generation) == "True/Success"
	})
	if s.api.Object("hostfirmwaresettings", namespace, "asks-nothing", &v1alpha1.HostFirmwareSettings{}) {
		t.Error("objects that nobody asked for were made while the API was busy")
	}
	if s.loaded() == before {
		t.Error("no host was looked at")
	}
	release()
	s.shown("asks-nothing")
}

// occupy has all writes to hosts that may be made at once under way until release.
func (s *site) occupy() (release func()) {
	s.Helper()
	s.user.Create(&v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: "slow"}})
	var o *v1alpha1.BareMetalHost
	kubetest.Eventually(s, "the host is seen", func() bool {
		o = s.cluster.Hosts.OfName(types.NamespacedName{Namespace: namespace, Name: "slow"})
		return o != nil
	})
	held, began := make(chan struct{}), make(chan struct{})
	s.api.Fault(func(w kubetest.Write) int {
		if w.Resource == "baremetalhosts" && w.Subresource == "status" {
			close(began)
			<-held
		}
		return 0
	})
	written := make(chan error, 1)
	go func() {
		_, err := s.cluster.WriteStatus(s.Context(), o, v1alpha1.BareMetalHostStatus{OperationalStatus: v1alpha1.OperationalStatusOK})
		written <- err
	}()
	<-began
	return func() {
		close(held)
		if err := <-written; err != nil {
			s.Error(err)
		}
	}
}
