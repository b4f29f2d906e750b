package v1alpha1

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names of firmware components.
const (
	// ComponentBMC is the management controller's firmware.
	ComponentBMC = "bmc"
	// ComponentBIOS is the BIOS or UEFI.
	ComponentBIOS = "bios"
	// NICComponentPrefix comes before the name of a network adapter.
	NICComponentPrefix = "nic:"
)

// FirmwareUpdate is a firmware that a component shall get.
type FirmwareUpdate struct {
	// component to update: bmc, bios, or nic: with the adapter's name behind
	// it, as in status.components.
	Component string `json:"component"`

	// url is where the firmware lies. An update is due when it differs from
	// the one that was last put on the component.
	URL string `json:"url"`
}

// FirmwareComponentStatus is the firmware of one component.
type FirmwareComponentStatus struct {
	// component whose firmware it is.
	Component string `json:"component"`

	// initialVersion is the version when the host was first looked at.
	InitialVersion string `json:"initialVersion"`

	// currentVersion is the version that the BMC reports.
	// +optional
	CurrentVersion string `json:"currentVersion,omitempty"`

	// lastVersionFlashed is the version after the last update of ours.
	// +optional
	LastVersionFlashed string `json:"lastVersionFlashed,omitempty"`

	// updatedAt is when the firmware was last updated.
	// +optional
	UpdatedAt metav1.Time `json:"updatedAt,omitempty"`
}

// UpdatesConditionType is a condition of HostFirmwareComponents.
type UpdatesConditionType string

const (
	// HostFirmwareComponentsChangeDetected is True while the spec asks for an
	// update that was not made.
	HostFirmwareComponentsChangeDetected UpdatesConditionType = "ChangeDetected"
	// HostFirmwareComponentsValid is True if every component in the spec is
	// one that can be updated.
	HostFirmwareComponentsValid UpdatesConditionType = "Valid"
)

// Reasons of the conditions of HostFirmwareComponents.
const (
	// FirmwareComponentsOKReason is updates in which nothing is wrong.
	FirmwareComponentsOKReason = "OK"
	// FirmwareComponentsInvalidReason is a component that can not be updated.
	FirmwareComponentsInvalidReason = "InvalidComponent"
)

// HostFirmwareComponentsSpec is the firmware that is wanted.
type HostFirmwareComponentsSpec struct {
	// updates are the firmwares that components shall get. Set by the user.
	// They are installed while the host is preparing (a change on an available
	// host sends it back there), or on reboot if a HostUpdatePolicy says so.
	Updates []FirmwareUpdate `json:"updates"`
}

// HostFirmwareComponentsStatus is the firmware that is there.
type HostFirmwareComponentsStatus struct {
	// updates are those that were last handed to the backend.
	// +optional
	Updates []FirmwareUpdate `json:"updates,omitempty"`

	// components are those whose firmware is known, with its version.
	// +optional
	Components []FirmwareComponentStatus `json:"components,omitempty"`

	// lastUpdated is when the status was last written.
	// +optional
	LastUpdated *metav1.Time `json:"lastUpdated,omitempty"`

	// conditions are ChangeDetected and Valid.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty" patchMergeKey:"type" patchStrategy:"merge"`
}

// HostFirmwareComponents are the firmware versions of the BareMetalHost of the
// same name, and the updates that it shall get. The operator makes the object
// for each host whose BMC reports versions.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=hfc
// +kubebuilder:metadata:labels={"clusterctl.cluster.x-k8s.io=","clusterctl.cluster.x-k8s.io/move="}
type HostFirmwareComponents struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the firmware that is wanted.
	Spec HostFirmwareComponentsSpec `json:"spec,omitempty"`

	// status is the firmware that is there.
	Status HostFirmwareComponentsStatus `json:"status,omitempty"`
}

// HostFirmwareComponentsList is a list of HostFirmwareComponents.
//
// +kubebuilder:object:root=true
type HostFirmwareComponentsList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HostFirmwareComponents `json:"items"`
}

// ValidateHostFirmwareComponents says which components in the spec can not be
// updated, all of them in one error.
func (h *HostFirmwareComponents) ValidateHostFirmwareComponents() error {
	var errs []error
	for _, update := range h.Spec.Updates {
		if !knownComponent(update.Component) {
			errs = append(errs, fmt.Errorf("component %s is invalid, only bmc, bios and names that begin with nic: are allowed", update.Component))
		}
	}
	return errors.Join(errs...)
}

func knownComponent(name string) bool {
	return name == ComponentBMC || name == ComponentBIOS || strings.HasPrefix(name, NICComponentPrefix)
}
