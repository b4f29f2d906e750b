package compat_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/pkg/kube/companion"
	"github.com/metalbus/metalbus/pkg/kube/switches"
)

// accompany runs the controllers of companion kinds, as one of several
// replicas, until the test ends.
func accompany(t *testing.T, k *lab.Kube, cfg companion.Config) {
	t.Helper()
	cluster := newCluster(t, k.Config)
	all, err := companion.New(cfg, cluster, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go cluster.Watch(ctx)
	go func() { done <- all.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// available makes a host that is ready to be used.
func available(t *testing.T, k *lab.Kube, namespace string) *host {
	t.Helper()
	return store(t, k, namespace, newHost(func(h *host) {
		h.Status.Provisioning.State, h.Status.OperationalStatus = v1alpha1.StateAvailable, v1alpha1.OperationalStatusOK
		h.Status.PoweredOn = true
	}))
}

func letIn(t *testing.T, k *lab.Kube, hosts, claims string) {
	t.Helper()
	store(t, k, hosts, &v1alpha1.HostDeployPolicy{Spec: v1alpha1.HostDeployPolicySpec{
		HostClaimNamespaces: &v1alpha1.HostClaimNamespaces{HasLabels: []v1alpha1.NameValuePair{{Name: corev1.LabelMetadataName, Value: claims}}},
	}})
}

// shares are how many claims of a namespace say what, and who has which host.
func shares(t *testing.T, k *lab.Kube, hosts, claims string) (reasons map[string]int, owners map[string]string) {
	t.Helper()
	var all v1alpha1.HostClaimList
	if err := k.Client.List(t.Context(), &all, client.InNamespace(claims)); err != nil {
		t.Fatal(err)
	}
	reasons, owners = map[string]int{}, map[string]string{}
	for _, c := range all.Items {
		if condition := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.AssociatedCondition); condition != nil {
			reasons[condition.Reason]++
		}
	}
	var machines v1alpha1.BareMetalHostList
	if err := k.Client.List(t.Context(), &machines, client.InNamespace(hosts)); err != nil {
		t.Fatal(err)
	}
	for _, h := range machines.Items {
		if ref := h.Spec.ConsumerRef; ref != nil {
			owners[ref.Name] += h.Name
		}
	}
	return reasons, owners
}

// settled waits until the claims say that.
func settled(t *testing.T, k *lab.Kube, hosts, claims string, want map[string]int) map[string]string {
	t.Helper()
	var owners map[string]string
	lab.Eventually(t, patience, "see the claims settled", func() error {
		var got map[string]int
		got, owners = shares(t, k, hosts, claims)
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	return owners
}

// B32 on a real API: twenty claims want ten hosts of two replicas at once. Each
// host that comes free goes to the next one without a wait.
func TestClaimsShareHosts(t *testing.T) {
	k := shared.StartKube(t, t.TempDir())
	hosts, claims := k.Namespace(t), k.Namespace(t)
	letIn(t, k, hosts, claims)
	for range 10 {
		available(t, k, hosts)
	}
	for range 20 {
		store(t, k, claims, &v1alpha1.HostClaim{})
	}
	for range 2 {
		accompany(t, k, companion.Config{HostClaims: true})
	}
	const has, waits = v1alpha1.BareMetalHostAssociatedReason, v1alpha1.NoBareMetalHostReason
	owners := settled(t, k, hosts, claims, map[string]int{has: 10, waits: 10})
	if len(owners) != 10 {
		t.Errorf("ten hosts have %d claims: %v", len(owners), owners)
	}
	for left := 19; left > 17; left-- {
		for name := range owners {
			if err := k.Client.Delete(t.Context(), &v1alpha1.HostClaim{ObjectMeta: metav1.ObjectMeta{Namespace: claims, Name: name}}); err != nil {
				t.Fatal(err)
			}
			break
		}
		begin := time.Now()
		owners = settled(t, k, hosts, claims, map[string]int{has: 10, waits: left - 10})
		if took := time.Since(begin); took > 20*time.Second || len(owners) != 10 {
			t.Errorf("the host went on after %s, and %d claims have one", took, len(owners))
		}
	}
}

func TestClaimWaitsForAPolicy(t *testing.T) {
	k := shared.StartKube(t, t.TempDir())
	hosts, claims := k.Namespace(t), k.Namespace(t)
	h, claim := available(t, k, hosts), store(t, k, claims, &v1alpha1.HostClaim{})
	accompany(t, k, companion.Config{HostClaims: true})
	settled(t, k, hosts, claims, map[string]int{v1alpha1.NoBareMetalHostReason: 1})
	letIn(t, k, hosts, claims)
	settled(t, k, hosts, claims, map[string]int{v1alpha1.BareMetalHostAssociatedReason: 1})

	if err := k.Client.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
		t.Fatal(err)
	}
	want := &v1alpha1.ObjectReference{Namespace: hosts, Name: h.Name}
	if diff := cmp.Diff(want, claim.Status.BareMetalHost); diff != "" || !claim.Status.PoweredOn {
		t.Errorf("status: %s, powered on %t", diff, claim.Status.PoweredOn)
	}
	ready := meta.FindStatusCondition(claim.Status.Conditions, v1alpha1.ReadyCondition)
	if ready == nil || ready.Reason != v1alpha1.UnknownReportedReason || !strings.Contains(ready.Message, "Set them on the host") {
		t.Errorf("Ready: %+v", ready)
	}
	if err := k.Client.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	lab.Eventually(t, patience, "have the host back", func() error {
		if err := k.Client.Get(t.Context(), client.ObjectKeyFromObject(h), h); err != nil {
			return err
		}
		if h.Spec.ConsumerRef != nil {
			return fmt.Errorf("%+v", h.Spec.ConsumerRef)
		}
		return nil
	})
}

func TestSwitchesAreWritten(t *testing.T) {
	k := shared.StartKube(t, t.TempDir())
	namespace := k.Namespace(t)
	accompany(t, k, companion.Config{Switches: switches.Config{Enabled: true, ConfigSecret: "configs", KeySecret: "keys", KeyFolder: "/etc/keys"}})
	s := store(t, k, namespace, &v1alpha1.BareMetalSwitch{Spec: v1alpha1.BareMetalSwitchSpec{
		Address: "192.0.2.20", MACAddress: "00:00:5e:00:53:20", DeviceType: "netmiko_cisco_ios", Credentials: &corev1.SecretReference{Name: "login"},
	}})
	valid := func(reason string) {
		t.Helper()
		lab.Eventually(t, patience, "see it be "+reason, func() error {
			if err := k.Client.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
				return err
			}
			if c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.SwitchValidCondition); c == nil || c.Reason != reason {
				return fmt.Errorf("%+v", c)
			}
			return nil
		})
	}
	valid(v1alpha1.SwitchCredentialErrorReason)
	secret := func(name string, data map[string]string) *corev1.Secret {
		o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, StringData: data}
		if err := k.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	secret("login", map[string]string{"username": "admin", "ssh-privatekey": "KEY"})
	valid(v1alpha1.SwitchConfigurationErrorReason)
	configs, keys := secret("configs", nil), secret("keys", nil)
	valid(v1alpha1.SwitchReconciledReason)
	for o, want := range map[*corev1.Secret]string{configs: "[switch:" + s.Name + "]", keys: "KEY"} {
		if err := k.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprintf("%s", o.Data); !strings.Contains(text, want) {
			t.Errorf("%s: %s", o.Name, text)
		}
	}
}

// Objects whose wishes nobody carries out say so.
func TestWhatIsNotBuiltSaysSo(t *testing.T) {
	k := shared.StartKube(t, t.TempDir())
	namespace := k.Namespace(t)
	for _, o := range samples(namespace) {
		o.SetNamespace(namespace)
		if err := k.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	accompany(t, k, companion.Config{})
	key := client.ObjectKey{Namespace: namespace, Name: "rack-1"}
	const yet, flag = "no service of metalbus does that yet", "Start the projector with --"
	for name, tt := range map[string]struct {
		object client.Object
		says   string
		text   func(client.Object) string
	}{
		"PreprovisioningImage": {&v1alpha1.PreprovisioningImage{}, flag + "build-preprov-image", func(o client.Object) string { return notice(o.(*v1alpha1.PreprovisioningImage).Status.Conditions) }},
		"HostClaim":            {&v1alpha1.HostClaim{}, flag + "hostclaims", func(o client.Object) string { return notice(o.(*v1alpha1.HostClaim).Status.Conditions) }},
		"BareMetalSwitch":      {&v1alpha1.BareMetalSwitch{}, flag + "ironic-networking-enabled", func(o client.Object) string { return notice(o.(*v1alpha1.BareMetalSwitch).Status.Conditions) }},
	} {
		t.Run(name, func(t *testing.T) {
			lab.Eventually(t, patience, "say so", func() error {
				if err := k.Client.Get(t.Context(), key, tt.object); err != nil {
					return err
				}
				if text := tt.text(tt.object); !strings.Contains(text, tt.says) {
					return fmt.Errorf("it says %q", text)
				}
				return nil
			})
		})
	}
}

func notice(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, v1alpha1.SupportedCondition)
	if c == nil || c.Status != metav1.ConditionFalse {
		return ""
	}
	return c.Message
}
