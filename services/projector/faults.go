package projector

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// concern is what a fault of a field is about.
type concern struct {
	field string // with all that is below it
	kind  v1alpha1.ErrorType
	class event.Class
}

// concerns are in the order in which a host's life comes by them. What is in
// none of them keeps a host from being registered.
func concerns() []concern {
	return []concern{
		{"spec.bmc", v1alpha1.RegistrationError, event.ClassAddress},
		{"spec.bootMACAddress", v1alpha1.RegistrationError, event.ClassAddress},
		{"", v1alpha1.RegistrationError, event.ClassUnsupported},
		{"spec.inspectionMode", v1alpha1.InspectionError, event.ClassInspection},
		{"spec.raid", v1alpha1.PreparationError, event.ClassHardware},
		{"spec.rootDeviceHints", v1alpha1.PreparationError, event.ClassHardware},
		{"spec.image", v1alpha1.ProvisioningError, event.ClassImage},
		{"spec.userData", v1alpha1.ProvisioningError, event.ClassUnsupported},
		{"spec.networkData", v1alpha1.ProvisioningError, event.ClassUnsupported},
		{"spec.metaData", v1alpha1.ProvisioningError, event.ClassUnsupported},
	}
}

// faultOf is what the rules of admission have against a host that was stored
// without them, in their words: before they were, or while nobody was asked.
// Annotations are requests, and are judged one by one when they are read. A login in
// the URL of an image is a fault where the image is to be fetched; what the machine
// runs already stays.
func faultOf(o *v1alpha1.BareMetalHost, before lifecycle.Host) *event.Problem {
	errs := slices.DeleteFunc(admission.ValidateHost(o), func(err *field.Error) bool {
		return strings.HasPrefix(err.Field, "metadata.annotations")
	})
	if image := o.Spec.Image; image != nil && !o.Spec.ExternallyProvisioned && image.WithoutLogin().URL != before.Provisioning.Image.URL {
		errs = append(errs, admission.ImageLogins(image)...)
	}
	if len(errs) == 0 {
		return nil
	}
	first := len(concerns())
	for _, err := range errs {
		first = min(first, concernOf(err.Field))
	}
	c := concerns()[first]
	return &event.Problem{Type: c.kind, Class: c.class, Local: true, Message: errs.ToAggregate().Error(), Next: "Correct the host"}
}

// concernOf is the place of what a field is about among the concerns.
func concernOf(name string) int {
	other := 0
	for i, c := range concerns() {
		if c.field == "" {
			other = i
			continue
		}
		if name == c.field || strings.HasPrefix(name, c.field+".") || strings.HasPrefix(name, c.field+"[") {
			return i
		}
	}
	return other
}
