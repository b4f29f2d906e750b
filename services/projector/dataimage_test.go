package projector_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube/kubetest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

const disc = "http://192.0.2.80/data.iso"

func (s *site) dataImage(name string, change ...func(*v1alpha1.DataImage)) *v1alpha1.DataImage {
	s.Helper()
	d := &v1alpha1.DataImage{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.DataImageSpec{URL: disc}}
	for _, c := range change {
		c(d)
	}
	s.user.Create(d)
	return d
}

// image waits until the DataImage is as it should be.
func (s *site) image(name, what string, ok func(*v1alpha1.DataImage) bool) *v1alpha1.DataImage {
	s.Helper()
	d := &v1alpha1.DataImage{}
	kubetest.Eventually(s, "the DataImage "+what, func() bool {
		return s.api.Object("dataimages", namespace, name, d) && ok(d)
	})
	return d
}

func (s *site) imageGone(name string) {
	s.Helper()
	kubetest.Eventually(s, "the DataImage is gone", func() bool {
		return !s.api.Object("dataimages", namespace, name, &v1alpha1.DataImage{})
	})
}

func held(d *v1alpha1.DataImage) bool {
	return slices.Contains(d.Finalizers, v1alpha1.DataImageFinalizer) && len(d.OwnerReferences) == 1
}

// wantsDisc waits until the host's intent has the data image, or none ("").
func (s *site) wantsDisc(name, url string) {
	s.Helper()
	s.loaded(name, "the intent has data image "+url, func(h lifecycle.Host) bool {
		if h.Intent.DataImage == nil {
			return url == ""
		}
		return h.Intent.DataImage.URL == url
	})
}

// goesOff records that a host was seen off.
func (s *site) goesOff(name string) {
	s.Helper()
	s.happens(name, lifecycle.Observed{What: event.PowerChanged, On: new(true)}, lifecycle.Observed{What: event.PowerChanged, On: new(false)})
}

func attempt(end lifecycle.Fact) []lifecycle.Fact {
	return []lifecycle.Fact{lifecycle.Started{Kind: event.Media, Step: "attach"}, lifecycle.Accepted{Kind: event.Media}, end}
}

func inVain(text string) lifecycle.Fact {
	return lifecycle.Failed{Kind: event.Media, Problem: lifecycle.NewProblem(v1alpha1.ProvisioningError, event.ClassMedia, text)}
}

func TestADataImageComesAndGoes(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.start("b")
	s.apply("host-a")
	s.available("host-a")
	s.provisioned("host-a")
	s.dataImage("host-a")
	s.image("host-a", "is held", held)
	s.wantsDisc("host-a", disc)

	s.goesOff("host-a")
	s.happens("host-a", attempt(inVain("the drive is stuck"))...)
	s.image("host-a", "tells the failure", func(d *v1alpha1.DataImage) bool {
		return d.Status.Error.Count == 1 && d.Status.Error.Message != "" && d.Status.LastReconciled != nil && d.Status.AttachedImage.URL == ""
	})
	if o := s.caughtUp("host-a"); o.Status.ErrorType != "" || o.Status.ErrorCount != 0 {
		t.Errorf("the host has an error: %+v", o.Status)
	}
	s.goesOff("host-a")
	s.happens("host-a", attempt(lifecycle.MediaSet{URL: disc})...)
	s.image("host-a", "is attached", func(d *v1alpha1.DataImage) bool {
		return d.Status.AttachedImage.URL == disc && d.Status.Error == v1alpha1.DataImageError{}
	})
	s.event("DataImageError", "Warning")
	s.event("DataImage", "Normal")

	s.user.Delete(&v1alpha1.DataImage{ObjectMeta: metav1.ObjectMeta{Name: "host-a"}})
	s.wantsDisc("host-a", "")
	s.image("host-a", "waits for the next boot", func(d *v1alpha1.DataImage) bool { return d.DeletionTimestamp != nil && held(d) })
	s.goesOff("host-a")
	s.happens("host-a", attempt(lifecycle.MediaSet{})...)
	s.imageGone("host-a")
	if states := s.states("host-a"); states[len(states)-1] != "provisioned" {
		t.Errorf("the host went through %v", states)
	}
}

// A DataImage whose URL has a login is not followed, and says so.
func TestADataImageWithALoginIsRefused(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.apply("host-a")
	s.available("host-a")
	s.provisioned("host-a")
	s.dataImage("host-a", func(d *v1alpha1.DataImage) { d.Spec.URL = "http://u:hunter2@192.0.2.80/data.iso" })
	d := s.image("host-a", "is refused", func(d *v1alpha1.DataImage) bool { return d.Status.Error.Count == 1 })
	if text := d.Status.Error.Message; !strings.Contains(text, "holds a login") || strings.Contains(text, "hunter2") {
		t.Errorf("it says %q", text)
	}
	s.wantsDisc("host-a", "")
	s.api.Purge("dataimages", namespace, "host-a")
	s.dataImage("host-a")
	s.wantsDisc("host-a", disc)
}

// B30: a DataImage does not outlive its host.
func TestDataImagesDoNotOutliveTheirHosts(t *testing.T) {
	attached := func(s *site) {
		s.apply("host-a")
		s.available("host-a")
		s.provisioned("host-a")
		s.dataImage("host-a")
		s.wantsDisc("host-a", disc)
		s.goesOff("host-a")
		s.happens("host-a", attempt(lifecycle.MediaSet{URL: disc})...)
		s.image("host-a", "is attached", func(d *v1alpha1.DataImage) bool { return d.Status.AttachedImage.URL == disc })
	}
	gone := func(s *site) {
		s.user.Delete(&v1alpha1.DataImage{ObjectMeta: metav1.ObjectMeta{Name: "host-a"}})
	}
	for name, do := range map[string]func(*site){
		"the host is deleted, and then the image": func(s *site) {
			attached(s)
			s.user.DeleteHost("host-a")
			s.shows("host-a", v1alpha1.StateDeprovisioning)
			gone(s)
		},
		"both at once": func(s *site) { attached(s); gone(s); s.user.DeleteHost("host-a") },
		"there never was a host": func(s *site) {
			s.dataImage("host-a", func(d *v1alpha1.DataImage) { d.Finalizers = []string{v1alpha1.DataImageFinalizer} })
			gone(s)
		},
		"the host is detached": func(s *site) {
			attached(s)
			s.user.Change("host-a", func(o *v1alpha1.BareMetalHost) { o.Annotations[v1alpha1.DetachedAnnotation] = "" })
			s.loaded("host-a", "it is to be detached", func(h lifecycle.Host) bool { return h.Intent.Detached != nil })
			gone(s)
		},
		"the host is gone by force": func(s *site) {
			attached(s)
			s.api.Purge("baremetalhosts", namespace, "host-a")
			gone(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.start("a")
			do(s)
			s.imageGone("host-a")
		})
	}
}

// Nothing is done to what belongs to a paused host.
func TestADataImageOfAPausedHostIsLeftAlone(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.apply("host-a")
	s.available("host-a")
	s.provisioned("host-a")
	s.user.Change("host-a", func(o *v1alpha1.BareMetalHost) { o.Annotations[v1alpha1.PausedAnnotation] = "" })
	s.loaded("host-a", "it is paused", func(h lifecycle.Host) bool { return h.Intent.Paused })
	s.dataImage("host-a")
	s.apply("host-b") // what comes after it is seen to
	s.dataImage("host-b")
	s.image("host-b", "is held", held)
	d := s.image("host-a", "is there", func(*v1alpha1.DataImage) bool { return true })
	h := s.known("host-a")
	if len(d.Finalizers) != 0 || len(d.OwnerReferences) != 0 || h.Intent.DataImage != nil {
		t.Errorf("the DataImage is %+v, the intent has %+v", d.ObjectMeta, h.Intent.DataImage)
	}
	s.user.Change("host-a", func(o *v1alpha1.BareMetalHost) { delete(o.Annotations, v1alpha1.PausedAnnotation) })
	s.wantsDisc("host-a", disc)
	s.image("host-a", "is held", held)
}
