package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"
)

// HostClaimFinalizer keeps a claim until its host was given back.
const HostClaimFinalizer = "metal3.io/hostclaim"

// ChosenHostAnnotation is the host that a claim has or is about to get, as
// namespace/name. It is written before the host is, so that a claim gets one
// host whatever fails on the way.
const ChosenHostAnnotation = "metalbus.io/chosen-host"

// Condition types and reasons of a HostClaim. Provisioned,
// AvailableForProvisioning and Ready are those of BareMetalHost.
const (
	// AssociatedCondition is True once the claim has a host.
	AssociatedCondition = "Associated"
	// BareMetalHostAssociatedReason goes with True.
	BareMetalHostAssociatedReason = "BareMetalHostAssociated"
	// NoBareMetalHostReason is a claim that no free host fits.
	NoBareMetalHostReason = "NoBareMetalHost"
	// MissingBareMetalHostReason is a claim whose host has gone.
	MissingBareMetalHostReason = "MissingBareMetalHost"
	// BadBareMetalHostStatusReason is a host whose status can not be read.
	BadBareMetalHostStatusReason = "BadBareMetalHostStatus"
	// HostClaimAnnotationNotSetReason is a host that could not be marked as
	// the claim's.
	HostClaimAnnotationNotSetReason = "HostClaimAnnotationNotSet"
	// PauseAnnotationSetFailedReason is a host that could not be paused.
	PauseAnnotationSetFailedReason = "PauseAnnotationSetFailed"
	// PauseAnnotationRemoveFailedReason is a host that could not be unpaused.
	PauseAnnotationRemoveFailedReason = "PauseAnnotationRemoveFailed"
	// HostPausedReason is a claim whose host is paused.
	HostPausedReason = "HostPaused"
	// HostClaimDeletingReason is a claim that gives its host back.
	HostClaimDeletingReason = "HostClaimDeleting"
	// HostClaimDeletionFailedReason is a claim that could not give it back.
	HostClaimDeletionFailedReason = "HostClaimDeletionFailed"

	// SynchronizedCondition is True once the host was told what the claim
	// wants of it.
	SynchronizedCondition = "Synchronized"
	// ConfigurationSyncedReason goes with True.
	ConfigurationSyncedReason = "ConfigurationSynced"
	// BareMetalHostNotSynchronizedReason is a host that could not be written.
	// It is used with AssociatedCondition too.
	BareMetalHostNotSynchronizedReason = "BareMetalHostNotSynchronized"
	// BadUserDataSecretReason is a Secret with user data that could not be
	// carried over.
	BadUserDataSecretReason = "UserDataSecretSyncFailure"
	// BadMetaDataSecretReason is a Secret with metadata that could not be
	// carried over.
	BadMetaDataSecretReason = "MetaDataSecretSyncFailure"
	// BadNetworkDataSecretReason is a Secret with network data that could not
	// be carried over.
	BadNetworkDataSecretReason = "NetworkDataSecretSyncFailure"

	// IssuesReportedReason is a claim that is not Ready since another
	// condition is False.
	IssuesReportedReason = "IssuesReported"
	// UnknownReportedReason is a claim of which it is not known whether it is
	// Ready since another condition is Unknown.
	UnknownReportedReason = "UnknownReported"
	// InfoReportedReason is a claim that is Ready.
	InfoReportedReason = "InfoReported"
)

// HostSelector says which hosts fit. All of it must hold; an empty selector
// fits every host.
type HostSelector struct {
	// matchLabels are labels that the host must have.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`

	// matchExpressions are further conditions on the host's labels.
	// +optional
	MatchExpressions []HostSelectorRequirement `json:"matchExpressions,omitempty"`

	// inNamespace is the namespace to look in; every namespace whose
	// HostDeployPolicy lets the claim in if not given.
	// +optional
	InNamespace string `json:"inNamespace,omitempty"`
}

// HostSelectorRequirement is one condition on a host's labels.
type HostSelectorRequirement struct {
	// key of the label.
	Key string `json:"key"`

	// operator is =, ==, != (one value), in, notin (one or more), exists or !
	// (none).
	Operator selection.Operator `json:"operator"`

	// values that the label is compared with.
	Values []string `json:"values"`
}

// HostClaimSpec is the host that is wanted.
type HostClaimSpec struct {
	// poweredOn is whether the host shall be on. Set by the user.
	PoweredOn bool `json:"poweredOn"`

	// image is what the host shall run; see spec.image of BareMetalHost.
	// +optional
	Image *Image `json:"image,omitempty"`

	// userData is a Secret in the claim's namespace with user data.
	// +optional
	UserData *corev1.SecretReference `json:"userData,omitempty"`

	// networkData is a Secret in the claim's namespace with the network
	// configuration.
	// +optional
	NetworkData *corev1.SecretReference `json:"networkData,omitempty"`

	// metaData is a Secret in the claim's namespace with metadata.
	// +optional
	MetaData *corev1.SecretReference `json:"metaData,omitempty"`

	// customDeploy is a deploy step that takes the place of writing an image.
	// +optional
	CustomDeploy *CustomDeploy `json:"customDeploy,omitempty"`

	// hostSelector says which hosts fit. Read until the claim has a host.
	// +optional
	HostSelector HostSelector `json:"hostSelector,omitempty"`

	// consumerRef is the object that uses the claim.
	// +optional
	ConsumerRef *corev1.ObjectReference `json:"consumerRef,omitempty"`

	// failureDomain is where the host should stand. Hosts whose label
	// infrastructure.cluster.x-k8s.io/failure-domain has this value come
	// first; others are taken if there is none.
	// +optional
	FailureDomain string `json:"failureDomain,omitempty"`
}

// ObjectReference names an object whose kind is known.
type ObjectReference struct {
	// namespace of the object.
	Namespace string `json:"namespace"`

	// name of the object.
	Name string `json:"name"`
}

// HostClaimStatus is the host that the claim got.
type HostClaimStatus struct {
	// lastUpdated is when the status was last written.
	// +optional
	LastUpdated *metav1.Time `json:"lastUpdated,omitempty"`

	// conditions are Associated, Synchronized, Provisioned,
	// AvailableForProvisioning and Ready.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// bareMetalHost is the host that the claim has.
	// +optional
	BareMetalHost *ObjectReference `json:"bareMetalHost,omitempty"`

	// hardwareData is where the host's hardware is described.
	// +optional
	HardwareData *ObjectReference `json:"hardwareData,omitempty"`

	// poweredOn is whether the host was on when it was last looked at.
	// +optional
	PoweredOn bool `json:"poweredOn,omitempty"`
}

// HostClaim asks for a host without naming one. It is given a free BareMetalHost
// that fits its selector, out of the namespaces whose HostDeployPolicy lets it
// in, and keeps it until the claim is deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io=","clusterctl.cluster.x-k8s.io/move="}
type HostClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the host that is wanted.
	Spec HostClaimSpec `json:"spec,omitempty"`

	// status is the host that the claim got.
	Status HostClaimStatus `json:"status,omitempty"`
}

// GetConditions returns the claim's conditions.
func (c *HostClaim) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the claim's conditions.
func (c *HostClaim) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }

// HostClaimList is a list of HostClaims.
//
// +kubebuilder:object:root=true
type HostClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HostClaim `json:"items"`
}
