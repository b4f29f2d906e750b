package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// BootMode is the boot mode that is wanted; DefaultBootMode if none is given.
func (h *BareMetalHost) BootMode() BootMode {
	if h.Spec.BootMode == "" {
		return DefaultBootMode
	}
	return h.Spec.BootMode
}

// HasBMCDetails says whether anything is known of the host's BMC. A host
// without is unmanaged.
func (h *BareMetalHost) HasBMCDetails() bool {
	return h.Spec.BMC.Address != "" || h.Spec.BMC.CredentialsName != ""
}

// InspectionDisabled says whether the host must not be inspected, by field or
// by annotation.
func (h *BareMetalHost) InspectionDisabled() bool {
	return h.Spec.InspectionMode == InspectionModeDisabled ||
		h.Annotations[InspectAnnotationPrefix] == InspectAnnotationValueDisabled
}

// NeedsProvisioning says whether a free host that is wanted on should be given
// an image or a custom deploy step that it does not have yet.
func (h *BareMetalHost) NeedsProvisioning() bool {
	return h.Spec.Online && (h.needsImage() || h.needsCustomDeploy())
}

func (h *BareMetalHost) needsImage() bool {
	return h.Spec.Image != nil && h.Spec.Image.URL != "" && h.Status.Provisioning.Image.URL == ""
}

func (h *BareMetalHost) needsCustomDeploy() bool {
	want, got := h.Spec.CustomDeploy, h.Status.Provisioning.CustomDeploy
	if want == nil || want.Method == "" {
		return false
	}
	return got == nil || got.Method != want.Method
}

// WasProvisioned says whether an image or a custom deploy step of ours is on
// the host.
func (h *BareMetalHost) WasProvisioned() bool {
	deployed := h.Status.Provisioning.Image.URL != "" || h.Status.Provisioning.CustomDeploy != nil
	return !h.Spec.ExternallyProvisioned && deployed
}

// CredentialsKey names the Secret with the BMC's credentials. Its Name is empty
// if the host has none.
func (h *BareMetalHost) CredentialsKey() types.NamespacedName {
	return types.NamespacedName{Namespace: h.Namespace, Name: h.Spec.BMC.CredentialsName}
}

// GetConditions returns the host's conditions.
func (h *BareMetalHost) GetConditions() []metav1.Condition { return h.Status.Conditions }

// SetConditions replaces the host's conditions.
func (h *BareMetalHost) SetConditions(conditions []metav1.Condition) {
	h.Status.Conditions = conditions
}

// UpdateTriedCredentials notes that secret was shown to the BMC.
func (h *BareMetalHost) UpdateTriedCredentials(secret corev1.Secret) {
	h.Status.TriedCredentials = credentialsStatus(secret)
}

// UpdateGoodCredentials notes that the BMC took secret.
func (h *BareMetalHost) UpdateGoodCredentials(secret corev1.Secret) {
	h.Status.GoodCredentials = credentialsStatus(secret)
}

func credentialsStatus(secret corev1.Secret) CredentialsStatus {
	return CredentialsStatus{
		Reference: &corev1.SecretReference{Name: secret.Name, Namespace: secret.Namespace},
		Version:   secret.ResourceVersion,
	}
}

// OperationMetricForState returns where the beginning and end of a state are
// kept, or nil for a state of which they are not.
func (h *BareMetalHost) OperationMetricForState(state ProvisioningState) *OperationMetric {
	history := &h.Status.OperationHistory
	switch state {
	case StateRegistering:
		return &history.Register
	case StateInspecting:
		return &history.Inspect
	case StateProvisioning:
		return &history.Provision
	case StateDeprovisioning:
		return &history.Deprovision
	default:
		return nil
	}
}
