package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Types of a firmware setting, as Redfish names them.
const (
	AttributeEnumeration = "Enumeration"
	AttributeString      = "String"
	AttributeInteger     = "Integer"
	AttributeBoolean     = "Boolean"
	AttributePassword    = "Password"
)

// SettingSchema says which values one firmware setting can take. What is
// absent is not limited.
type SettingSchema struct {
	// attribute_type is the kind of value. Without it any value is taken.
	// +kubebuilder:validation:Enum=Enumeration;String;Integer;Boolean;Password
	// +optional
	AttributeType string `json:"attribute_type,omitempty"`

	// allowable_values are the values of an Enumeration.
	// +optional
	AllowableValues []string `json:"allowable_values,omitempty"`

	// lower_bound is the least value of an Integer.
	// +optional
	LowerBound *int `json:"lower_bound,omitempty"`

	// upper_bound is the greatest value of an Integer.
	// +optional
	UpperBound *int `json:"upper_bound,omitempty"`

	// min_length is the least length of a String in bytes.
	// +optional
	MinLength *int `json:"min_length,omitempty"`

	// max_length is the greatest length of a String in bytes.
	// +optional
	MaxLength *int `json:"max_length,omitempty"`

	// read_only is true for a setting that can not be changed.
	// +optional
	ReadOnly *bool `json:"read_only,omitempty"`

	// unique is true for a setting whose value differs from machine to
	// machine, such as a serial number.
	// +optional
	Unique *bool `json:"unique,omitempty"`
}

// FirmwareSchemaSpec is the firmware settings of a kind of machine.
type FirmwareSchemaSpec struct {
	// hardwareVendor is who made the machine.
	// +optional
	HardwareVendor string `json:"hardwareVendor,omitempty"`

	// hardwareModel is the machine's model.
	// +optional
	HardwareModel string `json:"hardwareModel,omitempty"`

	// schema says for each setting which values it can take.
	Schema map[string]SettingSchema `json:"schema"`
}

// FirmwareSchema says which firmware settings a kind of machine has and which
// values each of them can take. The operator makes it, one for all machines
// with the same settings, and names it in the status of their
// HostFirmwareSettings. Users read it.
//
// +kubebuilder:object:root=true
type FirmwareSchema struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the settings and their values.
	Spec FirmwareSchemaSpec `json:"spec,omitempty"`
}

// FirmwareSchemaList is a list of FirmwareSchemas.
//
// +kubebuilder:object:root=true
type FirmwareSchemaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []FirmwareSchema `json:"items"`
}
