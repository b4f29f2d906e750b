package ironic

import (
	"context"
	"encoding/json"

	"github.com/gophercloud/gophercloud/v2"
)

// Inventory is what an inspection found.
type Inventory struct {
	Hardware Hardware
	// Extra is what the hooks of inspection made of it. What of it cannot be read is
	// empty.
	Extra PluginData
}

// Hardware is a machine as its agent, or its BMC, tells of it.
type Hardware struct {
	Hostname Text `json:"hostname"`
	Vendor   struct {
		Manufacturer Text `json:"manufacturer"`
		Product      Text `json:"product_name"`
		Serial       Text `json:"serial_number"`
		Firmware     struct {
			Vendor  Text `json:"vendor"`
			Version Text `json:"version"`
			Date    Text `json:"build_date"`
		} `json:"firmware"`
	} `json:"system_vendor"`
	CPU struct {
		Architecture Text   `json:"architecture"`
		Model        Text   `json:"model_name"`
		Count        Number `json:"count"`
		Frequency    Number `json:"frequency"` // MHz
		Flags        []Text `json:"flags"`
	} `json:"cpu"`
	Memory struct {
		PhysicalMB Number `json:"physical_mb"` // MiB
		Total      Number `json:"total"`       // bytes that the agent's system can use
	} `json:"memory"`
	Interfaces []Interface `json:"interfaces"`
	Disks      []Disk      `json:"disks"`
}

// Interface is a network interface.
type Interface struct {
	Name      Text   `json:"name"`
	MAC       Text   `json:"mac_address"`
	IPv4      Text   `json:"ipv4_address"`
	IPv6      Text   `json:"ipv6_address"`
	Vendor    Text   `json:"vendor"`
	Product   Text   `json:"product"`
	PCI       Text   `json:"pci_address"`
	SpeedMbps Number `json:"speed_mbps"`
}

// Disk is a disk.
type Disk struct {
	Name               Text   `json:"name"`
	ByPath             Text   `json:"by_path"`
	Model              Text   `json:"model"`
	Vendor             Text   `json:"vendor"`
	Serial             Text   `json:"serial"`
	WWN                Text   `json:"wwn"`
	WWNVendorExtension Text   `json:"wwn_vendor_extension"`
	WWNWithExtension   Text   `json:"wwn_with_extension"`
	HCTL               Text   `json:"hctl"`
	Size               Number `json:"size"` // bytes
	Rotational         Flag   `json:"rotational"`
}

// PluginData is what the hooks of inspection add, by the name of the interface.
type PluginData struct {
	Interfaces map[string]struct {
		PXE Flag `json:"pxe_enabled"`
	} `json:"all_interfaces"`
	LLDP     map[string]LLDP `json:"parsed_lldp"`
	MemoryMB Number          `json:"memory_mb"`
	Extra    struct {
		Memory map[string]struct {
			Size Number `json:"size"` // bytes
		} `json:"memory"`
		Network map[string]struct {
			Speed Text `json:"speed"` // such as 10Gbit/s
		} `json:"network"`
	} `json:"extra"`
}

// LLDP is what a switch tells of itself.
type LLDP struct {
	Chassis    Text   `json:"switch_chassis_id"`
	Port       Text   `json:"switch_port_id"`
	SystemName Text   `json:"switch_system_name"`
	Untagged   Number `json:"switch_port_untagged_vlan_id"`
	VLANs      []struct {
		ID   Number `json:"id"`
		Name Text   `json:"name"`
	} `json:"switch_port_vlans"`
}

// UnmarshalJSON reads part by part, so that one that is of another form than this
// does not take the others with it.
func (p *PluginData) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if json.Unmarshal(b, &raw) != nil {
		return nil //nolint:nilerr // data of hooks that are not ours to know
	}
	for key, to := range map[string]any{"all_interfaces": &p.Interfaces, "parsed_lldp": &p.LLDP, "memory_mb": &p.MemoryMB, "extra": &p.Extra} {
		if v := raw[key]; v != nil {
			_ = json.Unmarshal(v, to) // what does not fit is as good as not told
		}
	}
	return nil
}

// Inventory is what the last inspection of a node found. A node without is an
// ErrNotFound.
func (c *Client) Inventory(ctx context.Context, uuid string) (Inventory, error) {
	var inv struct {
		Hardware Hardware   `json:"inventory"`
		Extra    PluginData `json:"plugin_data"`
	}
	err := c.call(ctx, call{name: "get inventory", about: "of node " + uuid, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		return c.get(ctx, s, s.ServiceURL("nodes", uuid, "inventory"), &inv)
	}})
	return Inventory{Hardware: inv.Hardware, Extra: inv.Extra}, err
}
