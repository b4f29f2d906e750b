package agent

import (
	"encoding/hex"
	"fmt"
	"strings"
)

const (
	diskBytes   = 480103981056
	memoryBytes = 64 << 30
	nicMbps     = 10000
)

// inventory is what the agent reports of its machine.
func (a *agent) inventory() obj {
	h := a.boot.Host
	view := h.View()
	macs := h.MACs()
	var nics []any
	all := obj{}
	for i, mac := range macs {
		name, ip := fmt.Sprintf("eno%d", i+1), fmt.Sprintf("192.0.2.%d", 10+i)
		nics = append(nics, obj{
			"name": name, "mac_address": mac, "ipv4_address": ip, "ipv6_address": nil, "has_carrier": true, "lldp": lldp(i), "pci_address": fmt.Sprintf("0000:02:00.%d", i),
			"driver": "sim", "vendor": "0x8086", "product": "0x1572", "client_id": nil, "biosdevname": nil, "speed_mbps": nicMbps,
		})
		all[name] = obj{"mac": mac, "ip": ip, "client_id": nil, "pxe": i == 0}
	}
	disk := obj{
		"name": "/dev/sda", "model": "SIMULATED", "size": diskBytes, "rotational": false, "wwn": "0x5000c500" + view.ID[:8], "serial": "SN" + view.ID[:8], "vendor": "ATA",
		"wwn_with_extension": nil, "wwn_vendor_extension": nil, "hctl": "0:0:0:0", "by_path": "/dev/disk/by-path/pci-0000:00:1f.2-ata-1",
	}
	var fault any
	if text := a.fleet.Faults(h).FailInspect; text != "" {
		fault = text
	}
	return obj{
		"inventory": obj{
			"interfaces": nics, "disks": []any{disk},
			"cpu":         obj{"model_name": "Simulated CPU", "frequency": "2400.0000", "count": 16, "architecture": "x86_64", "flags": []string{"vmx"}},
			"memory":      obj{"total": memoryBytes, "physical_mb": memoryBytes >> 20},
			"bmc_address": "0.0.0.0", "bmc_v6address": "::/0",
			"system_vendor": obj{"product_name": view.Profile, "serial_number": "S" + view.ID[:8], "manufacturer": "Simulated", "firmware": obj{"vendor": "Simulated", "version": view.BIOS, "build_date": "01/01/2026"}},
			"boot":          obj{"current_boot_mode": "uefi", "pxe_interface": macs[0]},
			"hostname":      view.Name,
		},
		"root_disk": disk, "boot_interface": "01-" + strings.ReplaceAll(macs[0], ":", "-"),
		"configuration": obj{"collectors": []string{"default"}, "managers": []any{}},
		"error":         fault, "interfaces": all,
	}
}

// lldp is what a card hears of its switch, raw: type and content of each TLV. Card
// i is at port Eth1/i of switch-1, untagged in VLAN 10, tagged in VLAN 20.
func lldp(i int) []any {
	tlv := func(kind int, content string) []any { return []any{kind, content} }
	text := func(s string) string { return hex.EncodeToString([]byte(s)) }
	return []any{
		tlv(1, "04001b21aabbcc"), tlv(2, "05"+text(fmt.Sprintf("Eth1/%d", i+1))), tlv(3, "0078"), tlv(5, text("switch-1")),
		tlv(127, "0080c201000a"), tlv(127, "0080c203001406"+text("vlan20")), tlv(0, ""),
	}
}
