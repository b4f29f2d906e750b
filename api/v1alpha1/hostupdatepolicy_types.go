package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UpdatePolicy says when a firmware change may be made.
//
// +kubebuilder:validation:Enum=onPreparing;onReboot
type UpdatePolicy string

const (
	// HostUpdatePolicyOnPreparing makes changes only before a host becomes
	// available.
	HostUpdatePolicyOnPreparing UpdatePolicy = "onPreparing"
	// HostUpdatePolicyOnReboot makes changes too when a provisioned host is
	// rebooted.
	HostUpdatePolicyOnReboot UpdatePolicy = "onReboot"
)

// HostUpdatePolicySpec is when firmware changes may be made.
type HostUpdatePolicySpec struct {
	// firmwareSettings is when HostFirmwareSettings are put in place; only
	// while preparing if not given. Set by the user.
	// +optional
	FirmwareSettings UpdatePolicy `json:"firmwareSettings,omitempty"`

	// firmwareUpdates is when the updates in HostFirmwareComponents are
	// installed; only while preparing if not given. Set by the user.
	// +optional
	FirmwareUpdates UpdatePolicy `json:"firmwareUpdates,omitempty"`
}

// HostUpdatePolicyStatus is empty.
type HostUpdatePolicyStatus struct{}

// HostUpdatePolicy says when the firmware of the BareMetalHost of the same name
// may be changed. Without it a provisioned host is left alone.
//
// +kubebuilder:object:root=true
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io=","clusterctl.cluster.x-k8s.io/move="}
type HostUpdatePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is when changes may be made.
	Spec HostUpdatePolicySpec `json:"spec,omitempty"`

	// status is empty.
	Status HostUpdatePolicyStatus `json:"status,omitempty"`
}

// HostUpdatePolicyList is a list of HostUpdatePolicies.
//
// +kubebuilder:object:root=true
type HostUpdatePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HostUpdatePolicy `json:"items"`
}
