package v1alpha1

// RAIDConfig is the RAID that a host gets before it becomes available.
//
// In both lists it matters whether the list is absent (or null) or empty: an
// absent list leaves what is there, an empty list deletes it. Only one of the
// two may have entries.
type RAIDConfig struct {
	// hardwareRAIDVolumes are volumes on a RAID controller. Absent or null:
	// leave what is there. Empty: delete all volumes. Otherwise: delete all
	// and make these. Read while the host is preparing; a change on an
	// available host sends it back there.
	// +nullable
	// +optional
	HardwareRAIDVolumes []HardwareRAIDVolume `json:"hardwareRAIDVolumes"`

	// softwareRAIDVolumes are volumes made by the operating system's RAID, at
	// most two. Absent or null: leave what is there. Empty: delete. If none is
	// marked as the root volume, the image goes to the first, which then must
	// have level 1. Read while the host is preparing.
	// +kubebuilder:validation:MaxItems=2
	// +nullable
	// +optional
	SoftwareRAIDVolumes []SoftwareRAIDVolume `json:"softwareRAIDVolumes"`
}

// HardwareRAIDVolume is one volume on a RAID controller.
type HardwareRAIDVolume struct {
	// sizeGibibytes is the size in GiB. Without it the volume takes all the
	// space that its disks have.
	// +kubebuilder:validation:Minimum=0
	// +optional
	SizeGibibytes *int `json:"sizeGibibytes,omitempty"`

	// level is the RAID level: 0, 1, 2, 5, 6, 1+0, 5+0 or 6+0. What of these
	// works depends on the controller.
	// +kubebuilder:validation:Enum="0";"1";"2";"5";"6";"1+0";"5+0";"6+0"
	Level string `json:"level"`

	// name is the volume's name on the controller. Names are not changed later
	// and are only for people. Without it the controller makes one.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Name string `json:"name,omitempty"`

	// rotational is true to use only disks that turn and false to use only
	// those that do not. Without it both may be used.
	// +optional
	Rotational *bool `json:"rotational,omitempty"`

	// numberOfPhysicalDisks is how many disks the volume uses. Without it, as
	// many as the level needs at least.
	// +kubebuilder:validation:Minimum=1
	// +optional
	NumberOfPhysicalDisks *int `json:"numberOfPhysicalDisks,omitempty"`

	// controller is the name of the RAID controller, as the BMC gives it.
	// +optional
	Controller string `json:"controller,omitempty"`

	// physicalDisks are the names of the disks to use, as the BMC gives them.
	// Needs controller; numberOfPhysicalDisks, if given, must be their number.
	// +optional
	PhysicalDisks []string `json:"physicalDisks,omitempty"`
}

// SoftwareRAIDVolume is one volume of the operating system's RAID.
type SoftwareRAIDVolume struct {
	// rootVolume marks the volume that the image is written to. At most one
	// may have it; it needs level 1 and takes the place of rootDeviceHints.
	// +kubebuilder:default:=false
	// +optional
	RootVolume bool `json:"rootVolume,omitempty"`

	// sizeGibibytes is the size in GiB. Without it, or with 0, the volume
	// takes all the space that is left; only the last volume can.
	// +kubebuilder:validation:Minimum=0
	// +optional
	SizeGibibytes *int `json:"sizeGibibytes,omitempty"`

	// level is the RAID level: 0, 1 or 1+0.
	// +kubebuilder:validation:Enum="0";"1";"1+0"
	Level string `json:"level"`

	// physicalDisks choose the disks, one set of hints for a disk, at least
	// two. Without it all disks are used.
	// +kubebuilder:validation:MinItems=2
	// +optional
	PhysicalDisks []RootDeviceHints `json:"physicalDisks,omitempty"`
}
