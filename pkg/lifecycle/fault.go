package lifecycle

import (
	"slices"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// faulty are the error types that a fault of a specification can have, in the
// order in which a host's life comes by what they keep from it.
func faulty() []v1alpha1.ErrorType {
	return []v1alpha1.ErrorType{v1alpha1.RegistrationError, v1alpha1.InspectionError, v1alpha1.PreparationError, v1alpha1.ProvisioningError}
}

// Refused reports whether the specification has a fault that keeps from being
// begun what would fail with an error of type t. A fault of an earlier part of
// a host's life keeps the later ones from it too.
func Refused(h Host, t v1alpha1.ErrorType) bool {
	fault := h.Intent.Invalid
	return fault != nil && slices.Index(faulty(), fault.Type) <= slices.Index(faulty(), t)
}

// FaultNews tells of a fault of the specification when it is new. One that
// keeps a host from being registered is told of by the registration.
func FaultNews(before, after Host) *Announcement {
	was, is := before.Intent.Invalid, after.Intent.Invalid
	switch {
	case is == nil, was != nil && was.Message == is.Message:
		return nil
	case !after.Registration.Registered && Managed(after.Intent) && is.Type == v1alpha1.RegistrationError:
		return nil
	default:
		return &Announcement{Reason: errorReason(*is), Message: Message(*is), Warning: true}
	}
}
