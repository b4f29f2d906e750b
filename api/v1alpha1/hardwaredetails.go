package v1alpha1

// ClockSpeed is a clock frequency in MHz.
// +kubebuilder:validation:Format=double
type ClockSpeed float64

// Units of ClockSpeed.
const (
	MegaHertz ClockSpeed = 1
	GigaHertz            = 1000 * MegaHertz
)

// Capacity is a disk's size in bytes.
type Capacity int64

// Units of Capacity: powers of 1000 and of 1024.
const (
	Byte     Capacity = 1
	KiloByte          = 1000 * Byte
	KibiByte          = 1024 * Byte
	MegaByte          = 1000 * KiloByte
	MebiByte          = 1024 * KibiByte
	GigaByte          = 1000 * MegaByte
	GibiByte          = 1024 * MebiByte
	TeraByte          = 1000 * GigaByte
	TebiByte          = 1024 * GibiByte
)

// DiskType is what a disk is built of.
//
// +kubebuilder:validation:Enum=HDD;SSD;NVME
type DiskType string

const (
	// HDD is a disk that turns.
	HDD DiskType = "HDD"
	// SSD is flash behind SATA or SAS.
	SSD DiskType = "SSD"
	// NVME is flash on PCI Express.
	NVME DiskType = "NVME"
)

// HardwareDetails is what is known of a machine's hardware. A value that is
// absent is not known.
type HardwareDetails struct {
	// systemVendor is who made the machine and what it is called.
	// +optional
	SystemVendor HardwareSystemVendor `json:"systemVendor,omitempty"`

	// firmware is what the machine's own software says of itself.
	// +optional
	Firmware Firmware `json:"firmware,omitempty"`

	// ramMebibytes is the memory in MiB.
	// +optional
	RAMMebibytes int `json:"ramMebibytes,omitempty"`

	// nics are the network interfaces, one entry for each IP address: a NIC
	// with two addresses is there twice.
	// +optional
	NIC []NIC `json:"nics,omitempty"`

	// storage are the disks.
	// +optional
	Storage []Storage `json:"storage,omitempty"`

	// cpu is the processors.
	// +optional
	CPU CPU `json:"cpu,omitempty"`

	// hostname is the name that the machine gave itself during inspection.
	// +optional
	Hostname string `json:"hostname,omitempty"`
}

// HardwareSystemVendor is who made a machine and what it is called.
type HardwareSystemVendor struct {
	// manufacturer of the machine.
	// +optional
	Manufacturer string `json:"manufacturer,omitempty"`

	// productName is the machine's model.
	// +optional
	ProductName string `json:"productName,omitempty"`

	// serialNumber of the machine.
	// +optional
	SerialNumber string `json:"serialNumber,omitempty"`
}

// Firmware is a machine's firmware.
type Firmware struct {
	// bios is the machine's BIOS or UEFI.
	// +optional
	BIOS BIOS `json:"bios,omitempty"`
}

// BIOS is the version of a machine's BIOS or UEFI.
type BIOS struct {
	// date of the release, in the vendor's own form.
	// +optional
	Date string `json:"date,omitempty"`

	// vendor who made it.
	// +optional
	Vendor string `json:"vendor,omitempty"`

	// version of the release.
	// +optional
	Version string `json:"version,omitempty"`
}

// CPU is a machine's processors taken together.
type CPU struct {
	// arch is the architecture, such as x86_64 or aarch64.
	// +optional
	Arch string `json:"arch,omitempty"`

	// model of the processor.
	// +optional
	Model string `json:"model,omitempty"`

	// clockMegahertz is the clock frequency in MHz.
	// +optional
	ClockMegahertz ClockSpeed `json:"clockMegahertz,omitempty"`

	// flags are the processor's features, as Linux names them.
	// +optional
	Flags []string `json:"flags,omitempty"`

	// count is the number of logical processors.
	// +optional
	Count int `json:"count,omitempty"`
}

// Storage is one disk.
type Storage struct {
	// name is the path of the disk, by-path where there is one, since that
	// does not change from boot to boot. It may be used as
	// rootDeviceHints.deviceName.
	// +optional
	Name string `json:"name,omitempty"`

	// alternateNames are other paths of the same disk.
	// +optional
	AlternateNames []string `json:"alternateNames,omitempty"`

	// rotational is true for a disk that turns. Kept beside type for programs
	// that read it.
	// +optional
	Rotational bool `json:"rotational,omitempty"`

	// type is what the disk is built of.
	// +optional
	Type DiskType `json:"type,omitempty"`

	// sizeBytes is the size in bytes.
	// +optional
	SizeBytes Capacity `json:"sizeBytes,omitempty"`

	// vendor who made the disk.
	// +optional
	Vendor string `json:"vendor,omitempty"`

	// model of the disk.
	// +optional
	Model string `json:"model,omitempty"`

	// serialNumber of the disk.
	// +optional
	SerialNumber string `json:"serialNumber,omitempty"`

	// wwn is the disk's World Wide Name.
	// +optional
	WWN string `json:"wwn,omitempty"`

	// wwnVendorExtension is the vendor's extension of the World Wide Name.
	// +optional
	WWNVendorExtension string `json:"wwnVendorExtension,omitempty"`

	// wwnWithExtension is the World Wide Name with the vendor's extension.
	// +optional
	WWNWithExtension string `json:"wwnWithExtension,omitempty"`

	// hctl is the SCSI address, host:channel:target:lun.
	// +optional
	HCTL string `json:"hctl,omitempty"`
}

// VLANID is the number of a VLAN.
//
// +kubebuilder:validation:Minimum=0
// +kubebuilder:validation:Maximum=4094
type VLANID int32

// VLAN is a VLAN that a NIC can reach.
type VLAN struct {
	// id is the VLAN's number.
	// +optional
	ID VLANID `json:"id,omitempty"`

	// name of the VLAN on the switch.
	// +optional
	Name string `json:"name,omitempty"`
}

// LLDP is what a switch tells of itself to whom is plugged into it.
type LLDP struct {
	// switchID is the switch's chassis ID, mostly a MAC address.
	// +optional
	SwitchID string `json:"switchID,omitempty"`

	// portID is the switch's port.
	// +optional
	PortID string `json:"portID,omitempty"`

	// switchSystemName is the switch's name.
	// +optional
	SwitchSystemName string `json:"switchSystemName,omitempty"`
}

// NIC is one network interface with one IP address.
type NIC struct {
	// name of the interface under Linux, such as eth0.
	// +optional
	Name string `json:"name,omitempty"`

	// model is the vendor and product ID of the device.
	// +optional
	Model string `json:"model,omitempty"`

	// mac is the MAC address.
	// +kubebuilder:validation:Pattern=`[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}`
	// +optional
	MAC string `json:"mac,omitempty"`

	// ip is the address, IPv4 or IPv6, that the interface had in inspection.
	// +optional
	IP string `json:"ip,omitempty"`

	// speedGbps is the link's speed in Gbit/s. Absent if it is not known or
	// below 1.
	// +optional
	SpeedGbps int `json:"speedGbps,omitempty"`

	// vlans are the VLANs that the interface can reach.
	// +optional
	VLANs []VLAN `json:"vlans,omitempty"`

	// vlanId is the untagged VLAN.
	// +optional
	VLANID VLANID `json:"vlanId,omitempty"`

	// pxe is true for an interface that the machine may boot from.
	// +optional
	PXE bool `json:"pxe,omitempty"`

	// lldp is what the switch at the other end says of itself.
	// +optional
	LLDP *LLDP `json:"lldp,omitempty"`

	// pciAddress is the device's place on the PCI bus, such as 0000:01:00.0.
	// +optional
	PCIAddress string `json:"pciAddress,omitempty"`
}
