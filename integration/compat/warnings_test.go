package compat_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/pkg/kube"
)

// user is a client that remembers what it was warned of.
type user struct {
	client.Client
	mu   sync.Mutex
	told []string
}

func newUser(t *testing.T, k *lab.Kube) *user {
	t.Helper()
	u := &user{}
	config := rest.CopyConfig(k.Config)
	config.WarningHandlerWithContext = u
	var err error
	if u.Client, err = client.New(config, client.Options{Scheme: lab.Scheme()}); err != nil {
		t.Fatal(err)
	}
	return u
}

// HandleWarningHeaderWithContext takes a warning of the API.
func (u *user) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.told = append(u.told, text)
}

// since are the warnings since the last call.
func (u *user) since() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	told := u.told
	u.told = nil
	return told
}

// isTold fails the test unless the user was told just that, each in part.
func (u *user) isTold(t *testing.T, want ...string) {
	t.Helper()
	told := u.since()
	if !slices.EqualFunc(want, told, func(want, told string) bool { return strings.Contains(told, want) }) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// seen waits until the webhook knows a host.
func seen(t *testing.T, hosts *kube.Hosts, h *host) {
	t.Helper()
	lab.Eventually(t, patience, "see the host", func() error {
		if hosts.Get(string(h.UID)) == nil {
			return errors.New("not yet")
		}
		return nil
	})
}

func TestUsersAreWarned(t *testing.T) {
	k, hosts := guarded(t)
	u, namespace := newUser(t, k), k.Namespace(t)
	in := func(h *host) *host { h.Namespace = namespace; return h }
	first := in(newHost(named("first"), bmc("redfish://192.0.2.77/redfish/v1/Systems/1"), bootMAC("00:00:5e:00:53:77")))
	if err := u.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	u.isTold(t)
	seen(t, hosts, first)

	second := in(newHost(named("second"), bmc("redfish+https://192.0.2.77:443/redfish/v1/Systems/1"), bootMAC("00:00:5E:00:53:77"), annotated("baremetalhost.metal3.io/pause", "")))
	if err := u.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	u.isTold(t, "annotation baremetalhost.metal3.io/pause is not known",
		"host "+namespace+"/first has the same BMC", "host "+namespace+"/first has the same address 00:00:5e:00:53:77")

	second.Labels = map[string]string{"rack": "7"}
	if err := u.Update(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	u.isTold(t) // whoever adds a label has heard nothing of it before, and need not now
	second.Spec.Description = "the same machine as first"
	if err := u.Update(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if told := u.since(); len(told) != 3 {
		t.Errorf("whoever changes the specification is told again, not %q", told)
	}

	policy := &v1alpha1.HostDeployPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}}
	policy.Spec.HostClaimNamespaces = &v1alpha1.HostClaimNamespaces{NameMatches: "("}
	if err := u.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	u.isTold(t, "until it is corrected the policy lets nobody in")

	const url = "http://u:hunter2@192.0.2.80/f"
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "logins"}
	for _, o := range []client.Object{
		&v1alpha1.DataImage{ObjectMeta: meta, Spec: v1alpha1.DataImageSpec{URL: url}},
		&v1alpha1.BMCEventSubscription{ObjectMeta: meta, Spec: v1alpha1.BMCEventSubscriptionSpec{HostName: "first", Destination: url}},
		&v1alpha1.HostFirmwareComponents{ObjectMeta: meta, Spec: v1alpha1.HostFirmwareComponentsSpec{
			Updates: []v1alpha1.FirmwareUpdate{{Component: "bios", URL: url}},
		}},
		&v1alpha1.HostClaim{ObjectMeta: meta, Spec: v1alpha1.HostClaimSpec{Image: &v1alpha1.Image{URL: url, Checksum: "x"}}},
	} {
		if err := u.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		u.isTold(t, "holds a login, with which it is not used")
	}
}

// A host that somebody uses is deleted only by whoever means it. The guard is
// off unless it is asked for.
func TestUsedHostsAreGuarded(t *testing.T) {
	k, _ := guarded(t)
	namespace := k.Namespace(t)
	h := store(t, k, namespace, newHost(func(h *host) {
		h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Metal3Machine", Namespace: namespace, Name: "m"}
	}))
	refusal{"spec.consumerRef", "the host is used by Metal3Machine " + namespace + "/m"}.check(t, k.Client.Delete(t.Context(), h))
	annotated(v1alpha1.AllowDeletionAnnotation, "")(h)
	if err := k.Client.Update(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if err := k.Client.Delete(t.Context(), h); err != nil {
		t.Errorf("with the annotation: %v", err)
	}
	free := store(t, k, namespace, newHost())
	if err := k.Client.Delete(t.Context(), free); err != nil {
		t.Errorf("a free host: %v", err)
	}
}

func TestUsedAttachmentsStay(t *testing.T) {
	k, hosts := guarded(t)
	u, namespace := newUser(t, k), k.Namespace(t)
	a := store(t, k, namespace, &v1alpha1.HostNetworkAttachment{Spec: v1alpha1.HostNetworkAttachmentSpec{Mode: "access", NativeVLAN: 7}})
	h := store(t, k, namespace, newHost(nics(v1alpha1.NetworkInterface{
		Name: "eth0", HostNetworkAttachment: v1alpha1.HostNetworkAttachmentRef{Name: a.Name},
	})))
	seen(t, hosts, h)
	where := namespace + "/" + h.Name + "[eth0]"

	t.Run("N3 what is used is not changed", func(t *testing.T) {
		other := a.DeepCopy()
		other.Spec.NativeVLAN = 8
		refusal{"spec", "HostNetworkAttachment spec is immutable while referenced by BMH interfaces: " + where}.check(t, u.Update(t.Context(), other))
		u.isTold(t)
		a.Labels = map[string]string{"a": "b"}
		if err := u.Update(t.Context(), a); err != nil {
			t.Errorf("a label: %v", err)
		}
	})
	t.Run("N4 what is used is not deleted", func(t *testing.T) {
		refusal{"metadata", "cannot delete attachment while referenced by BMH interfaces: " + where}.check(t, u.Delete(t.Context(), a))
		u.isTold(t, "This attachment is referenced by: "+where)
	})

	if err := k.Client.Delete(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	lab.Eventually(t, patience, "change what is no longer used", func() error {
		a.Spec.NativeVLAN = 8
		return u.Update(t.Context(), a)
	})
	if err := u.Delete(t.Context(), a); err != nil {
		t.Errorf("delete what is no longer used: %v", err)
	}
}
