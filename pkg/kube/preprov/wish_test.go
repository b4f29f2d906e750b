package preprov

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const iso, isoURL = v1alpha1.ImageFormatISO, "http://192.0.2.80/own.iso"

func newHost(changes ...func(*v1alpha1.BareMetalHost)) *v1alpha1.BareMetalHost {
	o := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: "rack-1", UID: "uid-1", Labels: map[string]string{"site": "north"}, Finalizers: []string{v1alpha1.BareMetalHostFinalizer},
	}}
	o.Spec.BMC.Address, o.Spec.Architecture = "redfish-virtualmedia://192.0.2.10/redfish/v1/Systems/1", "x86_64"
	o.Status.Provisioning.State = v1alpha1.StateInspecting
	for _, c := range changes {
		c(o)
	}
	return o
}

// newImage is the image of a host as it is once it was built, but for changes.
func newImage(o *v1alpha1.BareMetalHost, changes ...func(*v1alpha1.PreprovisioningImage)) *v1alpha1.PreprovisioningImage {
	i := &v1alpha1.PreprovisioningImage{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, UID: "image-1", Generation: 2}}
	aim(o, i)
	i.Status = v1alpha1.PreprovisioningImageStatus{ImageUrl: isoURL, Format: iso, Architecture: i.Spec.Architecture, Conditions: []metav1.Condition{ready(2)}}
	for _, c := range changes {
		c(i)
	}
	return i
}

func ready(generation int64) metav1.Condition {
	return metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "ImageSuccess", ObservedGeneration: generation}
}

func failed(generation int64) metav1.Condition {
	return metav1.Condition{Type: "Error", Status: metav1.ConditionTrue, Reason: "ConfigurationError", Message: "no such architecture", ObservedGeneration: generation}
}

// What a host boots is what its image says, as far as that is what it asked for.
func TestWish(t *testing.T) {
	type image = v1alpha1.PreprovisioningImage
	at := metav1.NewTime(now)
	waits := func(what string) event.RamdiskWish {
		return event.RamdiskWish{Waits: "the PreprovisioningImage lab/rack-1 " + what}
	}
	built, problem := event.RamdiskWish{ISO: isoURL}, event.RamdiskWish{Problem: "no such architecture"}
	networked := func(o *v1alpha1.BareMetalHost) { o.Spec.PreprovisioningNetworkDataName = "network" }
	version := func(v string) func(*image) {
		return func(i *image) { i.Status.NetworkData = v1alpha1.SecretStatus{Name: "network", Version: v} }
	}
	for name, tc := range map[string]struct {
		host  func(*v1alpha1.BareMetalHost)
		image func(*image) // nil for none
		want  event.RamdiskWish
	}{
		"none":                        {nil, nil, waits("to be built")},
		"one that is ready":           {nil, func(*image) {}, built},
		"one for another machine":     {func(o *v1alpha1.BareMetalHost) { o.Spec.Architecture = "aarch64" }, func(i *image) { i.Spec.Architecture = "x86_64" }, waits("to be built")},
		"one that was built for less": {nil, func(i *image) { i.Status.Architecture = "aarch64" }, waits("to be built")},
		"one that the BMC cannot boot": {
			func(o *v1alpha1.BareMetalHost) { o.Spec.BMC.Address = "redfish://192.0.2.10/1" }, func(*image) {}, waits("to be built"),
		},
		"one that is not ready":     {nil, func(i *image) { i.Status.Conditions = nil }, waits("to be built")},
		"one that was ready before": {nil, func(i *image) { i.Status.Conditions = []metav1.Condition{ready(1)} }, waits("to be built")},
		"one that lies nowhere":     {nil, func(i *image) { i.Status.ImageUrl = "" }, waits("to be built")},
		"one that cannot be built": {nil, func(i *image) {
			i.Status = v1alpha1.PreprovisioningImageStatus{Conditions: []metav1.Condition{failed(2)}}
		}, problem},
		"an error and ready":             {nil, func(i *image) { i.Status.Conditions = []metav1.Condition{ready(2), failed(0)} }, problem},
		"an error of what it was before": {nil, func(i *image) { i.Status.Conditions = []metav1.Condition{ready(2), failed(1)} }, built},
		"network data":                   {networked, version("7"), built},
		"older network data":             {networked, version("6"), waits("to be built with the present network data")},
		"no network data":                {networked, func(*image) {}, waits("to be built with the present network data")},
		"network data that are gone":     {nil, version("7"), waits("to be built with the present network data")},
		"a kernel and an initrd": {nil, func(i *image) {
			i.Status.Format, i.Status.ImageUrl, i.Status.KernelUrl, i.Status.ExtraKernelParams = "initrd", "http://192.0.2.80/i", "http://192.0.2.80/k", "a=b"
		}, event.RamdiskWish{Initrd: "http://192.0.2.80/i", Kernel: "http://192.0.2.80/k", Params: "a=b"}},
		"one whose URL has a login": {nil, func(i *image) { i.Status.ImageUrl = "http://u:hunter2@192.0.2.80/i" }, event.RamdiskWish{
			Problem: admission.RamdiskLogins(v1alpha1.PreprovisioningImageStatus{ImageUrl: "http://u:p@h/"}).ToAggregate().Error(),
		}},
		"an error that tells a login": {nil, func(i *image) {
			i.Status.Conditions = []metav1.Condition{failed(2)}
			i.Status.Conditions[0].Message = "fetch http://u:hunter2@192.0.2.80/i"
		}, event.RamdiskWish{Problem: "fetch http://192.0.2.80/i"}},
		"one that goes with the host":  {nil, func(i *image) { i.DeletionTimestamp, i.Generation = &at, 3 }, built},
		"one that is gone in a moment": {nil, func(i *image) { i.DeletionTimestamp, i.Finalizers = &at, nil }, waits("to be made again: it is being deleted")},
		"another's":                    {nil, func(i *image) { i.OwnerReferences[0].UID = "uid-0" }, waits("to be made, where there is one that BareMetalHost rack-1 (uid-0) controls")},
		"an address that is none": {
			func(o *v1alpha1.BareMetalHost) { o.Spec.BMC.Address = "floppy://x" }, nil,
			waits("to be made, for which spec.bmc.address has to be one that can be read"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newHost()
			if tc.host != nil {
				tc.host(o)
			}
			var i *image
			if tc.image != nil {
				i = newImage(o, tc.image)
			}
			if diff := cmp.Diff(tc.want, wish(o, i, "7")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// An image is asked for in the forms that the BMC can boot, the best first, and for
// the machine's architecture.
func TestSpec(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.BareMetalHost)
		want   v1alpha1.PreprovisioningImageSpec
	}{
		"virtual media": {func(*v1alpha1.BareMetalHost) {}, v1alpha1.PreprovisioningImageSpec{Architecture: "x86_64", AcceptFormats: []v1alpha1.ImageFormat{"iso", "initrd"}}},
		"the network": {
			func(o *v1alpha1.BareMetalHost) { o.Spec.BMC.Address = "ipmi://192.0.2.10" },
			v1alpha1.PreprovisioningImageSpec{Architecture: "x86_64", AcceptFormats: []v1alpha1.ImageFormat{"initrd"}},
		},
		"what was inspected": {func(o *v1alpha1.BareMetalHost) {
			o.Spec.Architecture, o.Status.HardwareDetails = "", &v1alpha1.HardwareDetails{CPU: v1alpha1.CPU{Arch: "aarch64"}}
			o.Spec.PreprovisioningNetworkDataName = "network"
		}, v1alpha1.PreprovisioningImageSpec{Architecture: "aarch64", NetworkDataName: "network", AcceptFormats: []v1alpha1.ImageFormat{"iso", "initrd"}}},
		"nothing known yet": {
			func(o *v1alpha1.BareMetalHost) { o.Spec.Architecture = "" },
			v1alpha1.PreprovisioningImageSpec{Architecture: ownArchitecture(), AcceptFormats: []v1alpha1.ImageFormat{"iso", "initrd"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := specOf(newHost(tc.change))
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A file is looked for by its architecture first, then in the list, then for all.
func TestPlace(t *testing.T) {
	p := Place{All: "http://a/all", X86: "http://a/x86", ByArchitecture: "x86_64:http://a/other, PPC64LE:http://a/ppc"}
	if err := p.validate("deploy-iso"); err != nil {
		t.Fatal(err)
	}
	for arch, want := range map[string]string{"x86_64": "http://a/x86", "X86_64": "http://a/x86", "ppc64le": "http://a/ppc", "aarch64": "http://a/all"} {
		if got := p.of(arch); got != want {
			t.Errorf("%s: %q, want %q", arch, got, want)
		}
	}
	for says, bad := range map[string]Place{
		"deploy-iso-url: want a URL":            {All: "x"},
		"deploy-iso-url-aarch64: want a URL":    {ARM: "x"},
		"deploy-iso-url-x86-64: want a URL wit": {X86: "http://u:p@a/b"},
		"deploy-iso-by-arch: want ARCHITECTURE": {ByArchitecture: "x86_64:http://a/b,x"},
	} {
		if err := bad.validate("deploy-iso"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want it to say %q", err, says)
		}
	}
}
