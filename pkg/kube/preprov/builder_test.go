package preprov

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// What an image is answered, by what it asks for and what there is.
func TestAnswers(t *testing.T) {
	type spec = v1alpha1.PreprovisioningImageSpec
	type status = v1alpha1.PreprovisioningImageStatus
	both := []v1alpha1.ImageFormat{"iso", "initrd"}
	all := Config{Enabled: true, ISO: Place{All: isoURL}, Kernel: Place{All: "http://a/k"}, Initrd: Place{All: "http://a/i"}}
	network := Config{Enabled: true, Kernel: Place{X86: "http://a/k"}, Initrd: Place{X86: "http://a/i"}}
	for name, tc := range map[string]struct {
		cfg    Config
		spec   spec
		secret string
		want   status
		reason string
		says   string
	}{
		"the first that there is":      {all, spec{Architecture: "x86_64", AcceptFormats: both}, "", status{Format: "iso", Architecture: "x86_64", ImageUrl: isoURL}, "ImageSuccess", "Generated image"},
		"the other where there is one": {network, spec{Architecture: "x86_64", AcceptFormats: both}, "", status{Format: "initrd", Architecture: "x86_64", ImageUrl: "http://a/i", KernelUrl: "http://a/k"}, "ImageSuccess", "Generated image"},
		"with network data": {
			all,
			spec{Architecture: "x86_64", AcceptFormats: both, NetworkDataName: "network"},
			"7",
			status{Format: "iso", Architecture: "x86_64", ImageUrl: isoURL, NetworkData: v1alpha1.SecretStatus{Name: "network", Version: "7"}},
			"ImageSuccess", "Generated image",
		},
		"no network data":                  {all, spec{Architecture: "x86_64", AcceptFormats: both, NetworkDataName: "network"}, "", status{}, "MissingNetworkData", "NetworkData secret not found"},
		"an architecture that there isn't": {network, spec{Architecture: "aarch64", AcceptFormats: both}, "", status{}, "ConfigurationError", "Architecture not supported"},
		"a format that there isn't":        {network, spec{Architecture: "x86_64", AcceptFormats: both[:1]}, "", status{}, "ConfigurationError", "No acceptable image format supported"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &builder{cfg: tc.cfg, now: func() time.Time { return now }}
			got := b.answer(&v1alpha1.PreprovisioningImage{ObjectMeta: metav1.ObjectMeta{Generation: 4}, Spec: tc.spec}, tc.secret)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(status{}, "Conditions")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			good := map[bool]metav1.ConditionStatus{true: "True", false: "False"}
			for i, kind := range []string{"Error", "Ready"} {
				c := got.Conditions[i]
				if c.Type != kind || c.Status != good[(kind == "Ready") == (tc.reason == "ImageSuccess")] || c.Reason != tc.reason || c.Message != tc.says || c.ObservedGeneration != 4 {
					t.Errorf("condition %+v", c)
				}
			}
		})
	}
}

// Whether images are built here is decided by what there is.
func TestWhetherAnythingIsBuilt(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg  Config
		want bool
	}{
		"nothing said":           {Config{Enabled: true}, false},
		"an ISO":                 {Config{Enabled: true, ISO: Place{All: isoURL}}, true},
		"an ISO in a list":       {Config{Enabled: true, ISO: Place{ByArchitecture: "ppc64le:" + isoURL}}, true},
		"a kernel alone":         {Config{Enabled: true, Kernel: Place{All: isoURL}}, false},
		"halves of two machines": {Config{Enabled: true, Kernel: Place{X86: isoURL}, Initrd: Place{ARM: isoURL}}, false},
		"switched off":           {Config{ISO: Place{All: isoURL}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.cfg.builds(); got != tc.want {
				t.Errorf("it builds: %v", got)
			}
		})
	}
}

// A missing Secret is looked for again, ever more seldom, and the answer follows it.
func TestMissingNetworkData(t *testing.T) {
	o := newHost(func(o *v1alpha1.BareMetalHost) { o.Spec.PreprovisioningNetworkDataName = "network" })
	s := newSite(t, o, newImage(o, func(i *v1alpha1.PreprovisioningImage) { i.Status = v1alpha1.PreprovisioningImageStatus{} }))
	for passed, want := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Minute: 70 * time.Second, time.Hour: 10 * time.Minute} {
		s.now = now
		s.build()
		s.now = now.Add(passed)
		if again := s.build(); again != want {
			t.Errorf("after %s it is looked for again in %s, want %s", passed, again, want)
		}
	}
	s.network = "7"
	s.build()
	if w := wish(o, s.image(), "7"); w.ISO != isoURL {
		t.Errorf("the host boots %+v", w)
	}
	version := s.image().ResourceVersion
	if again := s.build(); again != 0 || s.image().ResourceVersion != version {
		t.Errorf("it is written again, and in %s once more", again)
	}
	s.network = "8"
	s.build()
	if w := wish(o, s.image(), "8"); w.ISO != isoURL {
		t.Errorf("with other network data the host boots %+v", w)
	}
}

// What another builder held is let go once nobody else holds it.
func TestFinalizerOfBuilders(t *testing.T) {
	o := newHost()
	s := newSite(t, o, newImage(o, func(i *v1alpha1.PreprovisioningImage) {
		i.Finalizers = append(i.Finalizers, v1alpha1.PreprovisioningImageFinalizer)
	}))
	if err := s.client.Delete(t.Context(), s.image()); err != nil {
		t.Fatal(err)
	}
	s.build()
	if len(s.image().Finalizers) != 2 {
		t.Fatalf("its finalizers are %v", s.image().Finalizers)
	}
	s.host = nil
	s.keep()
	s.build()
	if i, there := s.get(key()); there {
		t.Errorf("it is held by %v", i.Finalizers)
	}
}
