package v1alpha1_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

func TestBootMode(t *testing.T) {
	t.Parallel()
	host := v1alpha1.BareMetalHost{}
	if got := host.BootMode(); got != v1alpha1.UEFI {
		t.Errorf("without a wish: %q, want UEFI", got)
	}
	host.Spec.BootMode = v1alpha1.Legacy
	if got := host.BootMode(); got != v1alpha1.Legacy {
		t.Errorf("with a wish: %q, want legacy", got)
	}
}

func TestHasBMCDetails(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		bmc  v1alpha1.BMCDetails
		want bool
	}{
		"nothing":                      {},
		"only the TLS switch":          {bmc: v1alpha1.BMCDetails{DisableCertificateVerification: true}},
		"an address alone is enough":   {bmc: v1alpha1.BMCDetails{Address: "192.0.2.1"}, want: true},
		"credentials alone are enough": {bmc: v1alpha1.BMCDetails{CredentialsName: "s"}, want: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := v1alpha1.BareMetalHost{Spec: v1alpha1.BareMetalHostSpec{BMC: tt.bmc}}
			if got := host.HasBMCDetails(); got != tt.want {
				t.Errorf("HasBMCDetails() = %t, want %t", got, tt.want)
			}
		})
	}
}

func TestInspectionDisabled(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		mode        v1alpha1.InspectionMode
		annotations map[string]string
		want        bool
	}{
		"neither field nor annotation":  {},
		"field says agent":              {mode: v1alpha1.InspectionModeAgent},
		"field says disabled":           {mode: v1alpha1.InspectionModeDisabled, want: true},
		"annotation asks to inspect":    {annotations: map[string]string{"inspect.metal3.io": ""}},
		"annotation says disabled":      {annotations: map[string]string{"inspect.metal3.io": "disabled"}, want: true},
		"annotation wins over the mode": {mode: v1alpha1.InspectionModeFast, annotations: map[string]string{"inspect.metal3.io": "disabled"}, want: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := v1alpha1.BareMetalHost{
				ObjectMeta: metav1.ObjectMeta{Annotations: tt.annotations},
				Spec:       v1alpha1.BareMetalHostSpec{InspectionMode: tt.mode},
			}
			if got := host.InspectionDisabled(); got != tt.want {
				t.Errorf("InspectionDisabled() = %t, want %t", got, tt.want)
			}
		})
	}
}

func TestNeedsAndWasProvisioned(t *testing.T) {
	t.Parallel()
	image := &v1alpha1.Image{URL: "http://192.0.2.80/a"}
	custom := func(method string) *v1alpha1.CustomDeploy { return &v1alpha1.CustomDeploy{Method: method} }
	tests := map[string]struct {
		spec       v1alpha1.BareMetalHostSpec
		status     v1alpha1.ProvisionStatus
		needs, was bool
	}{
		"nothing wanted":                    {spec: v1alpha1.BareMetalHostSpec{Online: true}},
		"an image wanted":                   {spec: v1alpha1.BareMetalHostSpec{Online: true, Image: image}, needs: true},
		"an image wanted on a host off":     {spec: v1alpha1.BareMetalHostSpec{Image: image}},
		"an image without a url":            {spec: v1alpha1.BareMetalHostSpec{Online: true, Image: &v1alpha1.Image{}}},
		"an image wanted and there":         {spec: v1alpha1.BareMetalHostSpec{Online: true, Image: image}, status: v1alpha1.ProvisionStatus{Image: *image}, was: true},
		"another image is there":            {spec: v1alpha1.BareMetalHostSpec{Online: true, Image: image}, status: v1alpha1.ProvisionStatus{Image: v1alpha1.Image{URL: "http://192.0.2.80/b"}}, was: true},
		"a custom step wanted":              {spec: v1alpha1.BareMetalHostSpec{Online: true, CustomDeploy: custom("a")}, needs: true},
		"a custom step without a name":      {spec: v1alpha1.BareMetalHostSpec{Online: true, CustomDeploy: custom("")}},
		"a custom step wanted and done":     {spec: v1alpha1.BareMetalHostSpec{Online: true, CustomDeploy: custom("a")}, status: v1alpha1.ProvisionStatus{CustomDeploy: custom("a")}, was: true},
		"another custom step was done":      {spec: v1alpha1.BareMetalHostSpec{Online: true, CustomDeploy: custom("a")}, status: v1alpha1.ProvisionStatus{CustomDeploy: custom("b")}, needs: true, was: true},
		"an image of ours, now others' job": {spec: v1alpha1.BareMetalHostSpec{Online: true, ExternallyProvisioned: true}, status: v1alpha1.ProvisionStatus{Image: *image}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := v1alpha1.BareMetalHost{Spec: tt.spec, Status: v1alpha1.BareMetalHostStatus{Provisioning: tt.status}}
			if got := host.NeedsProvisioning(); got != tt.needs {
				t.Errorf("NeedsProvisioning() = %t, want %t", got, tt.needs)
			}
			if got := host.WasProvisioned(); got != tt.was {
				t.Errorf("WasProvisioned() = %t, want %t", got, tt.was)
			}
		})
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "host-a-bmc", ResourceVersion: "7"}}
	host := v1alpha1.BareMetalHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "host-a"},
		Spec:       v1alpha1.BareMetalHostSpec{BMC: v1alpha1.BMCDetails{CredentialsName: "host-a-bmc"}},
	}
	if got, want := host.CredentialsKey(), (types.NamespacedName{Namespace: "lab", Name: "host-a-bmc"}); got != want {
		t.Errorf("CredentialsKey() = %v, want %v", got, want)
	}
	if host.Status.TriedCredentials.Match(secret) {
		t.Error("nothing was tried, yet the Secret matches")
	}
	host.UpdateTriedCredentials(secret)
	host.UpdateGoodCredentials(secret)
	if !host.Status.TriedCredentials.Match(secret) || !host.Status.GoodCredentials.Match(secret) {
		t.Error("the Secret that was noted does not match")
	}
	for name, change := range map[string]func(*corev1.Secret){
		"name":            func(s *corev1.Secret) { s.Name = "other" },
		"namespace":       func(s *corev1.Secret) { s.Namespace = "other" },
		"resourceVersion": func(s *corev1.Secret) { s.ResourceVersion = "8" },
	} {
		other := *secret.DeepCopy()
		change(&other)
		if host.Status.TriedCredentials.Match(other) {
			t.Errorf("a Secret with another %s matches", name)
		}
	}
}

func TestOperationMetrics(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	host := v1alpha1.BareMetalHost{}
	for _, state := range []v1alpha1.ProvisioningState{
		v1alpha1.StateRegistering, v1alpha1.StateInspecting, v1alpha1.StateProvisioning, v1alpha1.StateDeprovisioning,
	} {
		metric := host.OperationMetricForState(state)
		if metric.Duration() != 0 {
			t.Errorf("%s: duration before the start: %v", state, metric.Duration())
		}
		metric.Start = metav1.NewTime(start)
		metric.End = metav1.NewTime(start.Add(time.Minute))
		if got := host.OperationMetricForState(state).Duration(); got != time.Minute {
			t.Errorf("%s: duration %v, want a minute", state, got)
		}
	}
	if host.OperationMetricForState(v1alpha1.StateAvailable) != nil {
		t.Error("available has no history, yet there is a metric")
	}
}

// Null and empty lists of RAID volumes mean different things, and both must
// come back as they were.
func TestRAIDListsKeepNullAndEmptyApart(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"hardwareRAIDVolumes":null,"softwareRAIDVolumes":null}`,
		`{"hardwareRAIDVolumes":[],"softwareRAIDVolumes":null}`,
		`{"hardwareRAIDVolumes":null,"softwareRAIDVolumes":[]}`,
	} {
		var raid v1alpha1.RAIDConfig
		if err := json.Unmarshal([]byte(text), &raid); err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(raid.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text, string(got)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

// Programs of others read these keys even when they are empty.
func TestRequiredStatusKeysAreAlwaysWritten(t *testing.T) {
	t.Parallel()
	out, err := json.Marshal(v1alpha1.BareMetalHost{})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		`"online":false`, `"operationalStatus":""`, `"errorMessage":""`, `"poweredOn":false`, `"errorCount":0`,
		`"provisioningFailCount":0`, `"state":""`, `"ID":""`, `"image":{"url":""}`, `"start":null`,
	} {
		if !strings.Contains(string(out), key) {
			t.Errorf("%s is missing in %s", key, out)
		}
	}
}
