package lifecycle

import (
	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

// ErrorTypeOf is what the failure of an operation is called in a host's status.
func ErrorTypeOf(k event.Kind) v1alpha1.ErrorType {
	switch k {
	case event.Adopt:
		return v1alpha1.ProvisionedRegistrationError
	case event.Detach:
		return v1alpha1.DetachError
	case event.Inspect:
		return v1alpha1.InspectionError
	case event.Prepare:
		return v1alpha1.PreparationError
	case event.Deploy, event.Undeploy, event.Media:
		return v1alpha1.ProvisioningError
	case event.Service:
		return v1alpha1.ServicingError
	case event.PowerOn, event.PowerOff, event.Reboot, event.Subscribe:
		return v1alpha1.PowerManagementError
	default:
		return v1alpha1.RegistrationError
	}
}
