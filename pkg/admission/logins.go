package admission

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// What to do instead of writing a login into a URL.
const (
	insteadForFiles  = "serve it without a login where only the networks of BMCs and provisioning reach it"
	insteadForImages = "have Ironic log in by its own [deploy] image_server_auth_strategy, or " + insteadForFiles
	insteadForDisks  = "use an oci:// image with ociAuthSecretName, " + insteadForImages
	insteadForEvents = "have it sent as a header, from a Secret that httpHeadersRef names"
)

// loginIn is the fault of a URL with a login in it. The API takes it, as upstream's
// does; it is not followed, since whatever is followed stands in messages, statuses
// and logs.
func loginIn(path *field.Path, url, instead string) field.ErrorList {
	if !v1alpha1.HoldsLogin(url) {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "holds a login, with which it is not used: it would be seen in statuses, messages and logs. Take it out, and "+instead)}
}

// ImageLogins finds logins in the URLs of a host's, or claim's, image.
func ImageLogins(image *v1alpha1.Image) field.ErrorList {
	if image == nil {
		return nil
	}
	path := field.NewPath("spec", "image")
	return append(loginIn(path.Child("url"), image.URL, insteadForDisks), loginIn(path.Child("checksum"), image.Checksum, insteadForDisks)...)
}

// DataImageLogins finds a login in the URL of a DataImage.
func DataImageLogins(image *v1alpha1.DataImage) field.ErrorList {
	return loginIn(field.NewPath("spec", "url"), image.Spec.URL, insteadForImages)
}

// SubscriptionLogins finds a login in the destination of a BMCEventSubscription.
func SubscriptionLogins(s *v1alpha1.BMCEventSubscription) field.ErrorList {
	return loginIn(field.NewPath("spec", "destination"), s.Spec.Destination, insteadForEvents)
}

// FirmwareLogins finds logins in the URLs of updates.
func FirmwareLogins(components *v1alpha1.HostFirmwareComponents) field.ErrorList {
	var errs field.ErrorList
	for i, update := range components.Spec.Updates {
		errs = append(errs, UpdateLogins(i, update)...)
	}
	return errs
}

// UpdateLogins finds a login in the URL of one update, the i-th of its object.
func UpdateLogins(i int, update v1alpha1.FirmwareUpdate) field.ErrorList {
	return loginIn(field.NewPath("spec", "updates").Index(i).Child("url"), update.URL, insteadForFiles)
}

// RamdiskLogins finds logins in the URLs that whoever built a PreprovisioningImage
// gave.
func RamdiskLogins(status v1alpha1.PreprovisioningImageStatus) field.ErrorList {
	path := field.NewPath("status")
	return append(loginIn(path.Child("imageUrl"), status.ImageUrl, insteadForFiles), loginIn(path.Child("kernelUrl"), status.KernelUrl, insteadForFiles)...)
}

// Warnings are faults that forbid nothing, for whoever wrote the object.
func Warnings[T any](faults func(T) field.ErrorList) func(T) []string {
	return func(o T) []string {
		var warnings []string
		for _, err := range faults(o) {
			warnings = append(warnings, err.Field+" "+err.Detail)
		}
		return warnings
	}
}
