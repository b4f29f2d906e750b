package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SwitchPortMode is what a switch port does with VLANs.
//
// +kubebuilder:validation:Enum=access;trunk;hybrid
type SwitchPortMode string

const (
	// SwitchportModeAccess carries one VLAN, untagged.
	SwitchportModeAccess SwitchPortMode = "access"
	// SwitchportModeTrunk carries several VLANs, tagged.
	SwitchportModeTrunk SwitchPortMode = "trunk"
	// SwitchportModeHybrid carries one VLAN untagged and others tagged.
	SwitchportModeHybrid SwitchPortMode = "hybrid"
)

// HostNetworkAttachmentSpec is how a switch port is to be set. It can not be
// changed while a host names it.
//
// +kubebuilder:validation:XValidation:rule="self.mode != 'access' || !has(self.allowedVLANs) || size(self.allowedVLANs) == 0",fieldPath=".allowedVLANs",message="allowedVLANs cannot be specified for access mode; use trunk or hybrid"
type HostNetworkAttachmentSpec struct {
	// mode is what the port does with VLANs. Set by the user.
	// +kubebuilder:default:=access
	Mode SwitchPortMode `json:"mode"`

	// nativeVLAN is the untagged VLAN, 1 to 4094. Set by the user.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4094
	NativeVLAN int `json:"nativeVLAN"`

	// allowedVLANs are the tagged VLANs: numbers such as "100", and ranges
	// such as "200-299". Not for mode access. Set by the user.
	// +kubebuilder:validation:items:Pattern=`^\d+(-\d+)?$`
	// +optional
	AllowedVLANs []string `json:"allowedVLANs,omitempty"`

	// mtu is the greatest size of a packet in bytes; the switch's own if not
	// given. Set by the user.
	// +kubebuilder:validation:Minimum=68
	// +kubebuilder:validation:Maximum=9216
	// +optional
	MTU *int `json:"mtu,omitempty"`
}

// HostNetworkAttachment is a way to set a switch port, to be named in
// spec.networkInterfaces of BareMetalHosts. While a host names it, it can be
// neither changed nor deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io=","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Mode",type="string",JSONPath=".spec.mode",description="What the port does with VLANs"
// +kubebuilder:printcolumn:name="Native VLAN",type="integer",JSONPath=".spec.nativeVLAN",description="The untagged VLAN"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since the attachment was declared"
type HostNetworkAttachment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is how the port is to be set.
	Spec HostNetworkAttachmentSpec `json:"spec,omitempty"`
}

// HostNetworkAttachmentList is a list of HostNetworkAttachments.
//
// +kubebuilder:object:root=true
type HostNetworkAttachmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HostNetworkAttachment `json:"items"`
}
