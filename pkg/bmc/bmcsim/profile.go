package bmcsim

import (
	"net/http"
	"strings"
)

// Names of the hardware profiles: the shapes in which vendors' BMCs show the same
// machine. They are built after public descriptions of such BMCs and are no
// copies of any; what differs between them is what clients stumble over.
const (
	// Dell: long ids, expands collections by one level, virtual media on the
	// system, two storage controllers, refuses "on" when on with 409.
	Dell = "dell"
	// HPE: links with a slash at the end, errors with an id and no text, a wrong
	// login is 400, NVMe drives, speed null for a link that is down.
	HPE = "hpe"
	// Supermicro: no expansion, memory only in its modules, allowed resets only in
	// an ActionInfo, virtual media that refuses more than the image, a virtual USB
	// card with the same MAC on every machine.
	Supermicro = "supermicro"
	// OpenBMC: Arm, expands by levels, wants If-Match on changes, shows the power
	// in transition, network cards only in the chassis, simple storage.
	OpenBMC = "openbmc"
)

// Profiles are the names of all hardware profiles.
func Profiles() []string { return []string{Dell, HPE, Supermicro, OpenBMC} }

func findProfile(name string) *profile {
	switch name {
	case Dell:
		return dell()
	case HPE:
		return hpe()
	case Supermicro:
		return supermicro()
	case OpenBMC:
		return openBMC()
	case Plain:
		return plain()
	default:
		return nil
	}
}

// profile is the shape of one vendor's machines. It is shared by its hosts and
// never changed.
type profile struct {
	name         string
	vendor       string // of the service root
	product      string // of the service root
	manufacturer string
	model        string
	biosVersion  string
	bmcVersion   string
	serialDigits int
	sku          bool // the service tag is in SKU, SerialNumber is the board's

	// The ids in a service of one BMC.
	systemID, managerID, chassisID string

	expand      expansion
	cpu         cpuShape
	memory      memoryShape
	nics        []nicShape
	nicsChassis bool // cards are in the chassis' NetworkAdapters only
	controllers []controllerShape
	simple      []diskShape
	media       []mediaShape
	bios        []attribute
	pendingBIOS string // last part of the path of the pending settings

	emptyVolumes  bool // controllers that do no RAID show a collection of volumes too
	systemMedia   bool // virtual media belongs to the system, else to the manager
	bareInsert    bool // InsertMedia refuses Inserted and WriteProtected
	needETag      bool // changes of the system want If-Match
	transitional  bool // shows PoweringOn and PoweringOff
	bootProgress  bool
	actionInfo    bool // allowed resets are in an ActionInfo only
	slash         bool // links end with a slash
	terse         bool // errors carry an id, no text
	raidOnReset   bool // volumes change at the next boot
	loginRefused  int  // status of a wrong login
	alreadyStatus int  // status of a reset to the power that is there already
	resets        []string
}

// expansion is what the service says of $expand: levels is 0 if it has none.
type expansion struct {
	levels int
	all    bool
}

type cpuShape struct {
	sockets                int
	maker, model           string
	architecture, isa      string
	cores, threads         int // threads 0: not said
	maxMHz, operatingMHz   int
	logicalInSummary       bool
	idFormat, socketFormat string
}

type memoryShape struct {
	summary   any // TotalSystemMemoryGiB: nil leaves the summary out
	modules   int
	moduleMiB int
	idFormat  string
}

// nicShape is one port. Mbps is what SpeedMbps says: a number, nil for null.
type nicShape struct {
	id, name string
	mbps     any
	down     bool
	upper    bool   // MAC in capitals
	mac      string // instead of one of its own
	adapter  string
	function string
}

type diskShape struct {
	id, name, maker, model string
	media, protocol        string
	bytes                  int64
	rpm                    int
	naming                 string // format of its durable name: NAA, EUI, none
	chassis                bool   // its resource is under the chassis
}

type controllerShape struct {
	id, name string
	raid     bool
	disks    []diskShape
}

type mediaShape struct {
	id, name string
	types    []string
}

func (m mediaShape) optical() bool {
	for _, t := range m.types {
		if t == "CD" || t == "DVD" {
			return true
		}
	}
	return false
}

// attribute is one firmware setting, and its entry in the registry.
type attribute struct {
	name     string
	kind     string // Enumeration, Integer, String, Boolean, Password
	value    any
	allowed  []string
	low      int
	high     int
	readOnly bool
}

func enumeration(name, value string, others ...string) attribute {
	return attribute{name: name, kind: "Enumeration", value: value, allowed: append([]string{value}, others...)}
}

func commonResets() []string {
	return []string{"On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "PowerCycle", "Nmi"}
}

func dell() *profile {
	port := func(id string, mbps any, down bool) nicShape {
		return nicShape{id: id, name: "System Ethernet Interface", mbps: mbps, down: down, upper: true, adapter: id[:strings.IndexByte(id, '-')], function: id}
	}
	ssd := func(n string) diskShape {
		return diskShape{
			id: "Disk.Bay." + n + ":Enclosure.Internal.0-1:RAID.SL.3-1", name: "Solid State Disk 0:1:" + n, maker: "INTEL", model: "SSDSC2KB480G8R",
			media: "SSD", protocol: "SATA", bytes: 480103981056, naming: "NAA",
		}
	}
	hdd := func(n string) diskShape {
		return diskShape{
			id: "Disk.Bay." + n + ":Enclosure.Internal.0-1:RAID.SL.3-1", name: "Physical Disk 0:1:" + n, maker: "SEAGATE", model: "ST2000NX0463",
			media: "HDD", protocol: "SAS", bytes: 2000398934016, rpm: 7200, naming: "NAA",
		}
	}
	return &profile{
		name: Dell, vendor: "Dell", product: "Integrated Dell Remote Access Controller (simulated)", manufacturer: "Dell Inc.", model: "PowerEdge R650",
		biosVersion: "1.12.4", bmcVersion: "6.10.30.20", serialDigits: 14, sku: true,
		systemID: "System.Embedded.1", managerID: "iDRAC.Embedded.1", chassisID: "System.Embedded.1",
		expand: expansion{levels: 1, all: true},
		cpu: cpuShape{
			sockets: 2, maker: "Intel", model: "Intel(R) Xeon(R) Gold 6330 CPU @ 2.00GHz", architecture: "x86", isa: "x86-64", cores: 28, threads: 56,
			maxMHz: 4000, operatingMHz: 2000, logicalInSummary: true, idFormat: "CPU.Socket.%d", socketFormat: "CPU.Socket.%d",
		},
		memory: memoryShape{summary: 256, modules: 8, moduleMiB: 32768, idFormat: "DIMM.Socket.A%d"},
		nics: []nicShape{
			port("NIC.Integrated.1-1-1", 25000, false),
			port("NIC.Integrated.1-2-1", 25000, false),
			port("NIC.Embedded.1-1-1", 1000, false),
			port("NIC.Embedded.2-1-1", 0, true),
		},
		controllers: []controllerShape{
			{id: "RAID.SL.3-1", name: "PERC H755 Front", raid: true, disks: []diskShape{ssd("0"), ssd("1"), hdd("2"), hdd("3")}},
			{id: "AHCI.Embedded.1-1", name: "C620 Series Chipset Family SSATA Controller"},
		},
		media:        []mediaShape{{"1", "Virtual Media 1", []string{"CD", "DVD", "USBStick"}}, {"2", "Virtual Media 2", []string{"CD", "DVD", "USBStick"}}},
		emptyVolumes: true, systemMedia: true, raidOnReset: true, loginRefused: http.StatusUnauthorized, alreadyStatus: http.StatusConflict, resets: commonResets(), pendingBIOS: "Settings",
		bios: []attribute{
			enumeration("ProcVirtualization", "Enabled", "Disabled"), enumeration("LogicalProc", "Enabled", "Disabled"), enumeration("SriovGlobalEnable", "Disabled", "Enabled"),
			enumeration("BootMode", "Uefi", "Bios"),
			{name: "AssetTag", kind: "String", value: "", high: 63},
			{name: "SystemModelName", kind: "String", value: "PowerEdge R650", high: 32, readOnly: true},
		},
	}
}

func hpe() *profile {
	nvme := func(n string) diskShape {
		return diskShape{
			id: n, name: "NVMe Drive", maker: "HPE", model: "MO001600KXAVP", media: "SSD", protocol: "NVMe", bytes: 1600321314816, naming: "EUI",
		}
	}
	return &profile{
		name: HPE, vendor: "HPE", product: "ProLiant DL360 Gen10 Plus", manufacturer: "HPE", model: "ProLiant DL360 Gen10 Plus",
		biosVersion: "U46 v1.60 (01/13/2022)", bmcVersion: "iLO 5 v2.72", serialDigits: 10,
		systemID: "1", managerID: "1", chassisID: "1", slash: true, terse: true,
		expand: expansion{levels: 1},
		cpu: cpuShape{
			sockets: 2, maker: "Intel(R) Corporation", model: "Intel(R) Xeon(R) Silver 4314 CPU @ 2.40GHz", architecture: "x86", cores: 16, threads: 32,
			maxMHz: 4000, idFormat: "%d", socketFormat: "Proc %d",
		},
		memory: memoryShape{summary: 192, modules: 6, moduleMiB: 32768, idFormat: "proc1dimm%d"},
		nics: []nicShape{
			{id: "1", mbps: 10000, upper: true}, {id: "2", mbps: 10000, upper: true}, {id: "3", mbps: nil, down: true, upper: true}, {id: "4", mbps: nil, down: true, upper: true},
		},
		controllers:  []controllerShape{{id: "DA000000", name: "NVMe Storage Controller", disks: []diskShape{nvme("DA000000"), nvme("DA000001")}}},
		media:        []mediaShape{{"1", "VirtualMedia", []string{"Floppy", "USBStick"}}, {"2", "VirtualMedia", []string{"CD", "DVD"}}},
		bootProgress: true, loginRefused: http.StatusBadRequest, alreadyStatus: http.StatusBadRequest,
		resets: []string{"On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "PushPowerButton", "GracefulRestart"}, pendingBIOS: "settings",
		bios: []attribute{
			enumeration("ProcVirtualization", "Enabled", "Disabled"), enumeration("Sriov", "Enabled", "Disabled"),
			enumeration("WorkloadProfile", "GeneralPowerEfficientCompute", "Virtualization-MaxPerformance", "Custom"),
			{name: "MinProcIdlePower", kind: "Integer", value: 0, high: 6},
			{name: "AdminPassword", kind: "Password", value: nil, high: 31},
		},
	}
}

// sharedMAC is the address that every machine of some vendors shows for the
// virtual USB card between machine and BMC. RFC 7042 keeps it for documentation.
const sharedMAC = "00:00:5e:00:53:ff"

func supermicro() *profile {
	disk := func(n string) diskShape {
		return diskShape{
			id: "Disk.Bay." + n, name: "Disk Bay " + n, maker: "Micron", model: "Micron_5300_MTFDDAK960TDS", media: "SSD", protocol: "SATA", bytes: 960197124096, naming: "NAA", chassis: true,
		}
	}
	return &profile{
		name: Supermicro, vendor: "Supermicro", product: "", manufacturer: "Supermicro", model: "SYS-620P-TRT",
		biosVersion: "1.4b", bmcVersion: "01.01.24", serialDigits: 15,
		systemID: "1", managerID: "1", chassisID: "1",
		cpu: cpuShape{
			sockets: 2, maker: "Intel(R) Corporation", model: "Intel(R) Xeon(R) Silver 4309Y CPU @ 2.80GHz", architecture: "x86", isa: "x86-64", cores: 8,
			maxMHz: 3600, idFormat: "%d", socketFormat: "CPU%d",
		},
		memory: memoryShape{summary: 0, modules: 4, moduleMiB: 16384, idFormat: "%d"},
		nics: []nicShape{
			{id: "1", name: "Ethernet Interface", mbps: 10000, upper: true},
			{id: "2", name: "Ethernet Interface", mbps: -1, down: true, upper: true},
			{id: "ToManager", name: "Host to BMC interface", mbps: 100, mac: sharedMAC},
		},
		controllers: []controllerShape{{id: "SATAEmbedded", name: "Embedded SATA", disks: []diskShape{disk("0"), disk("1")}}},
		media:       []mediaShape{{"CD1", "Virtual Removable Media", []string{"CD", "DVD"}}, {"Floppy1", "Virtual Removable Media", []string{"Floppy", "USBStick"}}},
		bareInsert:  true, actionInfo: true, loginRefused: http.StatusUnauthorized, alreadyStatus: http.StatusNoContent, resets: commonResets(), pendingBIOS: "SD",
		bios: []attribute{
			enumeration("IntelVirtualizationTechnology", "Enable", "Disable"), enumeration("HyperThreading", "Enable", "Disable"),
			{name: "QuietBoot", kind: "Boolean", value: true},
			{name: "WatchDogTimer", kind: "Integer", value: 5, low: 1, high: 30},
		},
	}
}

func openBMC() *profile {
	return &profile{
		name: OpenBMC, vendor: "", product: "", manufacturer: "Ampere(R)", model: "Mt. Jade",
		biosVersion: "2.10.100.02", bmcVersion: "v2.14.0", serialDigits: 12,
		systemID: "system", managerID: "bmc", chassisID: "chassis", nicsChassis: true,
		expand: expansion{levels: 6, all: true},
		cpu: cpuShape{
			sockets: 1, maker: "Ampere(R)", model: "Ampere(R) Altra(R) Processor", architecture: "ARM", isa: "ARM-A64", cores: 80, threads: 80,
			maxMHz: 3000, idFormat: "cpu%d", socketFormat: "CPU %d",
		},
		memory: memoryShape{modules: 8, moduleMiB: 16384, idFormat: "dimm%d"},
		nics: []nicShape{
			{id: "eth0", name: "Port 0", mbps: 100000, adapter: "ocp0", function: "fn0"}, {id: "eth1", name: "Port 1", mbps: 0, down: true, adapter: "ocp0", function: "fn1"},
		},
		simple:   []diskShape{{name: "nvme0", maker: "SAMSUNG", model: "MZ1L2960HCJR-00A07", bytes: 960197124096}, {name: "nvme1", maker: "SAMSUNG", model: "MZ1L2960HCJR-00A07", bytes: 960197124096}},
		media:    []mediaShape{{"Slot_0", "Virtual Removable Media", []string{"CD", "USBStick"}}},
		needETag: true, transitional: true, bootProgress: true, loginRefused: http.StatusUnauthorized, alreadyStatus: http.StatusNoContent, pendingBIOS: "Settings",
		resets: []string{"On", "ForceOff", "ForceOn", "ForceRestart", "GracefulRestart", "GracefulShutdown", "PowerCycle", "Nmi"},
		bios:   []attribute{enumeration("SMTControl", "Disabled", "Enabled"), {name: "NumaNodes", kind: "Integer", value: 1, low: 1, high: 4}},
	}
}
