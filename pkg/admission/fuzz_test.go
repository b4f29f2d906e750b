package admission_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
)

// Hosts that were mutated byte by byte: no rule panics, a host that changes
// nothing has nothing new that is wrong, and it comes back from JSON as it went
// there.
func FuzzHost(f *testing.F) {
	for _, h := range []*host{
		newHost(),
		newHost(annotated(v1alpha1.StatusAnnotation, `{"operationalStatus":"OK"}`, "reboot.metal3.io", `{"mode":"hard"}`)),
		newHost(inspection("disabled"), annotated("inspect.metal3.io/hardwaredetails", `{"nics":[{"mac":"00:00:5e:00:53:01"}]}`)),
		newHost(image(v1alpha1.Image{URL: "oci://reg.example/os", Checksum: sum}), hints(v1alpha1.RootDeviceHints{DeviceName: "/dev/sda"})),
		newHost(nics(v1alpha1.NetworkInterface{Name: "eth0"}), raid(v1alpha1.RAIDConfig{
			HardwareRAIDVolumes: []v1alpha1.HardwareRAIDVolume{{Level: "1", PhysicalDisks: []string{"a"}}},
		})),
	} {
		seed, err := json.Marshal(h)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var h v1alpha1.BareMetalHost
		if err := json.Unmarshal(data, &h); err != nil {
			return
		}
		admission.ValidateHost(&h)
		admission.HostWarnings(&h)
		if errs := admission.ValidateHostUpdate(&h, h.DeepCopy()); len(errs) > 0 {
			t.Fatalf("nothing changed, and yet: %v", errs.ToAggregate())
		}
		out, err := json.Marshal(&h)
		if err != nil {
			return // a time beyond the year 9999, which no API server stores
		}
		var again v1alpha1.BareMetalHost
		if err := json.Unmarshal(out, &again); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		outAgain, err := json.Marshal(&again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(out), string(outAgain)); diff != "" {
			t.Fatalf("(-want +got)\n%s", diff)
		}
	})
}
