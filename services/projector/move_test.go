package projector_test

import (
	"encoding/json"
	"fmt"
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

// statusOf is a provisioned host's status as its annotation carries it.
func statusOf(t *testing.T, change ...func(*v1alpha1.BareMetalHostStatus)) string {
	t.Helper()
	at := metav1.NewTime(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC))
	image := v1alpha1.Image{URL: "http://192.0.2.80/os.iso", DiskFormat: new("live-iso")}
	s := v1alpha1.BareMetalHostStatus{
		OperationalStatus: v1alpha1.OperationalStatusOK, LastUpdated: &at, PoweredOn: true, HardwareProfile: "unknown",
		HardwareDetails: hardware(), LastAttemptedImage: &image,
		Provisioning:    v1alpha1.ProvisionStatus{State: v1alpha1.StateProvisioned, ID: "node-1", Image: image, BootMode: v1alpha1.UEFI},
		GoodCredentials: v1alpha1.CredentialsStatus{Reference: &corev1.SecretReference{Namespace: namespace, Name: "host-a-bmc"}, Version: "1"},
	}
	for _, c := range change {
		c(&s)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func carrying(text string) func(*v1alpha1.BareMetalHost) {
	return func(o *v1alpha1.BareMetalHost) {
		o.Annotations = map[string]string{v1alpha1.StatusAnnotation: text}
		o.Spec.Image = &v1alpha1.Image{URL: "http://192.0.2.80/os.iso", DiskFormat: new("live-iso")}
	}
}

func TestAMovedHostResumesWhereItWas(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.apply("host-a", carrying(statusOf(t)))
	h := s.known("host-a")
	if fact := h.Newest(event.SectionIntent).Fact; fact != event.Restored {
		t.Errorf("it was %s", fact)
	}
	o := s.eventually("host-a", "it is shown", func(o *v1alpha1.BareMetalHost) bool { return projected(o) != "" })
	if diff := cmp.Diff([]string{"provisioned"}, s.states("host-a")); diff != "" {
		t.Errorf("a machine in use was shown in other states: %s", diff)
	}
	if !o.Status.PoweredOn || o.Status.Provisioning.ID != "node-1" || o.Status.HardwareDetails == nil {
		t.Errorf("status is %+v", o.Status)
	}
	data := &v1alpha1.HardwareData{}
	if !s.api.Object("hardwaredata", namespace, "host-a", data) {
		t.Error("no HardwareData were made")
	}
	var copied v1alpha1.BareMetalHostStatus
	if err := json.Unmarshal([]byte(o.Annotations[v1alpha1.StatusAnnotation]), &copied); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(o.Status, copied, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// Others let logins stand in URLs. What runs by one runs on, and no word of ours has it.
func TestAMovedHostIsNotWipedForALogin(t *testing.T) {
	s := newSite(t)
	s.start("a")
	const secret = "http://u:hunter2@192.0.2.80/os.iso"
	s.apply("host-a", func(o *v1alpha1.BareMetalHost) {
		carrying(statusOf(t, func(st *v1alpha1.BareMetalHostStatus) {
			st.Provisioning.Image.URL, st.LastAttemptedImage.URL = secret, secret
		}))(o)
		o.Spec.Image.URL = secret
	})
	h := s.known("host-a")
	if lifecycle.Unwanted(h) || h.Intent.Invalid != nil || h.Provisioning.Image.URL != "http://192.0.2.80/os.iso" {
		t.Errorf("unwanted: %v, fault %+v, image %+v", lifecycle.Unwanted(h), h.Intent.Invalid, h.Provisioning.Image)
	}
	s.eventually("host-a", "it is shown", func(o *v1alpha1.BareMetalHost) bool { return projected(o) != "" })
	for _, w := range s.api.Writes() {
		if strings.Contains(w.Body, "hunter2") && w.Verb != "create" {
			t.Errorf("%s of %s holds the password: %s", w.Verb, w.Resource, w.Body)
		}
	}
	if text, err := json.Marshal(h); err != nil || strings.Contains(string(text), "hunter2") {
		t.Errorf("the bus has it: %s, %v", text, err)
	}
}

func TestAConflictDoesNotMakeAMovedHostANewOne(t *testing.T) {
	s := newSite(t)
	var refused int
	s.api.Fault(func(w kubetest.Write) int {
		if w.Resource == "baremetalhosts" && w.Verb == "patch" && refused < 6 {
			refused++
			return 409 + 94*(refused%2) // conflicts and 503s
		}
		return 0
	})
	s.start("a")
	s.apply("host-a", carrying(statusOf(t)))
	s.shows("host-a", v1alpha1.StateProvisioned)
	h := s.known("host-a")
	if fact := h.Newest(event.SectionIntent).Fact; fact != event.Restored {
		t.Errorf("it was %s", fact)
	}
	if diff := cmp.Diff([]string{"provisioned"}, s.states("host-a")); diff != "" {
		t.Error(diff)
	}
}

func TestAnAnnotationWithoutTimesRestoresOnce(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.apply("host-a", carrying(`{"provisioning":{"state":"inspecting","ID":"n"}}`))
	s.eventually("host-a", "the annotation is taken away", func(o *v1alpha1.BareMetalHost) bool {
		return o.Annotations[v1alpha1.StatusAnnotation] == "" && o.Status.Provisioning.State == v1alpha1.StateInspecting
	})
	if h := s.known("host-a"); lifecycle.Stage(h) != v1alpha1.StateInspecting || !h.Registration.Registered {
		t.Errorf("the host is %+v", h)
	}
}

func TestAnUnreadableAnnotationStopsAndSaysSo(t *testing.T) {
	tests := map[string]string{
		"no JSON":            "provisioned",
		"a state of no host": `{"provisioning":{"state":"done","ID":"n"}}`,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.start("a")
			s.apply("host-a", carrying(text))
			o := s.eventually("host-a", "an error is shown", func(o *v1alpha1.BareMetalHost) bool { return o.Status.ErrorMessage != "" })
			if !strings.Contains(o.Status.ErrorMessage, v1alpha1.StatusAnnotation) || o.Status.Provisioning.State != "" || o.Annotations[v1alpha1.StatusAnnotation] != text {
				t.Errorf("status %+v, annotations %v", o.Status, o.Annotations)
			}
			if h, err := s.bus.Load(t.Context(), s.uids["host-a"]); err != nil || h.Exists() {
				t.Errorf("the bus knows %+v, %v", h, err)
			}
			s.user.Change("host-a", func(o *v1alpha1.BareMetalHost) { delete(o.Annotations, v1alpha1.StatusAnnotation) })
			o = s.shows("host-a", v1alpha1.StateRegistering)
			if o.Status.ErrorMessage != "" {
				t.Errorf("left: %s", o.Status.ErrorMessage)
			}
		})
	}
}

func TestALostBusIsRestoredFromStatus(t *testing.T) {
	s := newSite(t)
	stop := s.start("a")
	s.apply("host-a")
	s.available("host-a")
	before := s.provisioned("host-a")
	stop()
	if err := s.bus.Purge(t.Context(), s.uids["host-a"]); err != nil {
		t.Fatal(err)
	}
	mark := len(s.api.Writes())
	s.start("b")
	h := s.known("host-a")
	if fact := h.Newest(event.SectionIntent).Fact; fact != event.Restored || lifecycle.Stage(h) != v1alpha1.StateProvisioned {
		t.Errorf("it was %s as %s", fact, lifecycle.Stage(h))
	}
	after := s.eventually("host-a", "the new revision is shown", func(o *v1alpha1.BareMetalHost) bool { return projected(o) == fmt.Sprint(h.Rev) })
	times := cmpopts.IgnoreFields(v1alpha1.BareMetalHostStatus{}, "LastUpdated")
	if diff := cmp.Diff(before.Status, after.Status, times, cmpopts.IgnoreFields(metav1.Condition{}, "Message", "ObservedGeneration")); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
	for _, w := range s.api.Writes()[mark:] {
		if strings.Contains(w.Body, `"state":`) && w.Subresource == "status" {
			t.Errorf("a machine in use was shown in another state: %s", w.Body)
		}
	}
}

func TestALostStatusIsShownAgain(t *testing.T) {
	for name, running := range map[string]bool{"while a projector runs": true, "while none does": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			stop := s.start("a")
			s.apply("host-a")
			s.available("host-a")
			before := s.provisioned("host-a")
			if !running {
				stop()
			}
			mark := len(s.api.Writes())
			s.user.ChangeStatus("host-a", func(o *v1alpha1.BareMetalHost) { o.Status = v1alpha1.BareMetalHostStatus{} })
			if !running {
				s.start("b")
			}
			after := s.eventually("host-a", "it is shown again", func(o *v1alpha1.BareMetalHost) bool {
				return o.Status.Provisioning.State == v1alpha1.StateProvisioned && o.Status.PoweredOn
			})
			if diff := cmp.Diff(before.Status.HardwareDetails, after.Status.HardwareDetails); diff != "" {
				t.Error(diff)
			}
			for _, w := range s.api.Writes()[mark:] {
				if w.Verb == "patch" && w.Subresource == "status" && !strings.Contains(w.Body, `"provisioned"`) && strings.Contains(w.Body, `"state":`) {
					t.Errorf("it was shown in another state: %s", w.Body)
				}
			}
			if h := s.known("host-a"); h.Newest(event.SectionIntent).Fact == event.Restored {
				t.Error("the bus had not lost it")
			}
		})
	}
}

// The copy in the annotation follows, though nothing has happened that would bring it.
func TestALostStatusIsCopiedAgain(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.apply("host-a")
	s.available("host-a")
	copied := func(o *v1alpha1.BareMetalHost) bool {
		text, err := json.Marshal(o.Status)
		if err != nil {
			t.Fatal(err)
		}
		return o.Status.Provisioning.State == v1alpha1.StateAvailable && o.Annotations[v1alpha1.StatusAnnotation] == string(text)
	}
	s.eventually("host-a", "its status is copied", copied)
	s.user.Change("host-a", func(o *v1alpha1.BareMetalHost) { o.Labels = map[string]string{"rack": "7"} }) // so that it has been looked at as it is
	s.loaded("host-a", "the label is known", func(h lifecycle.Host) bool { return h.Intent.Labels["rack"] == "7" })
	s.user.ChangeStatus("host-a", func(o *v1alpha1.BareMetalHost) { o.Status = v1alpha1.BareMetalHostStatus{} })
	s.eventually("host-a", "its status is shown and copied again", copied)
}

func TestALostTailIsNotedAndTheStatusHolds(t *testing.T) {
	s := newSite(t)
	stop := s.start("a")
	s.apply("host-a")
	s.available("host-a")
	stop()
	h := s.known("host-a")
	// The object has seen the host provisioned by ten more events.
	s.user.ChangeStatus("host-a", func(o *v1alpha1.BareMetalHost) {
		var status v1alpha1.BareMetalHostStatus
		if err := json.Unmarshal([]byte(statusOf(t)), &status); err != nil {
			t.Fatal(err)
		}
		status.Conditions = o.Status.Conditions
		c := &status.Conditions[len(status.Conditions)-1]
		c.Message = fmt.Sprintf("%s/%s/%d", h.Epoch, h.UID, h.Rev+10)
		o.Status = status
	})
	s.user.Change("host-a", func(o *v1alpha1.BareMetalHost) { o.Spec.Image = &v1alpha1.Image{URL: "http://192.0.2.80/os.iso"} })
	mark := len(s.api.Writes())
	s.start("b")
	after := s.loaded("host-a", "the loss is noted", func(h lifecycle.Host) bool { return h.Newest(event.SectionIntent).Fact == event.Restored })
	if after.Intent.Base == nil || after.Intent.Base.Lost != 10 || lifecycle.Stage(after) != v1alpha1.StateProvisioned {
		t.Errorf("base %+v, state %s", after.Intent.Base, lifecycle.Stage(after))
	}
	s.eventually("host-a", "the bus's revision is shown", func(o *v1alpha1.BareMetalHost) bool { return projected(o) == fmt.Sprint(after.Rev) })
	for _, w := range s.api.Writes()[mark:] {
		if w.Subresource == "status" && strings.Contains(w.Body, `"state":`) {
			t.Errorf("it was shown in another state: %s", w.Body)
		}
	}
}

func TestTwoLivesPauseTheHostUntilSomebodyDecides(t *testing.T) {
	s := newSite(t)
	stop := s.start("a")
	s.apply("host-a")
	s.available("host-a")
	s.provisioned("host-a")
	stop()
	s.user.ChangeStatus("host-a", func(o *v1alpha1.BareMetalHost) {
		o.Status.Conditions[len(o.Status.Conditions)-1].Message = "another-log/" + s.uids["host-a"] + "/900"
	})
	s.start("b")
	s.loaded("host-a", "it is paused", func(h lifecycle.Host) bool { return h.Intent.Paused })
	s.eventually("host-a", "the conflict is shown", func(o *v1alpha1.BareMetalHost) bool { return condition(o, "Conflict") != nil })
	s.user.ChangeStatus("host-a", func(o *v1alpha1.BareMetalHost) { o.Status = v1alpha1.BareMetalHostStatus{} })
	s.loaded("host-a", "it goes on", func(h lifecycle.Host) bool { return !h.Intent.Paused })
	o := s.shows("host-a", v1alpha1.StateProvisioned)
	if condition(o, "Conflict") != nil {
		t.Error("the conflict is still shown")
	}
}

func condition(o *v1alpha1.BareMetalHost, kind string) *metav1.Condition {
	for i, c := range o.Status.Conditions {
		if c.Type == kind {
			return &o.Status.Conditions[i]
		}
	}
	return nil
}

func TestMovedAwayHostsAreLeftAlone(t *testing.T) {
	for _, gap := range []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond} {
		t.Run(gap.String(), func(t *testing.T) {
			s := newSite(t)
			s.start("a")
			s.start("b")
			names := []string{"host-0", "host-1", "host-2", "host-3"}
			for i, name := range names {
				s.apply(name)
				s.available(name)
				s.provisioned(name)
				if i%2 == 0 { // those with a consumer are paused before
					s.user.Change(name, func(o *v1alpha1.BareMetalHost) { o.Annotations[v1alpha1.PausedAnnotation] = "metal3.io/capm3" })
					s.loaded(name, "it is paused", func(h lifecycle.Host) bool { return h.Intent.Paused })
				}
			}
			for _, name := range names {
				s.movedAway(name, gap)
			}
			for _, name := range names {
				h := s.loaded(name, "it is forgotten", func(h lifecycle.Host) bool { return h.Newest(event.SectionIntent).Fact == event.Forgotten })
				if !h.Intent.Paused || !h.Intent.DeletedAt.IsZero() || h.Intent.Credentials.Version == "" || lifecycle.Stage(h) != v1alpha1.StateProvisioned {
					t.Errorf("%s: services would act on %+v", name, h.Intent)
				}
			}
			if left := s.api.Names("baremetalhosts"); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// movedAway does what clusterctl does to the source of a move, its Secret
// first: the annotations are replaced by one key, the object is deleted, and
// then its finalizers are emptied.
func (s *site) movedAway(name string, gap time.Duration) {
	s.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name + "-bmc"}}
	s.user.Read(secret)
	secret.Annotations = map[string]string{v1alpha1.DeleteForMoveAnnotation: ""}
	s.user.Update(secret)
	s.user.Delete(secret)
	s.user.Read(secret)
	secret.Finalizers = nil
	s.user.Update(secret)

	s.user.Change(name, func(o *v1alpha1.BareMetalHost) {
		o.Annotations = map[string]string{v1alpha1.DeleteForMoveAnnotation: ""}
	})
	pause(s.T, gap)
	s.user.DeleteHost(name)
	pause(s.T, gap)
	s.user.TryChange(name, func(o *v1alpha1.BareMetalHost) { o.Finalizers = nil })
}

// pause is a gap between two calls of another program.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
