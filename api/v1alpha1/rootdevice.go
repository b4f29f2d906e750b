package v1alpha1

// RootDeviceHints choose the disk that the image is written to. All hints that
// are given must fit; of several disks that fit, the backend takes one. An
// empty object is the same as none.
type RootDeviceHints struct {
	// deviceName is a path in /dev or /dev/disk/by-path, such as
	// /dev/disk/by-path/pci-0000:01:00.0-scsi-0:2:0:0. Names such as /dev/sda
	// may stand for another disk after the next boot; prefer by-path.
	// +optional
	DeviceName string `json:"deviceName,omitempty"`

	// hctl is the SCSI address, host:channel:target:lun, such as 0:0:0:0.
	// +optional
	HCTL string `json:"hctl,omitempty"`

	// model is a part of the disk's model name.
	// +optional
	Model string `json:"model,omitempty"`

	// vendor is a part of the disk's vendor name.
	// +optional
	Vendor string `json:"vendor,omitempty"`

	// serialNumber is the disk's whole serial number.
	// +optional
	SerialNumber string `json:"serialNumber,omitempty"`

	// minSizeGigabytes is the least size of the disk in GiB.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinSizeGigabytes int `json:"minSizeGigabytes,omitempty"`

	// wwn is the disk's World Wide Name.
	// +optional
	WWN string `json:"wwn,omitempty"`

	// wwnWithExtension is the World Wide Name with the vendor's extension.
	// +optional
	WWNWithExtension string `json:"wwnWithExtension,omitempty"`

	// wwnVendorExtension is the vendor's extension alone.
	// +optional
	WWNVendorExtension string `json:"wwnVendorExtension,omitempty"`

	// rotational is true for a disk that turns and false for one that does
	// not. Without it both fit.
	// +optional
	Rotational *bool `json:"rotational,omitempty"`
}
