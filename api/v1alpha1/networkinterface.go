package v1alpha1

import "strings"

// NetworkInterface says how the switch port behind one of a host's NICs is to
// be set. The NIC is chosen by name or by macAddress, not by both.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) || has(self.macAddress)",message="must specify either name or macAddress"
// +kubebuilder:validation:XValidation:rule="!has(self.name) || !has(self.macAddress)",message="name and macAddress are mutually exclusive"
type NetworkInterface struct {
	// name is the NIC's name, as in status.hardware.nics.
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9._-]+$`
	// +optional
	Name string `json:"name,omitempty"`

	// macAddress is the NIC's MAC address, six pairs of hexadecimal digits
	// with colons between them.
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$`
	// +optional
	MACAddress string `json:"macAddress,omitempty"`

	// hostNetworkAttachment names the HostNetworkAttachment that the port
	// gets. While it is named here it can be neither changed nor deleted.
	// +optional
	HostNetworkAttachment HostNetworkAttachmentRef `json:"hostNetworkAttachment,omitempty"`

	// switchPort is the port that the NIC is plugged into. Without it the port
	// is taken from what the NIC hears of its switch (LLDP) in inspection.
	// +optional
	SwitchPort *SwitchPortIdentifier `json:"switchPort,omitempty"`
}

// HostNetworkAttachmentRef names a HostNetworkAttachment.
type HostNetworkAttachmentRef struct {
	// name of the HostNetworkAttachment.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	// namespace of the HostNetworkAttachment; the host's own if not given.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// SwitchPortIdentifier names a port of a switch.
type SwitchPortIdentifier struct {
	// switchID is the switch's MAC address, as in BareMetalSwitch.
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$`
	SwitchID string `json:"switchID"`

	// portID is the port's name on the switch, such as Ethernet1/1.
	PortID string `json:"portID"`
}

// IsValid says whether the interface names a NIC at all.
func (n *NetworkInterface) IsValid() bool { return n.Name != "" || n.MACAddress != "" }

// Key is what tells the interface from the others of its host: the MAC address
// if there is one, else the name, both in lower case.
func (n *NetworkInterface) Key() string {
	if n.MACAddress != "" {
		return strings.ToLower(n.MACAddress)
	}
	return strings.ToLower(n.Name)
}
