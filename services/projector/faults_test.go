package projector

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Whoever got past admission is told what admission would have said.
func TestFaultOf(t *testing.T) {
	const register, inspect, prepare, provision = v1alpha1.RegistrationError, v1alpha1.InspectionError, v1alpha1.PreparationError, v1alpha1.ProvisioningError
	spec := func(change func(*v1alpha1.BareMetalHostSpec)) *v1alpha1.BareMetalHost {
		return object(func(o *v1alpha1.BareMetalHost) { change(&o.Spec) })
	}
	for name, c := range map[string]struct {
		object *v1alpha1.BareMetalHost
		kind   v1alpha1.ErrorType
		class  event.Class
	}{
		"none":                             {object(), "", ""},
		"an address of a type that is new": {spec(func(s *v1alpha1.BareMetalHostSpec) { s.BMC.Address = "ilo9://x" }), register, event.ClassAddress},
		"no MAC address":                   {spec(func(s *v1alpha1.BareMetalHostSpec) { s.BMC.Address = "libvirt://x" }), register, event.ClassAddress},
		"firmware":                         {spec(func(s *v1alpha1.BareMetalHostSpec) { s.Firmware = &v1alpha1.FirmwareConfig{} }), register, event.ClassUnsupported},
		"a name that is a UUID":            {object(func(o *v1alpha1.BareMetalHost) { o.Name = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6" }), register, event.ClassUnsupported},
		"inspection":                       {spec(func(s *v1alpha1.BareMetalHostSpec) { s.InspectionMode = "x" }), inspect, event.ClassInspection},
		"volumes": {spec(func(s *v1alpha1.BareMetalHostSpec) {
			s.RAID = &v1alpha1.RAIDConfig{HardwareRAIDVolumes: []v1alpha1.HardwareRAIDVolume{{PhysicalDisks: []string{"a"}}}}
		}), prepare, event.ClassHardware},
		"a disk":   {spec(func(s *v1alpha1.BareMetalHostSpec) { s.RootDeviceHints = &v1alpha1.RootDeviceHints{DeviceName: "sda"} }), prepare, event.ClassHardware},
		"an image": {spec(func(s *v1alpha1.BareMetalHostSpec) { s.Image = &v1alpha1.Image{URL: "http://192.0.2.80/os"} }), provision, event.ClassImage},
		"a Secret of another namespace": {spec(func(s *v1alpha1.BareMetalHostSpec) {
			s.MetaData = &corev1.SecretReference{Name: "x", Namespace: "kube-system"}
		}), provision, event.ClassUnsupported},
		"an image and volumes": {spec(func(s *v1alpha1.BareMetalHostSpec) {
			s.Image, s.RootDeviceHints = &v1alpha1.Image{URL: "x"}, &v1alpha1.RootDeviceHints{DeviceName: "sda"}
		}), prepare, event.ClassHardware},
		"a login in the image's URL": {spec(func(s *v1alpha1.BareMetalHostSpec) {
			s.Image = &v1alpha1.Image{URL: "http://u:hunter2@192.0.2.80/os", Checksum: "http://u:hunter2@192.0.2.80/sum"}
		}), provision, event.ClassImage},
		"a login in the URL of what runs already": {spec(func(s *v1alpha1.BareMetalHostSpec) {
			s.Image = &v1alpha1.Image{URL: "http://u:hunter2@192.0.2.80/there", Checksum: "http://u:hunter2@192.0.2.80/sum"}
		}), "", ""},
		"a login in the URL of what others run": {spec(func(s *v1alpha1.BareMetalHostSpec) {
			s.Image, s.ExternallyProvisioned = &v1alpha1.Image{URL: "http://u:hunter2@192.0.2.80/os", Checksum: "x"}, true
		}), "", ""},
		"an annotation is no fault of the host": {object(with("reboot.metal3.io", "now")), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := faultOf(c.object, knows(func(h *lifecycle.Host) { h.Provisioning.Image.URL = "http://192.0.2.80/there" }))
			if got == nil {
				if c.kind != "" {
					t.Error("there is none")
				}
				return
			}
			if strings.Contains(got.Message, "hunter2") {
				t.Errorf("it tells the password: %s", got.Message)
			}
			if got.Type != c.kind || got.Class != c.class || !got.Local {
				t.Errorf("%+v", got)
			}
			for _, err := range admission.ValidateHost(c.object) {
				if !strings.Contains(got.Message, err.Error()) {
					t.Errorf("%q does not say %q", got.Message, err)
				}
			}
		})
	}
}

// FuzzProjection: whatever an object holds, what it asks and what its status
// remembers can be worked out, shown and written, and nobody panics on the way.
func FuzzProjection(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"name":"a","namespace":"lab"},"spec":{"bmc":{"address":"redfish://a:b@c"},"online":true}}`,
		`{"spec":{"image":{"url":"http://a:b@c/d","checksum":"e"}},"status":{"provisioning":{"state":"provisioned","image":{"url":"http://a:b@c/d"}}}}`,
		`{"metadata":{"annotations":{"reboot.metal3.io":"{\"mode\":\"hard\"}","inspect.metal3.io":""}},"status":{"provisioning":{"state":"provisioned"}}}`,
		`{"metadata":{"annotations":{"baremetalhost.metal3.io/detached":"{}"},"deletionTimestamp":"2026-01-02T03:04:05Z"},"spec":{"userData":{"name":"x","namespace":"y"}}}`,
		`{"metadata":{"annotations":{"baremetalhost.metal3.io/paused":""}},"status":{"provisioning":{"state":"deprovisioning","ID":"n","raid":{"hardwareRAIDVolumes":null}},"conditions":[{"type":"Ready"}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var o v1alpha1.BareMetalHost
		if json.Unmarshal(data, &o) != nil {
			return
		}
		if _, err := json.Marshal(&o); err != nil {
			return // a time beyond the year 9999, which no API server stores
		}
		before := knows(func(h *lifecycle.Host) {
			if base := baseOf(&o, "digest"); base != nil {
				h.Intent.Base = base
				h.Registration, h.Inspection, h.Provisioning, h.Power = *base.Registration, *base.Inspection, *base.Provisioning, *base.Power
			}
		})
		s := surroundings{before: before, secret: "11", now: noon}
		next := intentOf(&o, s)
		if next.Spec.Image != nil && v1alpha1.HoldsLogin(next.Spec.Image.URL) {
			t.Errorf("it asks for %s", next.Spec.Image.URL)
		}
		if again := intentOf(o.DeepCopy(), s); again.Hash != next.Hash {
			t.Errorf("asked twice it is %s and %s", next.Hash, again.Hash)
		}
		h := before
		h.Intent = next
		status := draw(&o, h, drawing{generation: o.Generation, now: noon})
		encode(status)
		served(&o, h)
	})
}
