package kubetest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
)

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

// Conform is what metalbus relies on in a Kubernetes API, seen through pkg/kube.
// The namespace must be there and empty.
func Conform(t *testing.T, access *rest.Config, namespace string) {
	t.Helper()
	tests := map[string]func(*bench){
		"hosts are seen as they come, change and go":              (*bench).hostsAreSeen,
		"a status is written only over the one that was seen":     (*bench).statusIsGuarded,
		"a status patch makes the status what was asked":          (*bench).statusIsExact,
		"an edit touches our own keys only":                       (*bench).editsAreOurs,
		"an annotation that was set anew is not taken away":       (*bench).droppedIsGuarded,
		"a finalizer keeps the host until it is released":         (*bench).finalizerKeeps,
		"a Secret is claimed in one write that keeps others'":     (*bench).secretIsClaimed,
		"a Secret of two hosts is released by the last":           (*bench).secretIsShared,
		"hosts hear of Secrets that appear and change":            (*bench).secretsNudge,
		"a Secret that moves with its host is as it was":          (*bench).movingSecret,
		"HardwareData is made, replaced and released":             (*bench).hardwareData,
		"news that are told twice make one Event":                 (*bench).eventsOnce,
		"one replica leads, and another takes over when it stops": (*bench).leadership,
	}
	c := Client(t, access)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(&bench{t: t, Client: c, access: access, namespace: namespace}) })
	}
}

// bench is a user's client, and helpers.
type bench struct {
	client.Client
	t         *testing.T
	access    *rest.Config
	namespace string
}

// cluster is a Cluster that watches, for the time of the test.
func (b *bench) cluster() *kube.Cluster {
	b.t.Helper()
	c := b.open("a")
	b.during(c.Watch)
	if err := c.Hosts.Synced(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return c
}

func (b *bench) open(identity string) *kube.Cluster {
	b.t.Helper()
	cfg := kube.Config{Namespaces: []string{b.namespace}, Identity: identity, LeaseNamespace: b.namespace}
	c, err := kube.New(b.access, cfg, kube.Options{
		Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Now: time.Now, //nolint:forbidigo // the clock of the API that is tested
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// during runs f until the test ends.
func (b *bench) during(f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	b.t.Cleanup(stop)
	return stop
}

// serve looks at hosts and tells the names of those it looked at.
func (b *bench) serve(c *kube.Cluster) <-chan string {
	looked := make(chan string, 1000)
	b.during(func(ctx context.Context) {
		_ = c.Serve(ctx, 4, func(_ context.Context, r kube.Ref) (time.Duration, error) {
			looked <- r.Name
			return 0, nil
		})
	})
	return looked
}

func (b *bench) host(name string) *v1alpha1.BareMetalHost {
	b.t.Helper()
	o := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	o.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish://192.0.2.10", CredentialsName: name + "-bmc"}
	o.Spec.BootMACAddress = "00:00:5e:00:53:01"
	b.must(b.Create(b.t.Context(), o))
	return o
}

func (b *bench) secret(name string) *corev1.Secret {
	b.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, StringData: map[string]string{"username": "admin", "password": "secret"}}
	b.must(b.Create(b.t.Context(), s))
	return s
}

func (b *bench) read(o client.Object) {
	b.t.Helper()
	b.must(b.Get(b.t.Context(), client.ObjectKeyFromObject(o), o))
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// eventually waits for a condition.
func (b *bench) eventually(what string, ok func() bool) {
	b.t.Helper()
	Eventually(b.t, what, ok)
}

// Eventually waits until ok holds, and ends the test if it does not in time.
func Eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	ticks := time.NewTicker(2 * time.Millisecond)
	defer ticks.Stop()
	for late := time.After(patience); !ok(); {
		select {
		case <-ticks.C:
		case <-late:
			tb.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// seen waits until the cluster has seen the host as the API has it.
func (b *bench) seen(c *kube.Cluster, o *v1alpha1.BareMetalHost) *v1alpha1.BareMetalHost {
	b.t.Helper()
	b.read(o)
	b.eventually("the host is seen as it is", func() bool {
		got := c.Hosts.Get(string(o.UID))
		return got != nil && got.ResourceVersion == o.ResourceVersion
	})
	return c.Hosts.Get(string(o.UID))
}

func (b *bench) hostsAreSeen() {
	t := b.t
	before := b.host("seen-before")
	c := b.cluster()
	if c.Hosts.Get(string(before.UID)) == nil {
		t.Error("a host that was there is not seen once synced")
	}
	after := b.host("seen-after")
	got := b.seen(c, after)
	if got.Spec.BMC.CredentialsName != "seen-after-bmc" || got.ManagedFields != nil {
		t.Errorf("seen as %+v", got)
	}
	after.Spec.Online = true
	b.must(b.Update(t.Context(), after))
	if got = b.seen(c, after); !got.Spec.Online || got.Generation != 2 {
		t.Errorf("the change is not seen: %+v", got)
	}
	live, err := c.Read(t.Context(), kube.RefOf(after))
	b.must(err)
	if diff := cmp.Diff(got.Spec, live.Spec); diff != "" {
		t.Error(diff)
	}
	b.must(b.Delete(t.Context(), after))
	b.eventually("the end is seen", func() bool { return c.Hosts.Get(string(after.UID)) == nil })
	if _, err := c.Read(t.Context(), kube.RefOf(after)); !errors.Is(err, kube.ErrGone) {
		t.Errorf("reading a host that is gone: %v", err)
	}
}

func (b *bench) statusIsGuarded() {
	t := b.t
	c := b.cluster()
	o := b.seen(c, b.host("guarded"))
	status := v1alpha1.BareMetalHostStatus{Provisioning: v1alpha1.ProvisionStatus{State: v1alpha1.StateRegistering}}
	first, err := c.WriteStatus(t.Context(), o, status)
	b.must(err)
	if got := c.Hosts.Get(string(o.UID)); got.Status.Provisioning.State != v1alpha1.StateRegistering {
		t.Error("an own write is not seen at once")
	}
	if first.Host.Generation != o.Generation {
		t.Errorf("generation went from %d to %d", o.Generation, first.Host.Generation)
	}
	status.Provisioning.State = v1alpha1.StateInspecting
	if _, err := c.WriteStatus(t.Context(), o, status); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("a write over an older status: %v", err)
	}
	same, err := c.WriteStatus(t.Context(), first.Host, first.Host.Status)
	b.must(err)
	if same.Host.ResourceVersion != first.Host.ResourceVersion {
		t.Error("an equal status was written")
	}
}

func (b *bench) statusIsExact() {
	t := b.t
	c := b.cluster()
	o := b.seen(c, b.host("exact"))
	at := metav1.NewTime(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	first := v1alpha1.BareMetalHostStatus{
		OperationalStatus: v1alpha1.OperationalStatusOK, LastUpdated: &at, PoweredOn: true, ErrorCount: 2,
		Provisioning: v1alpha1.ProvisionStatus{
			State: v1alpha1.StatePreparing, ID: "node", RAID: &v1alpha1.RAIDConfig{SoftwareRAIDVolumes: []v1alpha1.SoftwareRAIDVolume{}},
			Image: v1alpha1.Image{URL: "http://192.0.2.80/os.iso"}, RootDeviceHints: &v1alpha1.RootDeviceHints{DeviceName: "/dev/sda"},
		},
		OperationHistory: v1alpha1.OperationHistory{Register: v1alpha1.OperationMetric{Start: at}},
		HardwareDetails: &v1alpha1.HardwareDetails{
			RAMMebibytes: 1024, Hostname: "a", CPU: v1alpha1.CPU{Arch: "x86_64", Count: 4},
			NIC: []v1alpha1.NIC{{Name: "eth0", IP: "192.0.2.1"}, {Name: "eth0", IP: "2001:db8::1"}},
		},
		Conditions: []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "NotProvisioned", LastTransitionTime: at}},
	}
	second := *first.DeepCopy()
	second.PoweredOn, second.ErrorCount = false, 0
	second.Provisioning.Image, second.Provisioning.RootDeviceHints, second.Provisioning.RAID = v1alpha1.Image{}, nil, nil
	second.OperationHistory.Register = v1alpha1.OperationMetric{}
	second.HardwareDetails = &v1alpha1.HardwareDetails{RAMMebibytes: 2048, NIC: []v1alpha1.NIC{{Name: "eth1"}}}
	second.Conditions = nil
	third := *second.DeepCopy()
	third.HardwareDetails = nil
	for i, want := range []v1alpha1.BareMetalHostStatus{first, second, third} {
		w, err := c.WriteStatus(t.Context(), o, want)
		b.must(err)
		if len(w.Dropped) > 0 {
			t.Errorf("status %d: dropped %v", i+1, w.Dropped)
		}
		live := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}
		b.read(live)
		times := cmp.Comparer(func(a, b metav1.Time) bool { return a.Equal(&b) })
		if diff := cmp.Diff(want, live.Status, times, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("status %d: (-want +got)\n%s", i+1, diff)
		}
		o = w.Host
	}
}

func (b *bench) editsAreOurs() {
	t := b.t
	c := b.cluster()
	o := b.host("edited")
	seen := b.seen(c, o)
	o.Annotations = map[string]string{"example.com/theirs": "1"}
	b.must(b.Update(t.Context(), o)) // meanwhile
	edit := kube.Edit{Set: map[string]string{"metalbus.io/ours": "2"}, Architecture: "x86_64"}
	if _, err := c.EditHost(t.Context(), seen, edit); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("editing what somebody else has changed: %v", err)
	}
	now, err := c.EditHost(t.Context(), b.seen(c, o), edit)
	b.must(err)
	if diff := cmp.Diff(map[string]string{"example.com/theirs": "1", "metalbus.io/ours": "2"}, now.Annotations); diff != "" {
		t.Error(diff)
	}
	if now.Spec.Architecture != "x86_64" || now.Spec.BMC.CredentialsName == "" {
		t.Errorf("specification is %+v", now.Spec)
	}
	b.must(b.Delete(t.Context(), o))
	another := b.host("edited")
	if _, err := c.EditHost(t.Context(), seen, kube.Edit{Set: map[string]string{"metalbus.io/ours": "3"}}); !errors.Is(err, kube.ErrConflict) && !errors.Is(err, kube.ErrGone) {
		t.Errorf("editing a host that was made anew: %v", err)
	}
	b.read(another)
	if len(another.Annotations) > 0 {
		t.Errorf("another host got %v", another.Annotations)
	}
}

func (b *bench) droppedIsGuarded() {
	t := b.t
	c := b.cluster()
	o := b.host("dropped")
	o.Annotations = map[string]string{v1alpha1.RebootAnnotationPrefix: ""}
	b.must(b.Update(t.Context(), o))
	seen := b.seen(c, o)
	o.Annotations = map[string]string{v1alpha1.RebootAnnotationPrefix: `{"mode":"hard"}`}
	b.must(b.Update(t.Context(), o))
	drop := kube.Edit{Drop: []string{v1alpha1.RebootAnnotationPrefix}}
	if _, err := c.EditHost(t.Context(), seen, drop); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("taking away what was set anew: %v", err)
	}
	now, err := c.EditHost(t.Context(), b.seen(c, o), drop)
	b.must(err)
	if len(now.Annotations) > 0 {
		t.Errorf("left: %v", now.Annotations)
	}
}

func (b *bench) finalizerKeeps() {
	t := b.t
	c := b.cluster()
	o := b.host("kept")
	o.Finalizers = []string{"example.com/theirs"}
	b.must(b.Update(t.Context(), o))
	kept, err := c.AddFinalizer(t.Context(), b.seen(c, o))
	b.must(err)
	b.read(o)
	if diff := cmp.Diff([]string{"example.com/theirs", v1alpha1.BareMetalHostFinalizer}, o.Finalizers); diff != "" {
		t.Error(diff)
	}
	if err := c.ReleaseHost(t.Context(), b.seen(c, o)); err != nil {
		t.Error(err)
	}
	if err := c.ReleaseHost(t.Context(), kept); !errors.Is(err, kube.ErrConflict) {
		t.Errorf("releasing a host that was seen before a change: %v", err)
	}
	b.read(o)
	o.Finalizers = []string{v1alpha1.BareMetalHostFinalizer}
	b.must(b.Update(t.Context(), o))
	b.must(b.Delete(t.Context(), o))
	leaving := b.seen(c, o)
	if leaving.DeletionTimestamp == nil {
		t.Error("it is not being deleted")
	}
	b.must(c.ReleaseHost(t.Context(), leaving))
	b.eventually("it is gone", func() bool { return c.Hosts.Get(string(o.UID)) == nil })
}

func (b *bench) secretIsClaimed() {
	t := b.t
	s := b.secret("claimed-bmc")
	s.Labels = map[string]string{v1alpha1.LabelEnvironmentName: "theirs", "x": "y"}
	s.Finalizers = []string{"example.com/theirs"}
	controls := true
	other := b.host("other")
	s.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "BareMetalHost", Name: "other", UID: other.UID, Controller: &controls}}
	b.must(b.Update(t.Context(), s))
	c := b.cluster()
	b.serve(c)
	o := b.seen(c, b.host("claimed"))
	version, err := c.ClaimSecret(t.Context(), o, "claimed-bmc")
	b.must(err)
	b.read(s)
	if s.ResourceVersion != version {
		t.Errorf("version %q, want %q", version, s.ResourceVersion)
	}
	if diff := cmp.Diff(map[string]string{v1alpha1.LabelEnvironmentName: "theirs", "x": "y"}, s.Labels); diff != "" {
		t.Error("labels", diff)
	}
	slices.Sort(s.Finalizers)
	if diff := cmp.Diff([]string{v1alpha1.SecretFinalizer, "example.com/theirs"}, s.Finalizers); diff != "" {
		t.Error("finalizers", diff)
	}
	if len(s.OwnerReferences) != 2 || !slices.ContainsFunc(s.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == o.UID && r.Controller == nil }) {
		t.Errorf("owners are %+v", s.OwnerReferences)
	}
	if again, err := c.ClaimSecret(t.Context(), o, "claimed-bmc"); err != nil || again != version {
		t.Errorf("claiming it again: version %q, %v", again, err)
	}
	if version, err := c.ClaimSecret(t.Context(), o, "nowhere"); err != nil || version != "" {
		t.Errorf("a Secret that is not there: version %q, %v", version, err)
	}
	b.must(c.ReleaseSecret(t.Context(), o, "claimed-bmc"))
	b.must(c.ReleaseSecret(t.Context(), o, "nowhere"))
	b.read(s)
	if diff := cmp.Diff([]string{"example.com/theirs"}, s.Finalizers); diff != "" {
		t.Error("finalizers after the release", diff)
	}
}

func (b *bench) secretIsShared() {
	t := b.t
	b.secret("shared-bmc")
	c := b.cluster()
	b.serve(c)
	first, second := b.host("shared"), b.host("shared-too")
	second.Spec.BMC.CredentialsName = "shared-bmc"
	b.must(b.Update(t.Context(), second))
	one, two := b.seen(c, first), b.seen(c, second)
	for _, o := range []*v1alpha1.BareMetalHost{one, two} {
		if _, err := c.ClaimSecret(t.Context(), o, "shared-bmc"); err != nil {
			t.Fatal(err)
		}
	}
	finalizers := func() int {
		var s corev1.Secret
		b.must(b.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "shared-bmc"}, &s))
		return len(s.Finalizers)
	}
	b.must(c.ReleaseSecret(t.Context(), one, "shared-bmc"))
	if finalizers() != 1 {
		t.Error("the Secret was released while another host names it")
	}
	b.must(b.Delete(t.Context(), first))
	b.eventually("its end is seen", func() bool { return c.Hosts.Get(string(first.UID)) == nil })
	b.must(c.ReleaseSecret(t.Context(), two, "shared-bmc"))
	if finalizers() != 0 {
		t.Error("the Secret was not released by the last")
	}
}

func (b *bench) secretsNudge() {
	t := b.t
	c := b.cluster()
	looked := b.serve(c)
	b.host("nudged")
	next := func(what string) {
		t.Helper()
		for late := time.After(patience); ; {
			select {
			case name := <-looked:
				if name == "nudged" { // not a host of another test
					return
				}
			case <-late:
				t.Fatalf("no look %s", what)
			}
		}
	}
	next("at the new host")
	s := b.secret("nudged-bmc")
	next("when its Secret appeared")
	s.StringData = map[string]string{"password": "another"}
	b.must(b.Update(t.Context(), s))
	next("when its Secret changed")
	b.must(b.Delete(t.Context(), s))
	next("when its Secret went")
}

func (b *bench) movingSecret() {
	t := b.t
	c := b.cluster()
	b.serve(c)
	s := b.secret("moving-bmc")
	o := b.seen(c, b.host("moving"))
	before, err := c.ClaimSecret(t.Context(), o, "moving-bmc")
	b.must(err)
	b.read(s)
	s.Annotations = map[string]string{v1alpha1.DeleteForMoveAnnotation: ""}
	b.must(b.Update(t.Context(), s))
	b.must(b.Delete(t.Context(), s))
	b.read(s)
	s.Finalizers = nil
	b.must(b.Update(t.Context(), s))
	b.eventually("the Secret is gone", func() bool {
		return client.IgnoreNotFound(b.Get(t.Context(), client.ObjectKeyFromObject(s), s)) == nil
	})
	version, err := c.ClaimSecret(t.Context(), o, "moving-bmc")
	b.must(err)
	if version == "" {
		t.Errorf("the host hears that its Secret is missing; it had version %s", before)
	}
}

func (b *bench) hardwareData() {
	t := b.t
	c := b.cluster()
	o := b.seen(c, b.host("hardware"))
	data := &v1alpha1.HardwareData{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "hardware"}}
	for _, hw := range []*v1alpha1.HardwareDetails{
		{Hostname: "a", CPU: v1alpha1.CPU{Arch: "x86_64"}}, {RAMMebibytes: 1024},
	} {
		b.must(c.PutHardware(t.Context(), o, hw))
		b.read(data)
		if diff := cmp.Diff(hw, data.Spec.HardwareDetails, cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	}
	if len(data.OwnerReferences) != 1 || !metav1.IsControlledBy(data, o) || !slices.Contains(data.Finalizers, v1alpha1.HardwareDataFinalizer) {
		t.Errorf("metadata is %+v", data.ObjectMeta)
	}
	b.must(c.ReleaseHardware(t.Context(), o))
	b.read(data)
	if len(data.Finalizers) > 0 {
		t.Errorf("finalizers %v are left", data.Finalizers)
	}
	hw, err := c.ReadHardware(t.Context(), b.namespace, "hardware")
	if err != nil || hw == nil || hw.RAMMebibytes != 1024 {
		t.Errorf("read back %+v, %v", hw, err)
	}
	if hw, err := c.ReadHardware(t.Context(), b.namespace, "nowhere"); hw != nil || err != nil {
		t.Errorf("HardwareData that is not there: %+v, %v", hw, err)
	}
}

func (b *bench) eventsOnce() {
	t := b.t
	c := b.cluster()
	o := b.seen(c, b.host("announced"))
	for range 2 {
		c.Announcer.Tell(o, kube.News{ID: "7/PowerOn", Reason: "PowerOn", Message: "Host powered on", At: o.CreationTimestamp.Time})
	}
	c.Announcer.Tell(o, kube.News{ID: "8/RegistrationError", Reason: "RegistrationError", Message: "no answer", Warning: true, At: o.CreationTimestamp.Time})
	b.during(c.Announcer.Run)
	var events corev1.EventList
	b.eventually("there are two Events", func() bool {
		b.must(b.List(t.Context(), &events, client.InNamespace(b.namespace)))
		events.Items = slices.DeleteFunc(events.Items, func(e corev1.Event) bool { return e.InvolvedObject.Name != "announced" })
		return len(events.Items) == 2
	})
	kinds := map[string]string{}
	for _, e := range events.Items {
		kinds[e.Reason] = e.Type
		if e.InvolvedObject.UID != o.UID || e.Source.Component != "metal3-baremetal-controller" {
			t.Errorf("Event is %+v", e)
		}
	}
	if diff := cmp.Diff(map[string]string{"PowerOn": "Normal", "RegistrationError": "Warning"}, kinds); diff != "" {
		t.Error(diff)
	}
}

func (b *bench) leadership() {
	t := b.t
	leading := make(chan string, 2)
	lead := func(identity string) (stop func()) {
		c := b.open(identity)
		return b.during(func(ctx context.Context) {
			err := c.Lead(ctx, "conform", func(ctx context.Context) error {
				leading <- identity
				<-ctx.Done()
				return ctx.Err()
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	leader := func() string {
		t.Helper()
		select {
		case who := <-leading:
			return who
		case <-time.After(2 * patience):
			t.Fatal("nobody leads")
			return ""
		}
	}
	stop := lead("one")
	if who := leader(); who != "one" {
		t.Fatalf("%s leads", who)
	}
	lead("two")
	stop()
	if who := leader(); who != "two" {
		t.Fatalf("%s leads", who)
	}
	select {
	case who := <-leading:
		t.Errorf("%s leads as well", who)
	default:
	}
}
