package preprov

import (
	"fmt"
	"runtime"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
	"github.com/metalbus/metalbus/pkg/bmcaddress"
)

// specOf is what the ramdisk of a host must be like. It is an error that the
// host's BMC address cannot be read.
func specOf(o *v1alpha1.BareMetalHost) (v1alpha1.PreprovisioningImageSpec, error) {
	address, err := bmcaddress.Parse(o.Spec.BMC.Address, o.Spec.BMC.DisableCertificateVerification)
	if err != nil {
		return v1alpha1.PreprovisioningImageSpec{}, fmt.Errorf("read the BMC address of %s/%s: %w", o.Namespace, o.Name, err)
	}
	s := v1alpha1.PreprovisioningImageSpec{NetworkDataName: o.Spec.PreprovisioningNetworkDataName, Architecture: architectureOf(o)}
	if address.Capabilities().ISOPreprovisioningImage {
		s.AcceptFormats = append(s.AcceptFormats, v1alpha1.ImageFormatISO)
	}
	s.AcceptFormats = append(s.AcceptFormats, v1alpha1.ImageFormatInitRD)
	return s, nil
}

// architectureOf is a host's architecture, that of this machine until it is known.
func architectureOf(o *v1alpha1.BareMetalHost) string {
	switch hw := o.Status.HardwareDetails; {
	case o.Spec.Architecture != "":
		return o.Spec.Architecture
	case hw != nil && hw.CPU.Arch != "":
		return hw.CPU.Arch
	default:
		return ownArchitecture()
	}
}

func ownArchitecture() string {
	if arch := map[string]string{"amd64": x86, "arm64": arm}[runtime.GOARCH]; arch != "" {
		return arch
	}
	return runtime.GOARCH
}

// toBeBuilt is what an image is waited for until it is ready. How far it has come
// is for it to say: a host that told each step would be written for each.
const toBeBuilt = "to be built"

// wish is what a host is to boot, by its image, nil if there is none. network is
// the version of the Secret with its network data.
func wish(o *v1alpha1.BareMetalHost, image *v1alpha1.PreprovisioningImage, network string) event.RamdiskWish {
	waits := func(format string, args ...any) event.RamdiskWish {
		return event.RamdiskWish{Waits: "the PreprovisioningImage " + o.Namespace + "/" + o.Name + " " + fmt.Sprintf(format, args...)}
	}
	wanted, err := specOf(o)
	switch {
	case err != nil:
		return waits("to be made, for which spec.bmc.address has to be one that can be read")
	case image == nil:
		return waits(toBeBuilt)
	case others(o, image) != "":
		return waits("to be made, where there is one that %s controls", others(o, image))
	case image.DeletionTimestamp != nil && held(image) && image.Status.ImageUrl != "":
		return booted(image) // what it asks for, and who built it, does not matter any more
	case image.DeletionTimestamp != nil:
		return waits("to be made again: it is being deleted")
	case !equality.Semantic.DeepEqual(image.Spec, wanted):
		return waits(toBeBuilt)
	}
	return judge(image, network, waits)
}

// judge is what an image says that asks for the right thing.
func judge(image *v1alpha1.PreprovisioningImage, network string, waits func(string, ...any) event.RamdiskWish) event.RamdiskWish {
	spec, is := image.Spec, image.Status
	switch failed := meta.FindStatusCondition(is.Conditions, string(v1alpha1.ConditionImageError)); {
	case failed != nil && failed.Status == metav1.ConditionTrue && present(failed, image):
		return event.RamdiskWish{Problem: trouble(failed)}
	case is.Architecture != spec.Architecture || !slices.Contains(spec.AcceptFormats, is.Format):
		return waits(toBeBuilt)
	case is.NetworkData.Name != spec.NetworkDataName || (spec.NetworkDataName != "" && is.NetworkData.Version != network):
		return waits("to be built with the present network data")
	}
	ready := meta.FindStatusCondition(is.Conditions, string(v1alpha1.ConditionImageReady))
	if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != image.Generation || is.ImageUrl == "" {
		return waits(toBeBuilt)
	}
	return booted(image)
}

// present reports whether a condition is about what the image asks for now. Some
// builders do not say.
func present(c *metav1.Condition, image *v1alpha1.PreprovisioningImage) bool {
	return c.ObservedGeneration == 0 || c.ObservedGeneration == image.Generation
}

func trouble(c *metav1.Condition) string {
	if c.Message != "" {
		return v1alpha1.WithoutLogins(c.Message)
	}
	return "the image cannot be built: " + c.Reason
}

// booted is what is booted of an image that is there.
func booted(image *v1alpha1.PreprovisioningImage) event.RamdiskWish {
	is := image.Status
	if faults := admission.RamdiskLogins(is); len(faults) > 0 {
		return event.RamdiskWish{Problem: faults.ToAggregate().Error()}
	}
	if is.Format == v1alpha1.ImageFormatISO {
		return event.RamdiskWish{ISO: is.ImageUrl}
	}
	return event.RamdiskWish{Initrd: is.ImageUrl, Kernel: is.KernelUrl, Params: is.ExtraKernelParams}
}

// held reports whether the image is held by our finalizer.
func held(image *v1alpha1.PreprovisioningImage) bool {
	return slices.Contains(image.Finalizers, v1alpha1.HostPreprovisioningImageFinalizer)
}

// others is who controls an image that is not this host's, "" if it is.
func others(o *v1alpha1.BareMetalHost, image *v1alpha1.PreprovisioningImage) string {
	owner := metav1.GetControllerOf(image)
	if owner == nil || owner.UID == o.UID {
		return ""
	}
	return owner.Kind + " " + owner.Name + " (" + string(owner.UID) + ")"
}
