package bmcaddress

import "strings"

// Family is what all addresses of a type have in common: the Ironic driver and
// its interfaces, and what can be done with such a BMC.
type Family struct {
	// Driver is the Ironic driver (hardware type).
	Driver string
	// Interfaces of the driver.
	Interfaces Interfaces
	// Capabilities of the driver.
	Capabilities Capabilities

	redfish bool
}

// Interfaces are the Ironic interfaces that a driver uses. An empty one is left
// to Ironic.
type Interfaces struct {
	BIOS       string
	Boot       string
	Firmware   string
	Management string
	Power      string
	RAID       string
	Vendor     string
	// FastInspect is the inspect interface of hosts that are inspected by
	// asking the BMC; the others have "agent". Empty if the driver can't.
	FastInspect string
}

// Capabilities are what a driver can do and what it needs.
type Capabilities struct {
	// NeedsMAC: the boot MAC address must be known beforehand, since the BMC
	// can't tell it.
	NeedsMAC bool
	// NeedsProvisioningNetwork: the machine boots from the network only.
	NeedsProvisioningNetwork bool
	// ISOPreprovisioningImage: the ramdisk may come as an ISO image. Such
	// hosts don't count for the limit of hosts that boot at a time.
	ISOPreprovisioningImage bool
	// SecureBoot can be switched on.
	SecureBoot bool
	// HardwareRAID can be set up.
	HardwareRAID bool
	// FastInspection: the hardware can be asked for without a boot.
	FastInspection bool
	// Firmware: BIOS settings and versions can be read and changed.
	Firmware bool
	// Events: the BMC can be asked to send events.
	Events bool
	// DataImage: a medium can be put into a virtual drive of a running machine.
	DataImage bool
}

// Interfaces that more than one driver has.
const (
	bootIPXE     = "ipxe"
	raidNone     = "no-raid"
	driverIPMI   = "ipmi"
	driverIDRAC  = "idrac"
	redfishName  = "redfish"
	idracRedfish = "idrac-redfish"
)

// Family is what follows from the address's type. For a type that Parse does
// not know it is empty.
func (a Address) Family() Family {
	family, _ := familyOf(a.Type)
	return family
}

// Capabilities are those of the address's driver.
func (a Address) Capabilities() Capabilities { return a.Family().Capabilities }

// familyOf is the table of types.
func familyOf(name string) (Family, bool) {
	base, suffix, hasSuffix := strings.Cut(name, "+")
	if hasSuffix && suffix != "http" && suffix != "https" {
		return Family{}, false
	}
	switch base {
	case schemeIPMI:
		return ipmiFamily(false), !hasSuffix
	case "libvirt":
		return ipmiFamily(true), !hasSuffix
	case redfishName, "ilo5-redfish":
		return redfishFamily(bootIPXE), true
	case "redfish-virtualmedia", "ilo5-virtualmedia":
		return redfishFamily("redfish-virtual-media"), true
	case "redfish-uefihttp":
		return redfishFamily("redfish-https"), true
	case idracRedfish:
		return idracFamily(bootIPXE), true
	case "idrac-virtualmedia":
		return idracFamily("idrac-redfish-virtual-media"), true
	default:
		return Family{}, false
	}
}

// ipmiFamily is IPMI; a virtual BMC (needsMAC) has no inventory to take the
// boot MAC address from.
func ipmiFamily(needsMAC bool) Family {
	return Family{
		Driver:       driverIPMI,
		Interfaces:   Interfaces{Boot: bootIPXE, RAID: raidNone},
		Capabilities: Capabilities{NeedsMAC: needsMAC, NeedsProvisioningNetwork: true},
	}
}

func redfishFamily(boot string) Family {
	network := boot == bootIPXE
	return Family{
		Driver: redfishName,
		Interfaces: Interfaces{
			Boot: boot, Firmware: redfishName, RAID: redfishName, FastInspect: redfishName,
		},
		Capabilities: Capabilities{
			NeedsProvisioningNetwork: network,
			ISOPreprovisioningImage:  !network,
			SecureBoot:               true,
			HardwareRAID:             true,
			FastInspection:           true,
			Firmware:                 true,
			Events:                   true,
			DataImage:                true,
		},
		redfish: true,
	}
}

// idracFamily is Redfish by the interfaces that know Dell's ways.
func idracFamily(boot string) Family {
	family := redfishFamily(boot)
	family.Driver = driverIDRAC
	family.Interfaces.BIOS = idracRedfish
	family.Interfaces.Management = idracRedfish
	family.Interfaces.Power = idracRedfish
	family.Interfaces.RAID = idracRedfish
	family.Interfaces.Vendor = idracRedfish
	return family
}
