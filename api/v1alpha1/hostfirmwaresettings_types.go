package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// SettingsMap is firmware settings as they are: name to value.
type SettingsMap map[string]string

// DesiredSettingsMap is firmware settings as they are wanted. 10 and "10" are
// the same; true and false must be put in quotes.
type DesiredSettingsMap map[string]intstr.IntOrString

// SchemaReference names a FirmwareSchema.
type SchemaReference struct {
	// namespace of the FirmwareSchema.
	Namespace string `json:"namespace"`

	// name of the FirmwareSchema.
	Name string `json:"name"`
}

// SettingsConditionType is a condition of HostFirmwareSettings.
type SettingsConditionType string

const (
	// FirmwareSettingsChangeDetected is True while the spec asks for a value
	// that the machine does not have.
	FirmwareSettingsChangeDetected SettingsConditionType = "ChangeDetected"
	// FirmwareSettingsValid is True if the machine can take every value in the
	// spec.
	FirmwareSettingsValid SettingsConditionType = "Valid"
)

// Reasons of the conditions of HostFirmwareSettings.
const (
	// FirmwareSettingsSuccessReason is settings in which nothing is wrong.
	FirmwareSettingsSuccessReason = "Success"
	// FirmwareSettingsConfigurationErrorReason is settings that the machine
	// can not take; the message lists them.
	FirmwareSettingsConfigurationErrorReason = "ConfigurationError"
)

// HostFirmwareSettingsSpec is the firmware settings that are wanted.
type HostFirmwareSettingsSpec struct {
	// settings are the values that are wanted, by the names in
	// status.settings; those not named stay as they are. Set by the user. They
	// are put in place while the host is preparing (a change on an available
	// host sends it back there), or on reboot if a HostUpdatePolicy says so.
	// Numbers may be written with or without quotes; true and false need them.
	Settings DesiredSettingsMap `json:"settings" patchStrategy:"merge"`
}

// HostFirmwareSettingsStatus is the firmware settings as they are.
type HostFirmwareSettingsStatus struct {
	// schema names the FirmwareSchema that says which values each setting can
	// take. Absent until the settings were first read.
	// +optional
	FirmwareSchema *SchemaReference `json:"schema,omitempty"`

	// settings are all settings with the values that the machine has.
	// Passwords are left out.
	Settings SettingsMap `json:"settings"`

	// lastUpdated is when the status was last written.
	// +optional
	LastUpdated *metav1.Time `json:"lastUpdated,omitempty"`

	// conditions are ChangeDetected and Valid.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty" patchMergeKey:"type" patchStrategy:"merge"`
}

// HostFirmwareSettings are the firmware (BIOS) settings of the BareMetalHost of
// the same name: what they are, and what they shall be. The operator makes the
// object for each host whose firmware can be read.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=hfs
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io=","clusterctl.cluster.x-k8s.io/move="}
type HostFirmwareSettings struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the settings that are wanted.
	Spec HostFirmwareSettingsSpec `json:"spec,omitempty"`

	// status is the settings as they are.
	Status HostFirmwareSettingsStatus `json:"status,omitempty"`
}

// HostFirmwareSettingsList is a list of HostFirmwareSettings.
//
// +kubebuilder:object:root=true
type HostFirmwareSettingsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HostFirmwareSettings `json:"items"`
}
