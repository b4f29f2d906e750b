package admission

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// ValidateSubscription says what is wrong with a new BMCEventSubscription.
func ValidateSubscription(subscription *v1alpha1.BMCEventSubscription) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if subscription.Spec.HostName == "" {
		errs = append(errs, field.Required(spec.Child("hostName"), "hostName cannot be empty"))
	}
	if ref := subscription.Spec.HTTPHeadersRef; ref != nil && ref.Namespace != subscription.Namespace {
		errs = append(errs, field.Forbidden(spec.Child("httpHeadersRef", "namespace"), fmt.Sprintf(
			"httpHeadersRef secret must be in the same namespace as the BMCEventSubscription; write namespace: %s", subscription.Namespace)))
	}
	return append(errs, validateDestination(subscription.Spec.Destination, spec.Child("destination"))...)
}

func validateDestination(destination string, path *field.Path) field.ErrorList {
	if destination == "" {
		return field.ErrorList{field.Required(path, "destination cannot be empty")}
	}
	u, err := parseRequestURI(destination)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("destination is invalid: %v", err))}
	case u.Path == "":
		return field.ErrorList{field.Invalid(path, withoutPassword(destination), "hostname-only destination must have a trailing slash")}
	default:
		return nil
	}
}

// ValidateSubscriptionUpdate says what is wrong with a change of a
// BMCEventSubscription: any change of its spec.
func ValidateSubscriptionUpdate(before, after *v1alpha1.BMCEventSubscription) field.ErrorList {
	if equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec"), "subscriptions cannot be updated, please recreate it")}
}

// ValidateDataImage says what is wrong with a DataImage.
func ValidateDataImage(image *v1alpha1.DataImage) field.ErrorList {
	err := checkImageURL(image.Spec.URL)
	if err == nil {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "url"), field.OmitValueType{},
		fmt.Sprintf("URL %q is invalid: %v", withoutPassword(image.Spec.URL), err))}
}

// ValidateDataImageUpdate says what is wrong with a change of a DataImage.
// Faults that it had already are let be as long as the spec stays as it is.
func ValidateDataImageUpdate(before, after *v1alpha1.DataImage) field.ErrorList {
	if before.Spec == after.Spec {
		return nil
	}
	return ValidateDataImage(after)
}

// ValidateFirmwareComponents says what is wrong with HostFirmwareComponents, as
// far as it does not depend on the machine.
func ValidateFirmwareComponents(components *v1alpha1.HostFirmwareComponents) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "updates")
	for i, update := range components.Spec.Updates {
		if err := checkImageURL(update.URL); err != nil {
			errs = append(errs, field.Invalid(path.Index(i).Child("url"), field.OmitValueType{}, fmt.Sprintf(
				"invalid URL %q in FirmwareUpdate in component %q: %v", withoutPassword(update.URL), update.Component, err)))
		}
	}
	return errs
}

// ValidateFirmwareComponentsUpdate says what is wrong with a change of
// HostFirmwareComponents. Faults that they had already are let be as long as
// the spec stays as it is.
func ValidateFirmwareComponentsUpdate(before, after *v1alpha1.HostFirmwareComponents) field.ErrorList {
	if equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return nil
	}
	return ValidateFirmwareComponents(after)
}

// ValidateSwitch says what is wrong with a BareMetalSwitch: a login that lies
// in another namespace.
func ValidateSwitch(s *v1alpha1.BareMetalSwitch) field.ErrorList {
	return validateSecretNamespace(s.Spec.Credentials, s.Namespace, field.NewPath("spec"), "credentials")
}

// ValidateSwitchUpdate says what is wrong with a change of a BareMetalSwitch.
// Faults that it had already are let be as long as the spec stays as it is.
func ValidateSwitchUpdate(before, after *v1alpha1.BareMetalSwitch) field.ErrorList {
	if equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return nil
	}
	return ValidateSwitch(after)
}

// PolicyWarnings says what is allowed in a HostDeployPolicy and still lets
// nobody in.
func PolicyWarnings(policy *v1alpha1.HostDeployPolicy) []string {
	claimants := policy.Spec.HostClaimNamespaces
	if claimants == nil {
		return []string{"spec.hostClaimNamespaces is missing, so no HostClaim may have a host of this namespace; write {} to let every namespace in"}
	}
	if _, err := regexp.Compile(claimants.NameMatches); err != nil {
		return []string{fmt.Sprintf("spec.hostClaimNamespaces.nameMatches: %v; until it is corrected the policy lets nobody in", err)}
	}
	return nil
}
