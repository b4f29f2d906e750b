package projector_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube/kubetest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func (s *site) subscribe(name, host string, change ...func(*v1alpha1.BMCEventSubscription)) string {
	s.Helper()
	o := &v1alpha1.BMCEventSubscription{ObjectMeta: metav1.ObjectMeta{Name: name}}
	o.Spec = v1alpha1.BMCEventSubscriptionSpec{HostName: host, Destination: "https://192.0.2.90/events", Context: name}
	for _, c := range change {
		c(o)
	}
	s.user.Create(o)
	return string(o.UID)
}

func (s *site) unsubscribe(name string) {
	s.Helper()
	s.user.Delete(&v1alpha1.BMCEventSubscription{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// subscription waits until the object is as it should be.
func (s *site) subscription(name, what string, ok func(*v1alpha1.BMCEventSubscription) bool) *v1alpha1.BMCEventSubscription {
	s.Helper()
	o := &v1alpha1.BMCEventSubscription{}
	defer func() {
		if s.Failed() {
			s.Logf("%s: %+v", name, o)
		}
	}()
	kubetest.Eventually(s, "subscription "+name+" "+what, func() bool {
		*o = v1alpha1.BMCEventSubscription{}
		return s.api.Object("bmceventsubscriptions", namespace, name, o) && ok(o)
	})
	return o
}

func (s *site) subscriptionGone(name string) {
	s.Helper()
	kubetest.Eventually(s, "subscription "+name+" is gone", func() bool {
		return !s.api.Object("bmceventsubscriptions", namespace, name, &v1alpha1.BMCEventSubscription{})
	})
}

func kept(o *v1alpha1.BMCEventSubscription) bool {
	return slices.Contains(o.Finalizers, v1alpha1.BMCEventSubscriptionFinalizer)
}

func making(uid string, end lifecycle.Fact) []lifecycle.Fact {
	return []lifecycle.Fact{lifecycle.Started{Kind: event.Subscribe, Step: lifecycle.CreateStep(uid)}, lifecycle.Accepted{Kind: event.Subscribe}, end}
}

func TestASubscriptionComesAndGoes(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.start("b")
	s.apply("host-a")
	s.available("host-a")
	s.user.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "headers"}, Data: map[string][]byte{"Authorization": []byte("s3cret-canary")}})
	uid := s.subscribe("alerts", "host-a", func(o *v1alpha1.BMCEventSubscription) {
		o.Spec.HTTPHeadersRef = &corev1.SecretReference{Name: "headers", Namespace: namespace}
	})
	s.subscription("alerts", "is held", kept)
	h := s.loaded("host-a", "the subscription is asked for", func(h lifecycle.Host) bool { return len(h.Intent.Subscriptions) == 1 })
	want := event.SubscriptionWish{UID: uid, Name: "alerts", Destination: "https://192.0.2.90/events", Context: "alerts", Headers: event.SecretRef{Namespace: namespace, Name: "headers"}}
	if diff := cmp.Diff(want, h.Intent.Subscriptions[0]); diff != "" {
		t.Error(diff)
	}
	s.happens("host-a", making(uid, lifecycle.Failed{Kind: event.Subscribe, Problem: lifecycle.NewProblem(v1alpha1.PowerManagementError, event.ClassUnreachable, "no answer")})...)
	s.subscription("alerts", "tells the failure", func(o *v1alpha1.BMCEventSubscription) bool {
		return strings.HasPrefix(o.Status.Error, "no answer") && o.Status.SubscriptionID == ""
	})
	s.happens("host-a", making(uid, lifecycle.SubscriptionSet{UID: uid, ID: "7"})...)
	s.subscription("alerts", "is made", func(o *v1alpha1.BMCEventSubscription) bool {
		return o.Status.SubscriptionID == "7" && o.Status.Error == ""
	})
	if o := s.caughtUp("host-a"); o.Status.ErrorType != "" {
		t.Errorf("the host has an error: %+v", o.Status)
	}
	s.event("SubscriptionError", "Warning")
	s.event("Subscribed", "Normal")

	s.unsubscribe("alerts")
	s.loaded("host-a", "it is not asked for any more", func(h lifecycle.Host) bool { return len(h.Intent.Subscriptions) == 0 })
	s.subscription("alerts", "waits for its end at the BMC", func(o *v1alpha1.BMCEventSubscription) bool { return o.DeletionTimestamp != nil && kept(o) })
	s.happens("host-a", lifecycle.Started{Kind: event.Subscribe, Step: lifecycle.EndStep(uid)}, lifecycle.Accepted{Kind: event.Subscribe}, lifecycle.SubscriptionSet{UID: uid})
	s.subscriptionGone("alerts")
	for _, w := range s.api.Writes() {
		if strings.Contains(w.Body, "canary") && w.Verb != "create" {
			t.Errorf("%s of %s holds a secret: %s", w.Verb, w.Resource, w.Body)
		}
	}
}

// What names a Secret of another namespace is not followed, and says so.
func TestASubscriptionTakesNoSecretFromElsewhere(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.apply("host-a")
	s.available("host-a")
	s.subscribe("theirs", "host-a", func(o *v1alpha1.BMCEventSubscription) {
		o.Spec.HTTPHeadersRef = &corev1.SecretReference{Name: "headers", Namespace: "other"}
	})
	s.subscription("theirs", "is refused", func(o *v1alpha1.BMCEventSubscription) bool {
		return strings.Contains(o.Status.Error, "must be in the same namespace")
	})
	own := s.subscribe("own", "host-a")
	h := s.loaded("host-a", "the other one is asked for", func(h lifecycle.Host) bool { return len(h.Intent.Subscriptions) > 0 })
	if len(h.Intent.Subscriptions) != 1 || h.Intent.Subscriptions[0].UID != own {
		t.Errorf("asked for: %+v", h.Intent.Subscriptions)
	}
	s.unsubscribe("theirs")
	s.subscriptionGone("theirs")
}

// A destination with a login is not followed, and says so.
func TestASubscriptionWithALoginIsRefused(t *testing.T) {
	s := newSite(t)
	s.start("a")
	s.apply("host-a")
	s.available("host-a")
	login := func(o *v1alpha1.BMCEventSubscription) { o.Spec.Destination = "https://u:hunter2@192.0.2.90/events" }
	s.subscribe("new", "host-a", login)
	o := s.subscription("new", "is refused", func(o *v1alpha1.BMCEventSubscription) bool { return o.Status.Error != "" })
	if text := o.Status.Error; !strings.Contains(text, "httpHeadersRef") || strings.Contains(text, "hunter2") {
		t.Errorf("it says %q", text)
	}
	own := s.subscribe("own", "host-a")
	h := s.loaded("host-a", "the other one is asked for", func(h lifecycle.Host) bool { return len(h.Intent.Subscriptions) > 0 })
	if got := h.Intent.Subscriptions; len(got) != 1 || got[0].UID != own {
		t.Errorf("asked for: %+v", got)
	}
}

// What others have attached and subscribed with a login stays, and no word of ours has it.
func TestWhatIsThereWithALoginStays(t *testing.T) {
	s := newSite(t)
	s.apply("host-a", func(o *v1alpha1.BareMetalHost) { o.Spec.ExternallyProvisioned = true })
	s.user.ChangeStatus("host-a", func(o *v1alpha1.BareMetalHost) {
		o.Status.Provisioning.State, o.Status.Provisioning.ID = v1alpha1.StateExternallyProvisioned, "node-1"
		now := metav1.Now()
		o.Status.LastUpdated = &now
	})
	const secret = "https://u:hunter2@192.0.2.80/x"
	d := s.dataImage("host-a", func(d *v1alpha1.DataImage) { d.Spec.URL = secret })
	s.user.ChangeStatusOf(d, func() { d.Status.AttachedImage.URL = secret })
	s.subscribe("alerts", "host-a", func(o *v1alpha1.BMCEventSubscription) { o.Spec.Destination = secret })
	o := &v1alpha1.BMCEventSubscription{ObjectMeta: metav1.ObjectMeta{Name: "alerts"}}
	s.user.ChangeStatusOf(o, func() { o.Status.SubscriptionID = "7" })
	s.start("a")
	s.wantsDisc("host-a", v1alpha1.WithoutLogin(secret))
	h := s.loaded("host-a", "the subscription is asked for", func(h lifecycle.Host) bool { return len(h.Intent.Subscriptions) == 1 })
	if turn, open := lifecycle.NextSubscription(h); open || lifecycle.WantedMedia(h) != h.Provisioning.Media.URL {
		t.Errorf("next is %+v, the drive holds %q", turn, h.Provisioning.Media.URL)
	}
	if text, err := json.Marshal(h); err != nil || strings.Contains(string(text), "hunter2") {
		t.Errorf("the bus has it: %s, %v", text, err)
	}
}

// A subscription goes where nobody ends it: its host goes, is detached, or is not there.
func TestSubscriptionsDoNotOutliveTheirHosts(t *testing.T) {
	made := func(s *site) {
		s.apply("host-a")
		s.available("host-a")
		uid := s.subscribe("alerts", "host-a")
		s.loaded("host-a", "the subscription is asked for", func(h lifecycle.Host) bool { return len(h.Intent.Subscriptions) == 1 })
		s.happens("host-a", making(uid, lifecycle.SubscriptionSet{UID: uid, ID: "7"})...)
		s.subscription("alerts", "is made", func(o *v1alpha1.BMCEventSubscription) bool { return o.Status.SubscriptionID == "7" && kept(o) })
	}
	for name, do := range map[string]func(*site){
		"the host is deleted": func(s *site) {
			made(s)
			s.user.DeleteHost("host-a")
			s.shows("host-a", v1alpha1.StatePoweringOffBeforeDelete)
		},
		"the host is detached": func(s *site) {
			made(s)
			s.user.Change("host-a", func(o *v1alpha1.BareMetalHost) { o.Annotations[v1alpha1.DetachedAnnotation] = "" })
			s.loaded("host-a", "it is to be detached", func(h lifecycle.Host) bool { return h.Intent.Detached != nil })
		},
		"the host is gone by force": func(s *site) {
			made(s)
			s.api.Purge("baremetalhosts", namespace, "host-a")
			s.subscription("alerts", "tells that its host is gone", func(o *v1alpha1.BMCEventSubscription) bool {
				return strings.Contains(o.Status.Error, "there is no BareMetalHost") && o.Status.SubscriptionID == ""
			})
		},
		"there never was a host": func(s *site) {
			s.subscribe("alerts", "host-a", func(o *v1alpha1.BMCEventSubscription) {
				o.Finalizers = []string{v1alpha1.BMCEventSubscriptionFinalizer}
			})
			s.subscription("alerts", "tells that there is no host", func(o *v1alpha1.BMCEventSubscription) bool {
				return strings.Contains(o.Status.Error, "there is no BareMetalHost")
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.start("a")
			do(s)
			s.unsubscribe("alerts")
			s.subscriptionGone("alerts")
		})
	}
}

// What was made before the bus was lost is remembered by the objects.
func TestWishesAreRememberedWhenTheBusIsLost(t *testing.T) {
	s := newSite(t)
	s.apply("host-a", func(o *v1alpha1.BareMetalHost) { o.Spec.Image = &v1alpha1.Image{URL: "http://192.0.2.80/os.qcow2"} })
	s.user.ChangeStatus("host-a", func(o *v1alpha1.BareMetalHost) {
		o.Status.Provisioning.State, o.Status.Provisioning.ID = v1alpha1.StateProvisioned, "node-1"
		o.Status.Provisioning.Image = *o.Spec.Image
		now := metav1.Now()
		o.Status.LastUpdated = &now
	})
	d := s.dataImage("host-a", func(d *v1alpha1.DataImage) { d.Finalizers = []string{v1alpha1.DataImageFinalizer} })
	s.user.ChangeStatusOf(d, func() { d.Status.AttachedImage.URL = disc })
	uid := s.subscribe("alerts", "host-a", func(o *v1alpha1.BMCEventSubscription) {
		o.Finalizers = []string{v1alpha1.BMCEventSubscriptionFinalizer}
	})
	o := &v1alpha1.BMCEventSubscription{ObjectMeta: metav1.ObjectMeta{Name: "alerts"}}
	s.user.ChangeStatusOf(o, func() { o.Status.SubscriptionID = "7" })
	s.unsubscribe("alerts")
	s.start("a")
	h := s.known("host-a")
	if got := h.Provisioning.Media.URL; got != disc {
		t.Errorf("the drive is remembered to hold %q", got)
	}
	want := []event.Subscription{{UID: uid, Name: "alerts", Destination: "https://192.0.2.90/events", Context: "alerts", ID: "7"}}
	if diff := cmp.Diff(want, h.Power.Subscriptions); diff != "" {
		t.Error(diff)
	}
	if turn, open := lifecycle.NextSubscription(h); !open || turn.Wish != nil {
		t.Errorf("what is to end next: %+v %v", turn, open)
	}
}

// An API without these kinds, as an older operator leaves it, keeps no host from
// being taken over.
func TestHostsAreTakenOverWithoutTheKindsOfWishes(t *testing.T) {
	s := newSite(t)
	s.api.Unserve("dataimages")
	s.api.Unserve("bmceventsubscriptions")
	s.apply("host-a", func(o *v1alpha1.BareMetalHost) { o.Spec.ExternallyProvisioned = true })
	s.user.ChangeStatus("host-a", func(o *v1alpha1.BareMetalHost) {
		o.Status.Provisioning.State, o.Status.Provisioning.ID = v1alpha1.StateExternallyProvisioned, "node-1"
		now := metav1.Now()
		o.Status.LastUpdated = &now
	})
	s.start("a")
	if h := s.known("host-a"); lifecycle.Stage(h) != v1alpha1.StateExternallyProvisioned {
		t.Errorf("the host is %q", lifecycle.Stage(h))
	}
}
