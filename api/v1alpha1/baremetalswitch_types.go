package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types and reasons of a BareMetalSwitch.
const (
	// SwitchValidCondition is True once the switch is in the configuration
	// that the backend reads.
	SwitchValidCondition = "Valid"
	// SwitchReconciledReason goes with True.
	SwitchReconciledReason = "Reconciled"
	// SwitchCredentialErrorReason is a login that is missing or incomplete.
	SwitchCredentialErrorReason = "CredentialError" //nolint:gosec // The name of a reason, no credential.
	// SwitchConfigurationErrorReason is a value that can not be written into
	// the configuration, or a configuration that can not be written.
	SwitchConfigurationErrorReason = "ConfigurationError"
)

// BareMetalSwitchSpec is how to reach a switch.
type BareMetalSwitchSpec struct {
	// address is the switch's IP address or DNS name. Set by the user.
	Address string `json:"address"`

	// macAddress is the MAC address by which the switch names itself to those
	// who are plugged into it (LLDP): six pairs of hexadecimal digits with
	// colons between them. Set by the user.
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$`
	MACAddress string `json:"macAddress"`

	// driver is how switches are spoken with; generic-switch is the only one.
	// +kubebuilder:validation:Enum=generic-switch
	// +kubebuilder:default:=generic-switch
	// +optional
	Driver string `json:"driver,omitempty"`

	// deviceType is the driver's name for this sort of switch, such as
	// netmiko_cisco_ios. Set by the user.
	DeviceType string `json:"deviceType"`

	// credentials is the Secret with the login: username, and password or
	// ssh-privatekey; admin-password too where the switch asks for it.
	// +optional
	Credentials *corev1.SecretReference `json:"credentials,omitempty"`

	// port is the TCP port to reach the switch at; the driver's own if not
	// given.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port *int32 `json:"port,omitempty"`

	// disableCertificateVerification takes any certificate that the switch
	// shows.
	// +optional
	DisableCertificateVerification bool `json:"disableCertificateVerification,omitempty"`
}

// BareMetalSwitchStatus is what became of a switch.
type BareMetalSwitchStatus struct {
	// conditions is Valid.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty" patchMergeKey:"type" patchStrategy:"merge"`
}

// BareMetalSwitch is a switch that hosts are plugged into, and how to reach it.
// It is written into the configuration of a backend that sets switch ports.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bms
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io=","clusterctl.cluster.x-k8s.io/move="}
// +kubebuilder:printcolumn:name="Driver",type="string",JSONPath=".spec.driver",description="How the switch is spoken with"
// +kubebuilder:printcolumn:name="Device Type",type="string",JSONPath=".spec.deviceType",description="What sort of switch it is"
// +kubebuilder:printcolumn:name="Address",type="string",JSONPath=".spec.address",description="Where the switch is"
// +kubebuilder:printcolumn:name="Valid",type="string",JSONPath=".status.conditions[?(@.type==\"Valid\")].status",description="Whether the switch is in use"
type BareMetalSwitch struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is how to reach the switch.
	Spec BareMetalSwitchSpec `json:"spec,omitempty"`

	// status is what became of it.
	Status BareMetalSwitchStatus `json:"status,omitempty"`
}

// BareMetalSwitchList is a list of BareMetalSwitches.
//
// +kubebuilder:object:root=true
type BareMetalSwitchList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []BareMetalSwitch `json:"items"`
}
