package preprov

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// site is an API with images, a host or none, and who sees to them.
type site struct {
	*testing.T
	client  client.Client
	host    *v1alpha1.BareMetalHost
	keeper  *keeper
	builder *builder
	network string // version of every Secret
	now     time.Time
}

func key() types.NamespacedName { return types.NamespacedName{Namespace: "lab", Name: "rack-1"} }

func newSite(t *testing.T, host *v1alpha1.BareMetalHost, objects ...client.Object) *site {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, host: host, now: now, client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.PreprovisioningImage{}).Build()}
	s.keeper = &keeper{client: s.client, image: s.get, host: func(types.NamespacedName) *v1alpha1.BareMetalHost { return s.host }, there: func(uid string) *v1alpha1.BareMetalHost {
		if s.host == nil || string(s.host.UID) != uid {
			return nil
		}
		return s.host
	}}
	s.builder = &builder{
		cfg: Config{Enabled: true, ISO: Place{X86: isoURL}}, client: s.client, image: s.get, now: func() time.Time { return s.now },
		network: func(context.Context, string, string) (string, error) { return s.network, nil },
	}
	return s
}

func (s *site) get(key types.NamespacedName) (*v1alpha1.PreprovisioningImage, bool) {
	s.Helper()
	i := &v1alpha1.PreprovisioningImage{}
	err := s.client.Get(s.Context(), key, i)
	if client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	return i, err == nil
}

// image is the image, which must be there.
func (s *site) image() *v1alpha1.PreprovisioningImage {
	s.Helper()
	i, there := s.get(key())
	if !there {
		s.Fatal("there is no image")
	}
	return i
}

func (s *site) keep() {
	s.Helper()
	if _, err := s.keeper.look(s.Context(), key()); err != nil {
		s.Fatal(err)
	}
}

func (s *site) build() (again time.Duration) {
	s.Helper()
	again, err := s.builder.look(s.Context(), key())
	if err != nil {
		s.Fatal(err)
	}
	return again
}

// A host gets an image that it controls, and that follows what the host says.
func TestOneImageForEachHost(t *testing.T) {
	s := newSite(t, newHost())
	s.keep()
	i := s.image()
	if owner := metav1.GetControllerOf(i); owner == nil || owner.UID != s.host.UID || owner.Kind != "BareMetalHost" || !held(i) {
		t.Errorf("it is controlled by %+v, with finalizers %v", owner, i.Finalizers)
	}
	want, err := specOf(s.host)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, i.Spec); diff != "" {
		t.Error(diff)
	}
	s.host.Labels, s.host.Spec.Architecture = map[string]string{"site": "south"}, "aarch64"
	s.keep()
	if i = s.image(); i.Spec.Architecture != "aarch64" || !cmp.Equal(i.Labels, s.host.Labels) {
		t.Errorf("it is for %s, with labels %v", i.Spec.Architecture, i.Labels)
	}
	version := i.ResourceVersion
	s.keep()
	if s.image().ResourceVersion != version {
		t.Error("it was written again though nothing has changed")
	}
	i.Finalizers = nil
	if err := s.client.Update(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	s.keep()
	if !held(s.image()) {
		t.Error("it is not held any more")
	}
}

// The notice that nobody boots such images goes once they are kept.
func TestNoticeGoes(t *testing.T) {
	o := newHost()
	s := newSite(t, o, newImage(o, func(i *v1alpha1.PreprovisioningImage) {
		i.Status.Conditions = append(i.Status.Conditions, metav1.Condition{Type: v1alpha1.SupportedCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.NotSupportedReason})
	}))
	s.keep()
	if c := s.image().Status.Conditions; len(c) != 1 || c[0].Type != "Ready" || s.image().Status.ImageUrl != isoURL {
		t.Errorf("its status is %+v", s.image().Status)
	}
}

// Nothing is made for a host that boots nothing.
func TestHostsWithoutImage(t *testing.T) {
	annotated := func(key string) func(*v1alpha1.BareMetalHost) {
		return func(o *v1alpha1.BareMetalHost) { o.Annotations = map[string]string{key: ""} }
	}
	leaving := func(state v1alpha1.ProvisioningState) func(*v1alpha1.BareMetalHost) {
		return func(o *v1alpha1.BareMetalHost) {
			o.DeletionTimestamp, o.Status.Provisioning.State = new(metav1.NewTime(now)), state
		}
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.BareMetalHost)
		want   bool
	}{
		"one that is paused":           {annotated(v1alpha1.PausedAnnotation), false},
		"one that is moved":            {annotated(v1alpha1.DeleteForMoveAnnotation), false},
		"one that is detached":         {annotated(v1alpha1.DetachedAnnotation), false},
		"one without a BMC":            {func(o *v1alpha1.BareMetalHost) { o.Spec.BMC.Address = "" }, false},
		"one whose BMC cannot be read": {func(o *v1alpha1.BareMetalHost) { o.Spec.BMC.Address = "floppy://x" }, false},
		"one that leaves":              {leaving(v1alpha1.StatePoweringOffBeforeDelete), false},
		"one that is cleaned first":    {leaving(v1alpha1.StateDeprovisioning), true},
		"one in use":                   {func(o *v1alpha1.BareMetalHost) { o.Status.Provisioning.State = v1alpha1.StateProvisioned }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, newHost(tc.change))
			s.keep()
			if _, there := s.get(key()); there != tc.want {
				t.Errorf("there is an image: %v, want %v", there, tc.want)
			}
		})
	}
}

// An image is held until nobody can come to boot it, and no longer.
func TestImagesAreLetGo(t *testing.T) {
	gone := metav1.NewTime(now)
	state := func(st v1alpha1.ProvisioningState) func(*v1alpha1.BareMetalHost) {
		return func(o *v1alpha1.BareMetalHost) { o.Status.Provisioning.State = st }
	}
	leaving := func(o *v1alpha1.BareMetalHost) { o.DeletionTimestamp = &gone }
	released := func(o *v1alpha1.BareMetalHost) {
		o.DeletionTimestamp, o.Finalizers = &gone, []string{"foregroundDeletion"}
	}
	for name, tc := range map[string]struct {
		host    func(*v1alpha1.BareMetalHost) // nil for none
		deleted bool                          // the image
		unbuilt bool
		held    bool
	}{
		"the host is there":                         {host: state(v1alpha1.StateAvailable), held: true},
		"the host is being deleted":                 {host: leaving, held: true},
		"both are, and the host is to be cleaned":   {host: leaving, deleted: true, unbuilt: true, held: true},
		"the host was let go":                       {host: released},
		"the host was let go, and waits for this":   {host: released, deleted: true},
		"the host is gone":                          {},
		"the host is another one":                   {host: func(o *v1alpha1.BareMetalHost) { o.UID = "uid-2" }},
		"somebody wants it gone, and it is booted":  {host: state(v1alpha1.StateInspecting), deleted: true, held: true},
		"somebody wants it gone, and it is nothing": {host: state(v1alpha1.StateInspecting), deleted: true, unbuilt: true},
		"somebody wants it gone, and it rests":      {host: state(v1alpha1.StateAvailable), deleted: true},
		"somebody wants it gone, and it serves": {host: func(o *v1alpha1.BareMetalHost) {
			o.Status.Provisioning.State, o.Status.OperationalStatus = v1alpha1.StateProvisioned, v1alpha1.OperationalStatusServicing
		}, deleted: true, held: true},
		"somebody wants it gone, and the host is paused": {host: func(o *v1alpha1.BareMetalHost) {
			o.Annotations = map[string]string{v1alpha1.PausedAnnotation: ""}
		}, deleted: true, held: true},
	} {
		t.Run(name, func(t *testing.T) {
			i := newImage(newHost(), func(i *v1alpha1.PreprovisioningImage) {
				i.Finalizers = append(i.Finalizers, "another.example.com/finalizer")
				if tc.deleted {
					i.DeletionTimestamp = &gone
				}
				if tc.unbuilt {
					i.Status = v1alpha1.PreprovisioningImageStatus{}
				}
			})
			var o *v1alpha1.BareMetalHost
			if tc.host != nil {
				o = newHost(tc.host)
			}
			s := newSite(t, o, i)
			s.keep()
			if got := s.image(); held(got) != tc.held || !slices.Contains(got.Finalizers, "another.example.com/finalizer") {
				t.Errorf("its finalizers are %v", got.Finalizers)
			}
		})
	}
}

// An image that somebody deletes is made again.
func TestDeletedImageIsMadeAgain(t *testing.T) {
	o := newHost(func(o *v1alpha1.BareMetalHost) { o.Status.Provisioning.State = v1alpha1.StateAvailable })
	s := newSite(t, o, newImage(o))
	old := s.image().UID
	if err := s.client.Delete(t.Context(), s.image()); err != nil {
		t.Fatal(err)
	}
	s.keep()
	if _, there := s.get(key()); there {
		t.Fatal("it is held though its host rests")
	}
	s.keep()
	if s.image().UID == old || s.image().DeletionTimestamp != nil {
		t.Error("it was not made again")
	}
}
