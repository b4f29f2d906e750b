package bmcsim

import "net/http"

// Plain is a machine of no vendor in particular: one RAID controller, virtual media at
// the manager, where clients of some years ago look for it, and nothing to stumble
// over. It is used where it is named, and not among those that hosts get in turn.
const Plain = "plain"

func plain() *profile {
	disk := func(n string) diskShape {
		return diskShape{id: "Disk." + n, name: "Disk " + n, maker: "ATA", model: "SIMULATED SSD", media: "SSD", protocol: "SATA", bytes: 480103981056, naming: "NAA"}
	}
	return &profile{
		name: Plain, vendor: "", product: "Simulated BMC", manufacturer: "Simulated", model: "Plain", biosVersion: "1.0.0", bmcVersion: "1.0.0", serialDigits: 10,
		systemID: "1", managerID: "1", chassisID: "1",
		expand: expansion{levels: 1},
		cpu: cpuShape{
			sockets: 1, maker: "Simulated", model: "Simulated CPU", architecture: "x86", isa: "x86-64", cores: 16, threads: 32, maxMHz: 2400, logicalInSummary: true, idFormat: "CPU%d", socketFormat: "CPU %d",
		},
		memory:      memoryShape{summary: 64, modules: 4, moduleMiB: 16384, idFormat: "DIMM%d"},
		nics:        []nicShape{{id: "1", name: "Port 1", mbps: 10000}, {id: "2", name: "Port 2", mbps: 10000}},
		controllers: []controllerShape{{id: "RAID.1", name: "RAID controller", raid: true, disks: []diskShape{disk("0"), disk("1"), disk("2"), disk("3")}}},
		media:       []mediaShape{{"Cd", "Virtual CD", []string{"CD", "DVD"}}, {"Usb", "Virtual USB stick", []string{"USBStick", "Floppy"}}},
		raidOnReset: true, loginRefused: http.StatusUnauthorized, alreadyStatus: http.StatusNoContent, resets: commonResets(), pendingBIOS: "Settings",
		bios: []attribute{
			enumeration("ProcVirtualization", "Enabled", "Disabled"), enumeration("SriovGlobalEnable", "Disabled", "Enabled"),
			{name: "AssetTag", kind: "String", value: "", high: 63},
		},
	}
}
