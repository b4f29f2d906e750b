package projector_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube/kubetest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func TestANewHostComesToAvailable(t *testing.T) {
	s := newSite(t)
	s.cfg.StatusDelay = time.Second // so that the power is known before it is over
	s.start("a")
	s.apply("host-a")
	h := s.known("host-a")
	o := s.host("host-a")
	if len(o.Finalizers) != 1 {
		t.Errorf("finalizers are %v", o.Finalizers)
	}
	if got := h.Intent.Spec.BMC.Address; strings.Contains(got, "canary") {
		t.Errorf("the bus has the address %s", got)
	}
	secret := &corev1.Secret{}
	s.api.Object("secrets", namespace, "host-a-bmc", secret)
	if h.Intent.Credentials.Version != secret.ResourceVersion || secret.Labels[v1alpha1.LabelEnvironmentName] == "" || len(secret.OwnerReferences) != 1 {
		t.Errorf("credentials %+v, the Secret is %+v", h.Intent.Credentials, secret.ObjectMeta)
	}
	s.available("host-a")
	s.happens("host-a", lifecycle.Observed{What: event.PowerChanged, On: new(true)})
	o = s.caughtUp("host-a")

	want := []string{"registering", "inspecting", "preparing", "available"}
	if diff := cmp.Diff(want, s.states("host-a")); diff != "" {
		t.Error(diff)
	}
	if n := s.writes("status"); n != 5 {
		t.Errorf("%d writes of the status, want one for each state and one for the power", n)
	}
	if n := s.writes(""); n != 2 {
		t.Errorf("%d writes of metadata, want one for the finalizer and one when it settles", n)
	}
	if diff := cmp.Diff(hardware(), o.Status.HardwareDetails); diff != "" {
		t.Error(diff)
	}
	if o.Spec.Architecture != "x86_64" || o.Status.Conditions[0].ObservedGeneration != o.Generation {
		t.Errorf("architecture %q, generation %d, conditions %+v", o.Spec.Architecture, o.Generation, o.Status.Conditions)
	}
	data := &v1alpha1.HardwareData{}
	if !s.api.Object("hardwaredata", namespace, "host-a", data) || !metav1.IsControlledBy(data, o) {
		t.Errorf("HardwareData is %+v", data)
	}
	var copied v1alpha1.BareMetalHostStatus
	if err := json.Unmarshal([]byte(o.Annotations[v1alpha1.StatusAnnotation]), &copied); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(o.Status, copied, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the annotation is not the status: %s", diff)
	}
	for _, w := range s.api.Writes() {
		if strings.Contains(w.Body, "canary") && w.Verb != "create" {
			t.Errorf("%s of %s holds a secret: %s", w.Verb, w.Resource, w.Body)
		}
	}
}

func TestAHostLivesAndGoes(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.start("b")
	s.apply("host-a")
	s.available("host-a")
	s.provisioned("host-a")
	s.user.DeleteHost("host-a")
	s.loaded("host-a", "its deletion is known", lifecycle.Leaving)
	s.happens("host-a",
		lifecycle.Started{Kind: event.Undeploy, Step: "eject"}, lifecycle.Deprovisioned{},
		lifecycle.Switched{Kind: event.PowerOff}, lifecycle.Removed{},
	)
	h := s.loaded("host-a", "it is forgotten", func(h lifecycle.Host) bool { return h.Newest(event.SectionIntent).Fact == event.Forgotten })
	if h.Intent.Paused {
		t.Error("a host that its services let go of was forgotten as one that was lost")
	}
	want := []string{
		"registering", "inspecting", "preparing", "available", "provisioning", "provisioned",
		"deprovisioning", "powering off before delete", "deleting",
	}
	if diff := cmp.Diff(want, s.states("host-a")); diff != "" {
		t.Error(diff)
	}
	secret := &corev1.Secret{}
	s.api.Object("secrets", namespace, "host-a-bmc", secret)
	if len(secret.Finalizers) > 0 {
		t.Errorf("the Secret is held by %v", secret.Finalizers)
	}
	data := &v1alpha1.HardwareData{}
	s.api.Object("hardwaredata", namespace, "host-a", data)
	if len(data.Finalizers) > 0 {
		t.Errorf("HardwareData are held by %v", data.Finalizers)
	}
	if names := s.api.Names("baremetalhosts"); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
	for _, r := range []string{"Registered", "BMCAccessValidated", "ProfileSet", "InspectionComplete", "ProvisioningStarted", "ProvisioningComplete", "PowerOff"} {
		s.event(r, corev1.EventTypeNormal) // it is made some time after it was told of
	}
	reasons := map[string]bool{}
	for _, name := range s.api.Names("events") {
		var e corev1.Event
		s.api.Object("events", namespace, strings.TrimPrefix(name, namespace+"/"), &e)
		if reasons[e.Reason] {
			t.Errorf("two Events %s", e.Reason)
		}
		reasons[e.Reason] = true
	}
}

func TestAServedRebootIsTakenAwayAndCanBeAskedForAgain(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.apply("host-a")
	s.available("host-a")
	s.provisioned("host-a")
	off, on := false, true
	var last string
	offs := func() (n int) {
		for _, w := range s.api.Writes() {
			if w.Subresource == "status" && strings.Contains(w.Body, `"poweredOn":false`) {
				n++
			}
		}
		return n
	}
	for round := range 3 {
		s.user.Change("host-a", func(o *v1alpha1.BareMetalHost) { o.Annotations[v1alpha1.RebootAnnotationPrefix] = "" })
		h := s.loaded("host-a", "a new reboot is wanted", func(h lifecycle.Host) bool {
			return len(h.Intent.Reboots) == 1 && h.Intent.Reboots[0].ID != last && lifecycle.WantsOff(h)
		})
		last = h.Intent.Reboots[0].ID
		s.happens("host-a", lifecycle.Observed{What: event.PowerChanged, On: &off}, lifecycle.Observed{What: event.PowerChanged, On: &on})
		s.eventually("host-a", "the annotation is taken away", func(o *v1alpha1.BareMetalHost) bool {
			_, there := o.Annotations[v1alpha1.RebootAnnotationPrefix]
			// The annotation goes a moment before off is shown.
			return !there && o.Status.PoweredOn && offs() > round
		})
	}
	s.caughtUp("host-a")
	if diff := cmp.Diff([]string{"registering", "inspecting", "preparing", "available", "provisioning", "provisioned"}, s.states("host-a")); diff != "" {
		t.Error(diff)
	}
	kubetest.Eventually(t, "the request is gone from the intent", func() bool { return len(s.known("host-a").Intent.Reboots) == 0 })
}
