package ironic

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic"
)

// hardwareDetails is an inventory in the words of the API. What Ironic does not
// know is left out.
func hardwareDetails(inv ironic.Inventory) *v1alpha1.HardwareDetails {
	hw := inv.Hardware
	return &v1alpha1.HardwareDetails{
		SystemVendor: v1alpha1.HardwareSystemVendor{
			Manufacturer: string(hw.Vendor.Manufacturer), ProductName: string(hw.Vendor.Product), SerialNumber: string(hw.Vendor.Serial),
		},
		Firmware: v1alpha1.Firmware{BIOS: v1alpha1.BIOS{
			Vendor: string(hw.Vendor.Firmware.Vendor), Version: string(hw.Vendor.Firmware.Version), Date: string(hw.Vendor.Firmware.Date),
		}},
		Hostname: string(hw.Hostname), RAMMebibytes: memory(inv), CPU: cpu(hw), NIC: nics(inv), Storage: storage(hw.Disks),
	}
}

// sparseDetails are what a node and its ports tell of a machine.
func sparseDetails(n ironic.Node, ports []ironic.Port, bootMAC string) *v1alpha1.HardwareDetails {
	number := func(key string) int {
		v, err := strconv.Atoi(fmt.Sprint(n.Properties[key]))
		if err != nil {
			return 0
		}
		return v
	}
	arch, _ := n.Properties["cpu_arch"].(string)
	vendor, _ := n.Properties["vendor"].(string)
	d := &v1alpha1.HardwareDetails{
		SystemVendor: v1alpha1.HardwareSystemVendor{Manufacturer: vendor}, RAMMebibytes: number("memory_mb"), CPU: v1alpha1.CPU{Arch: arch, Count: number("cpus")},
	}
	for _, p := range ports {
		d.NIC = append(d.NIC, v1alpha1.NIC{MAC: p.MAC, PXE: strings.EqualFold(p.MAC, bootMAC)})
	}
	return d
}

// memory is the memory in MiB from the best source that has it: what is plugged in,
// as the BIOS or the tools of the agent say, else what the agent's system can use.
// Parts of a MiB are dropped.
func memory(inv ironic.Inventory) int {
	const mebi = 1 << 20
	for _, mib := range []float64{
		inv.Hardware.Memory.PhysicalMB.Value,
		inv.Extra.Extra.Memory["total"].Size.Value / mebi,
		inv.Extra.MemoryMB.Value,
		inv.Hardware.Memory.Total.Value / mebi,
	} {
		if mib >= 1 {
			return int(mib)
		}
	}
	return 0
}

func cpu(hw ironic.Hardware) v1alpha1.CPU {
	var flags []string
	for _, f := range hw.CPU.Flags {
		if f != "" {
			flags = append(flags, string(f))
		}
	}
	slices.Sort(flags)
	return v1alpha1.CPU{
		Arch: string(hw.CPU.Architecture), Model: string(hw.CPU.Model), Count: int(hw.CPU.Count.Value),
		ClockMegahertz: v1alpha1.ClockSpeed(math.Round(hw.CPU.Frequency.Value)) * v1alpha1.MegaHertz, Flags: flags,
	}
}

// nics are the network interfaces: one entry for each address, and one for an
// interface without.
func nics(inv ironic.Inventory) []v1alpha1.NIC {
	var list []v1alpha1.NIC
	for _, i := range inv.Hardware.Interfaces {
		nic := v1alpha1.NIC{
			Name: string(i.Name), Model: strings.TrimLeft(string(i.Vendor+" "+i.Product), " "), MAC: string(i.MAC), IP: string(i.IPv4),
			SpeedGbps: speed(i, inv.Extra), PXE: inv.Extra.Interfaces[string(i.Name)].PXE.Value, PCIAddress: string(i.PCI),
		}
		neighbour(&nic, inv.Extra.LLDP[string(i.Name)])
		if i.IPv4 != "" || i.IPv6 == "" {
			list = append(list, nic)
		}
		if i.IPv6 != "" {
			nic.IP, _, _ = strings.Cut(string(i.IPv6), "%") // the zone means nothing outside of the machine
			list = append(list, nic)
		}
	}
	return list
}

// speed is a link's speed in Gbit/s, 0 if it is not known or below 1.
func speed(i ironic.Interface, extra ironic.PluginData) int {
	if i.SpeedMbps.Value > 0 {
		return int(i.SpeedMbps.Value) / 1000
	}
	return max(0, parseSpeed(string(extra.Extra.Network[string(i.Name)].Speed)))
}

var speedForm = regexp.MustCompile(`^\s*([0-9]+)\s*([MG])bit/s\s*$`)

// parseSpeed reads speeds such as 10Gbit/s, in Gbit/s.
func parseSpeed(text string) int {
	m := speedForm.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	switch {
	case err != nil:
		return 0
	case m[2] == "M":
		return n / 1000
	default:
		return n
	}
}

// maxVLAN is the highest number that a VLAN can have.
const maxVLAN = 4094

// neighbour adds what the switch tells of itself.
func neighbour(nic *v1alpha1.NIC, lldp ironic.LLDP) {
	for _, v := range lldp.VLANs {
		if id, ok := vlan(v.ID); ok {
			nic.VLANs = append(nic.VLANs, v1alpha1.VLAN{ID: id, Name: string(v.Name)})
		}
	}
	nic.VLANID, _ = vlan(lldp.Untagged)
	told := v1alpha1.LLDP{SwitchID: string(lldp.Chassis), PortID: string(lldp.Port), SwitchSystemName: string(lldp.SystemName)}
	if told != (v1alpha1.LLDP{}) {
		nic.LLDP = &told
	}
}

func vlan(n ironic.Number) (v1alpha1.VLANID, bool) {
	if !n.Known || n.Value < 0 || n.Value > maxVLAN {
		return 0, false
	}
	return v1alpha1.VLANID(n.Value), true
}

func storage(disks []ironic.Disk) []v1alpha1.Storage {
	var list []v1alpha1.Storage
	for _, d := range disks {
		s := v1alpha1.Storage{
			Name: string(cmp.Or(d.ByPath, d.Name)), Rotational: d.Rotational.Value, Type: diskType(d), SizeBytes: v1alpha1.Capacity(d.Size.Value),
			Vendor: string(d.Vendor), Model: string(d.Model), SerialNumber: string(d.Serial), WWN: string(d.WWN),
			WWNVendorExtension: string(d.WWNVendorExtension), WWNWithExtension: string(d.WWNWithExtension), HCTL: string(d.HCTL),
		}
		for _, name := range []ironic.Text{d.Name, d.ByPath} {
			if name != "" {
				s.AlternateNames = append(s.AlternateNames, string(name))
			}
		}
		list = append(list, s)
	}
	return list
}

// diskType is what a disk is built of, "" if nothing tells.
func diskType(d ironic.Disk) v1alpha1.DiskType {
	switch {
	case d.Rotational.Value:
		return v1alpha1.HDD
	case strings.HasPrefix(string(d.Name), "/dev/nvme"):
		return v1alpha1.NVME
	case d.Rotational.Known:
		return v1alpha1.SSD
	default:
		return ""
	}
}
