package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HardwareDataSpec is the content of a HardwareData.
type HardwareDataSpec struct {
	// hardware is what inspection found. Written by the operator when an
	// inspection ends, or by a user beforehand for a host that is not
	// inspected; copied to the host's status.hardware.
	// +optional
	HardwareDetails *HardwareDetails `json:"hardware,omitempty"`
}

// HardwareData keeps what inspection found out about the BareMetalHost of the
// same name. It is an object of its own so that it can be kept, moved and read
// apart from the host's status.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=hd
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io=","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since the hardware was recorded"
type HardwareData struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the hardware that was found.
	Spec HardwareDataSpec `json:"spec,omitempty"`
}

// HardwareDataList is a list of HardwareData.
//
// +kubebuilder:object:root=true
type HardwareDataList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HardwareData `json:"items"`
}
