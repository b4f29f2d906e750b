package ironictest

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Hardware is what an inspection finds in a machine. The agent's inventory is
// built of it, and the thinner ones of BMCs.
type Hardware struct {
	Manufacturer, Product, Serial string
	CPUModel, CPUArch             string
	CPUs                          int
	MHz                           string // as the agent writes it: "2400.0000", or ""
	MemoryMiB                     int
	Disks                         []obj // as the agent writes them
	NICs                          []NIC // as the agent writes them
	// PluginData is added to what the hooks of an agent's inspection find.
	PluginData obj
}

// NIC is one network card: its entry in the agent's inventory, and whether the
// machine boots from it.
type NIC struct {
	Inventory obj
	PXE       bool
}

// SetHardware changes what an inspection finds.
func (m *Machine) SetHardware(h Hardware) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hardware = h
}

// Hardware is what an inspection finds. Its maps are the machine's own: change
// copies.
func (m *Machine) Hardware() Hardware {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hardware
}

const diskBytes = 480103981056

func nicSerial(n int) string { return fmt.Sprintf("N%06d", n) }

func defaultHardware(n int, s Spec) Hardware {
	h := Hardware{
		Manufacturer: "Ironictest", Product: "Model 1", Serial: fmt.Sprintf("S%06d", n),
		CPUModel: "Ironictest CPU", CPUArch: "x86_64", CPUs: 16, MHz: "2400.0000", MemoryMiB: 65536,
		Disks: []obj{{
			"name": "/dev/sda", "model": "TESTDISK", "size": diskBytes, "rotational": false, "wwn": fmt.Sprintf("0x5000c500%08x", n), "serial": fmt.Sprintf("SN%08d", n),
			"vendor": "ATA", "wwn_with_extension": nil, "wwn_vendor_extension": nil, "hctl": "0:0:0:0", "by_path": "/dev/disk/by-path/pci-0000:00:1f.2-ata-1",
		}},
	}
	for i, mac := range s.MACs {
		h.NICs = append(h.NICs, NIC{PXE: i == 0, Inventory: obj{
			"name": fmt.Sprintf("eno%d", i+1), "mac_address": mac, "ipv4_address": fmt.Sprintf("192.0.2.%d", 10+i), "ipv6_address": nil, "has_carrier": true,
			"lldp": lldp(i), "pci_address": fmt.Sprintf("0000:02:00.%d", i), "driver": "sim", "vendor": "0x8086", "product": "0x1572", "client_id": nil, "biosdevname": nil, "speed_mbps": 10000,
		}})
	}
	return h
}

// lldp is what a card hears of its switch: type and content of each TLV. Port i is
// Eth1/i of switch-1, untagged VLAN 10, tagged 20.
func lldp(i int) []any {
	text := func(s string) string { return hex.EncodeToString([]byte(s)) }
	return []any{
		[]any{1, "04001b21aabbcc"},
		[]any{2, "05" + text(fmt.Sprintf("Eth1/%d", i+1))},
		[]any{5, text("switch-1")},
		[]any{127, "0080c201000a"},
		[]any{127, "0080c203001406" + text("vlan20")},
	}
}

// parsedLLDP is what the hook parse-lldp makes of it.
func parsedLLDP(i int) obj {
	return obj{
		"switch_chassis_id": "00:1b:21:aa:bb:cc", "switch_port_id": fmt.Sprintf("Eth1/%d", i+1), "switch_system_name": "switch-1",
		"switch_port_untagged_vlan_id": 10, "switch_port_vlans": []any{obj{"id": 20, "name": "vlan20"}},
	}
}

// agentInventory is what an agent's inspection leaves at /inventory.
func (m *Machine) agentInventory() obj {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.hardware
	plugin := obj{"boot_interface": nil, "configuration": obj{"collectors": []any{"default"}, "managers": []any{}}, "error": nil}
	all, macs, heard := obj{}, []any{}, obj{}
	var nics []any
	for i, n := range h.NICs {
		name, _ := n.Inventory["name"].(string)
		mac, _ := n.Inventory["mac_address"].(string)
		entry := maps.Clone(n.Inventory)
		entry["pxe_enabled"] = n.PXE
		all[name], heard[name] = entry, parsedLLDP(i)
		macs, nics = append(macs, mac), append(nics, n.Inventory)
		if n.PXE {
			plugin["boot_interface"] = mac
		}
	}
	plugin["all_interfaces"], plugin["valid_interfaces"], plugin["macs"], plugin["parsed_lldp"] = all, all, macs, heard
	if len(h.Disks) > 0 {
		plugin["root_disk"] = h.Disks[0]
	}
	maps.Copy(plugin, h.PluginData)
	return obj{
		"inventory": obj{
			"interfaces": nics, "disks": list(h.Disks),
			"cpu":         obj{"model_name": h.CPUModel, "frequency": h.MHz, "count": h.CPUs, "architecture": h.CPUArch, "flags": []any{"vmx"}},
			"memory":      obj{"total": h.MemoryMiB << 20, "physical_mb": h.MemoryMiB},
			"bmc_address": "0.0.0.0", "bmc_v6address": "::/0",
			"system_vendor": obj{"product_name": h.Product, "serial_number": h.Serial, "manufacturer": h.Manufacturer, "firmware": obj{"vendor": h.Manufacturer, "version": m.firmware["bios"], "build_date": "01/01/2026"}},
			"boot":          obj{"current_boot_mode": "uefi", "pxe_interface": plugin["boot_interface"]},
			"hostname":      m.spec.Name,
		},
		"plugin_data": plugin,
	}
}

// bmcInventory is what an inspection through Redfish leaves: very thin up to 29.
func (m *Machine) bmcInventory(r Release) obj {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.hardware
	var nics, disks, macs []any
	plugin, all := obj{}, obj{}
	for _, n := range h.NICs {
		entry := obj{"mac_address": n.Inventory["mac_address"]}
		if r >= Ironic39 {
			entry["name"], entry["speed_mbps"] = n.Inventory["name"], n.Inventory["speed_mbps"]
			seen := maps.Clone(entry)
			seen["pxe_enabled"], seen["ipv6_address"] = false, nil
			all[fmt.Sprint(entry["name"])], macs = seen, append(macs, entry["mac_address"])
			plugin = obj{"all_interfaces": all, "valid_interfaces": all, "macs": macs}
		}
		nics = append(nics, entry)
	}
	for i, d := range h.Disks {
		entry := obj{"name": fmt.Sprintf("Disk.%d", i), "size": d["size"]}
		if r >= Ironic39 {
			entry["model"], entry["vendor"], entry["serial"], entry["rotational"] = d["model"], d["vendor"], d["serial"], d["rotational"]
		}
		disks = append(disks, entry)
	}
	inventory := obj{
		"interfaces": nics, "disks": disks,
		"cpu":           obj{"architecture": h.CPUArch, "count": h.CPUs, "frequency": 2400, "model_name": h.CPUModel},
		"memory":        obj{"physical_mb": h.MemoryMiB},
		"system_vendor": obj{"product_name": h.Product, "serial_number": h.Serial, "manufacturer": h.Manufacturer},
		"boot":          obj{"current_boot_mode": "uefi"},
	}
	if r >= Ironic39 {
		inventory["storage_controllers"] = []any{obj{"name": "RAID controller"}}
	}
	return obj{"inventory": inventory, "plugin_data": plugin}
}

// macs are the addresses of the machine's cards, the one that it boots from first.
func (m *Machine) macs() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var boot, others []string
	for _, n := range m.hardware.NICs {
		mac, _ := n.Inventory["mac_address"].(string)
		if n.PXE {
			boot = append(boot, mac)
			continue
		}
		others = append(others, mac)
	}
	return slices.Concat(boot, others)
}

func list(all []obj) []any {
	out := make([]any, 0, len(all))
	for _, x := range all {
		out = append(out, x)
	}
	return out
}
