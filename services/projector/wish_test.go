package projector_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube/kubetest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func TestAHostThatComesBeforeItsSecretGoesOnAtOnce(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.applyHost("host-a")
	h := s.known("host-a")
	if h.Intent.Credentials.MissingSince.IsZero() || h.Intent.Credentials.Version != "" {
		t.Errorf("credentials are %+v", h.Intent.Credentials)
	}
	o := s.shows("host-a", v1alpha1.StateRegistering)
	if o.Status.ErrorMessage != "" {
		t.Errorf("it says %q while it may just have been moved here", o.Status.ErrorMessage)
	}
	s.secret("host-a-bmc")
	h = s.loaded("host-a", "the Secret is found", func(h lifecycle.Host) bool { return h.Intent.Credentials.Version != "" })
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "host-a-bmc"}}
	s.user.Read(secret)
	if secret.ResourceVersion != h.Intent.Credentials.Version || secret.Labels[v1alpha1.LabelEnvironmentName] != v1alpha1.LabelEnvironmentValue {
		t.Errorf("credentials %+v, the Secret is %+v", h.Intent.Credentials, secret.ObjectMeta)
	}

	// An edit is noticed, also after somebody took the label off.
	secret.Data["password"], secret.Labels = []byte("another"), nil
	s.user.Update(secret)
	s.loaded("host-a", "the change is noticed", func(h lifecycle.Host) bool {
		s.user.Read(secret)
		return h.Intent.Credentials.Version == secret.ResourceVersion && len(secret.Labels) == 1
	})
}

func TestAnotherSecretReleasesTheOldOne(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.apply("host-a")
	s.known("host-a")
	s.secret("new-bmc")
	s.user.Change("host-a", func(o *v1alpha1.BareMetalHost) { o.Spec.BMC.CredentialsName = "new-bmc" })
	s.loaded("host-a", "the new Secret is named", func(h lifecycle.Host) bool {
		return h.Intent.Credentials.Name == "new-bmc" && h.Intent.Credentials.Version != ""
	})
	for name, want := range map[string]int{"host-a-bmc": 0, "new-bmc": 1} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.user.Read(secret)
		if len(secret.Finalizers) != want {
			t.Errorf("%s is held by %v", name, secret.Finalizers)
		}
	}
}

func TestASecretOfAnotherNamespaceIsRefused(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.apply("host-a", func(o *v1alpha1.BareMetalHost) {
		o.Spec.UserData = &corev1.SecretReference{Namespace: "kube-system", Name: "admin-token"}
		o.Spec.Image = &v1alpha1.Image{URL: "http://192.0.2.80/os.iso", DiskFormat: new("live-iso")}
	})
	h := s.known("host-a")
	if h.Intent.Spec.UserData != nil || h.Intent.Invalid == nil || lifecycle.WantsImage(h) {
		t.Errorf("the intent is %+v", h.Intent)
	}
	o := s.eventually("host-a", "the error is shown", func(o *v1alpha1.BareMetalHost) bool {
		return strings.Contains(o.Status.ErrorMessage, "userData: cross-namespace Secret references are not allowed")
	})
	if o.Status.ErrorType != v1alpha1.ProvisioningError {
		t.Errorf("error type %q", o.Status.ErrorType)
	}
	s.event("ProvisioningError", "Warning")
	s.user.Change("host-a", func(o *v1alpha1.BareMetalHost) { o.Spec.UserData = nil })
	s.eventually("host-a", "the error is gone", func(o *v1alpha1.BareMetalHost) bool { return o.Status.ErrorMessage == "" })
}

func TestAPausedHostIsNotWritten(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.start("b")
	s.apply("host-a")
	s.available("host-a")
	s.user.Change("host-a", func(o *v1alpha1.BareMetalHost) { o.Annotations[v1alpha1.PausedAnnotation] = "" })
	s.loaded("host-a", "it is paused", func(h lifecycle.Host) bool { return h.Intent.Paused })
	mark := len(s.api.Writes())
	s.user.Change("host-a", func(o *v1alpha1.BareMetalHost) {
		o.Spec.Image = &v1alpha1.Image{URL: "http://192.0.2.80/os.iso", DiskFormat: new("live-iso")}
		o.Annotations[v1alpha1.StatusAnnotation] = "theirs"
	})
	// What was under way ends.
	on := true
	s.happens("host-a", lifecycle.Observed{What: event.PowerChanged, On: &on}, lifecycle.Observed{What: event.HealthChanged, On: &on, Health: "OK"})
	s.apply("host-b") // by whose state the projectors have seen all that
	s.shows("host-b", v1alpha1.StateRegistering)
	for _, w := range s.api.Writes()[mark:] {
		if w.Name == "host-a" && w.Verb == "patch" && w.Code < 300 {
			t.Errorf("a paused host was written: %s", w.Body)
		}
	}
	if h := s.known("host-a"); h.Intent.Spec.Image != nil {
		t.Error("the intent of a paused host has changed")
	}
	s.user.Change("host-a", func(o *v1alpha1.BareMetalHost) { delete(o.Annotations, v1alpha1.PausedAnnotation) })
	s.loaded("host-a", "it goes on", func(h lifecycle.Host) bool { return !h.Intent.Paused && h.Intent.Spec.Image != nil })
	s.eventually("host-a", "what happened meanwhile is shown", func(o *v1alpha1.BareMetalHost) bool { return o.Status.PoweredOn })
}

func TestAPausedHostThatIsNotKnownIsLeftAlone(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.apply("host-a", func(o *v1alpha1.BareMetalHost) { o.Annotations = map[string]string{v1alpha1.PausedAnnotation: ""} })
	s.apply("host-b")
	s.shows("host-b", v1alpha1.StateRegistering)
	for _, w := range s.api.Writes() {
		if strings.HasPrefix(w.Name, "host-a") && w.Verb == "patch" {
			t.Errorf("it was written: %+v", w)
		}
	}
	if h, err := s.bus.Load(t.Context(), s.uids["host-a"]); err != nil || h.Exists() {
		t.Errorf("the bus knows %+v, %v", h, err)
	}
	s.user.Change("host-a", func(o *v1alpha1.BareMetalHost) { delete(o.Annotations, v1alpha1.PausedAnnotation) })
	s.shows("host-a", v1alpha1.StateRegistering)
}

func TestAnInspectionIsAskedForOnce(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.apply("host-a")
	s.available("host-a")
	for range 2 {
		s.user.Change("host-a", func(o *v1alpha1.BareMetalHost) { o.Annotations[v1alpha1.InspectAnnotationPrefix] = "" })
		s.loaded("host-a", "an inspection is wanted", lifecycle.WantsInspection)
		s.happens("host-a", lifecycle.Begun{Kind: event.Inspect}, lifecycle.Started{Kind: event.Inspect, Step: "inspect"})
		s.eventually("host-a", "the annotation is taken away", func(o *v1alpha1.BareMetalHost) bool {
			_, there := o.Annotations[v1alpha1.InspectAnnotationPrefix]
			return !there && o.Status.Provisioning.State == v1alpha1.StateInspecting
		})
		s.happens("host-a", lifecycle.Inspected{Digest: s.hardware("host-a"), Source: "redfish", Arch: "x86_64"})
		s.shows("host-a", v1alpha1.StateAvailable)
	}
}

func TestSuppliedHardware(t *testing.T) {
	text := `{"hostname":"given","cpu":{"arch":"aarch64"}}`
	tests := map[string]struct {
		prepare func(*site)
		change  func(*v1alpha1.BareMetalHost)
		source  string
	}{
		"by annotation": {
			change: func(o *v1alpha1.BareMetalHost) {
				o.Annotations = map[string]string{v1alpha1.HardwareDetailsAnnotation: text, v1alpha1.InspectAnnotationPrefix: "disabled"}
			}, source: "annotation",
		},
		"by HardwareData, which go before": {
			prepare: func(s *site) {
				data := &v1alpha1.HardwareData{ObjectMeta: metav1.ObjectMeta{Name: "host-a"}}
				data.Spec.HardwareDetails = &v1alpha1.HardwareDetails{Hostname: "given", CPU: v1alpha1.CPU{Arch: "aarch64"}}
				s.user.Create(data)
			},
			change: func(o *v1alpha1.BareMetalHost) {
				o.Annotations = map[string]string{v1alpha1.HardwareDetailsAnnotation: `{"hostname":"other"}`, v1alpha1.InspectAnnotationPrefix: "disabled"}
			}, source: "hardwaredata",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			if tc.prepare != nil {
				tc.prepare(s)
			}
			s.start("a")
			s.apply("host-a", tc.change)
			h := s.loaded("host-a", "hardware is supplied", func(h lifecycle.Host) bool { return h.Intent.Hardware != "" })
			var hw v1alpha1.HardwareDetails
			if err := s.bus.GetData(t.Context(), h.UID, event.DataSupplied, h.Intent.Hardware, &hw); err != nil || hw.Hostname != "given" || h.Intent.HardwareSource != tc.source {
				t.Errorf("supplied %+v by %s, %v", hw, h.Intent.HardwareSource, err)
			}
			digest, err := s.bus.PutData(t.Context(), h.UID, event.DataHardware, hw)
			if err != nil {
				t.Fatal(err)
			}
			s.happens("host-a", lifecycle.Supplied{Digest: digest, Source: tc.source, Arch: "aarch64"})
			o := s.eventually("host-a", "it is shown", func(o *v1alpha1.BareMetalHost) bool { return o.Status.HardwareDetails != nil })
			if diff := cmp.Diff(&hw, o.Status.HardwareDetails); diff != "" {
				t.Error(diff)
			}
			if tc.source == "annotation" {
				s.eventually("host-a", "the annotation is taken away", func(o *v1alpha1.BareMetalHost) bool {
					_, there := o.Annotations[v1alpha1.HardwareDetailsAnnotation]
					return !there
				})
			}
			s.loaded("host-a", "nothing more is supplied", func(h lifecycle.Host) bool { return h.Intent.Hardware == "" })
		})
	}
}

func TestUnreadableHardwareIsSaid(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.apply("host-a", func(o *v1alpha1.BareMetalHost) {
		o.Annotations = map[string]string{v1alpha1.HardwareDetailsAnnotation: `{"hostnam":"given"}`, v1alpha1.InspectAnnotationPrefix: "disabled"}
	})
	s.shows("host-a", v1alpha1.StateRegistering)
	if e := s.event("InvalidAnnotationValue", "Warning"); !strings.Contains(e.Message, "hostnam") {
		t.Errorf("it says %q", e.Message)
	}
}

func TestADeletionBeforeAnythingElseIsKnown(t *testing.T) {
	s := newSite(t)
	s.apply("host-a", func(o *v1alpha1.BareMetalHost) { o.Finalizers = []string{v1alpha1.BareMetalHostFinalizer} })
	s.user.DeleteHost("host-a")
	s.start("a")
	s.loaded("host-a", "its deletion is known", func(h lifecycle.Host) bool { return lifecycle.Stage(h) == v1alpha1.StateDeleting })
	s.happens("host-a", lifecycle.Removed{})
	kubetest.Eventually(t, "it is gone", func() bool { return len(s.api.Names("baremetalhosts")) == 0 })
}

func TestAHostWhoseFinalizerWasTakenOffIsForgottenUntouched(t *testing.T) {
	for name, running := range map[string]bool{"while a projector runs": true, "while none does": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			stop := s.start("a")
			s.apply("host-a")
			s.available("host-a")
			s.provisioned("host-a")
			if !running {
				stop()
			}
			s.user.Change("host-a", func(o *v1alpha1.BareMetalHost) { o.Annotations[v1alpha1.PausedAnnotation] = "" })
			s.user.DeleteHost("host-a")
			s.user.TryChange("host-a", func(o *v1alpha1.BareMetalHost) { o.Finalizers = nil })
			if !running {
				s.start("b")
			}
			h := s.loaded("host-a", "it is forgotten", func(h lifecycle.Host) bool { return h.Newest(event.SectionIntent).Fact == event.Forgotten })
			if !h.Intent.Paused || lifecycle.Stage(h) != v1alpha1.StateProvisioned {
				t.Errorf("services would act on %+v", h.Intent)
			}
		})
	}
}

func TestForgottenHostsArePurged(t *testing.T) {
	s := newSite(t)
	s.cfg.KeepForgotten = time.Nanosecond
	s.start("a")
	s.apply("host-a")
	s.shows("host-a", v1alpha1.StateRegistering)
	s.user.DeleteHost("host-a")
	s.loaded("host-a", "its deletion is known", lifecycle.Leaving)
	s.happens("host-a", lifecycle.Removed{})
	kubetest.Eventually(t, "it is purged", func() bool { // by the next tick
		h, err := s.bus.Load(t.Context(), s.uids["host-a"])
		return err == nil && !h.Exists()
	})
}
