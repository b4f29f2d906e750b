package bmcsim

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
)

func getSystem(c *call) answer {
	h, p := c.host, c.host.shape
	h.mu.Lock()
	defer h.mu.Unlock()
	b := c.resource("ComputerSystem.v1_16_0.ComputerSystem", c.systemID(), "System")
	b["UUID"], b["SystemType"], b["HostName"], b["AssetTag"] = h.uuid, "Physical", "", ""
	b["Manufacturer"], b["Model"], b["BiosVersion"] = p.manufacturer, p.model, h.versions.BIOS
	b["SerialNumber"] = h.id.serial("system", p.serialDigits)
	if p.sku {
		b["SKU"] = h.id.serial("tag", 7)
	}
	b["PowerState"] = h.powerState()
	b["Status"] = obj{"State": "Enabled", "Health": h.health, "HealthRollup": h.health}
	b["Boot"] = h.bootBody()
	if p.bootProgress {
		b["BootProgress"] = obj{"LastState": h.bootProgress()}
	}
	h.summaries(b)
	c.systemLinks(b)
	return answer{status: http.StatusOK, body: b, etag: h.etag()}
}

func (h *Host) etag() string { return fmt.Sprintf(`W/"%x"`, h.rev) }

func (h *Host) bootBody() obj {
	return obj{
		"BootSourceOverrideEnabled": h.machine.boot.Enabled, "BootSourceOverrideTarget": h.machine.boot.Target, "BootSourceOverrideMode": h.machine.boot.Mode,
		"BootSourceOverrideTarget@Redfish.AllowableValues": bootTargets(),
	}
}

func bootTargets() []string {
	return []string{"None", "Pxe", "Cd", "Usb", "Hdd", "BiosSetup", "UefiHttp"}
}

func bootModes() []string   { return []string{"UEFI", "Legacy"} }
func bootEnabled() []string { return []string{"Disabled", "Once", "Continuous"} }

// summaries are the counts that a system shows of its parts.
func (h *Host) summaries(b obj) {
	cpu := h.shape.cpu
	s := obj{"Count": cpu.sockets, "Model": cpu.model, "Status": enabled()}
	if cpu.logicalInSummary {
		s["LogicalProcessorCount"] = cpu.sockets * cpu.threads
	}
	b["ProcessorSummary"] = s
	if h.shape.memory.summary != nil {
		b["MemorySummary"] = obj{"TotalSystemMemoryGiB": h.shape.memory.summary, "Status": enabled()}
	}
}

func (c *call) systemLinks(b obj) {
	p := c.host.shape
	for key, part := range map[string]string{"Processors": "Processors", "Memory": "Memory", "Bios": "Bios", "SecureBoot": "SecureBoot"} {
		b[key] = link{c.system(part)}
	}
	if !p.nicsChassis {
		b["EthernetInterfaces"] = link{c.system("EthernetInterfaces")}
	}
	if len(p.controllers) > 0 {
		b["Storage"] = link{c.system("Storage")}
	}
	if len(p.simple) > 0 {
		b["SimpleStorage"] = link{c.system("SimpleStorage")}
	}
	if p.systemMedia {
		b["VirtualMedia"] = link{c.system("VirtualMedia")}
	}
	b["Links"] = obj{"Chassis": []link{{c.chassis()}}, "ManagedBy": []link{c.link("Managers", c.managerID())}}
	act := obj{"target": c.system("Actions", "ComputerSystem.Reset")}
	if p.actionInfo {
		act["@Redfish.ActionInfo"] = c.system("ResetActionInfo")
	} else {
		act["ResetType@Redfish.AllowableValues"] = p.resets
	}
	b["Actions"] = obj{"#ComputerSystem.Reset": act}
}

func getResetInfo(c *call) answer {
	b := c.resource("ActionInfo.v1_1_2.ActionInfo", "ResetActionInfo", "Reset Action Info")
	b["Parameters"] = []obj{{"Name": "ResetType", "Required": true, "DataType": "String", "AllowableValues": c.host.shape.resets}}
	return ok(b)
}

// bootPatch is what may be changed of a system.
type bootPatch struct {
	Boot *struct {
		Target  *string `json:"BootSourceOverrideTarget"`
		Enabled *string `json:"BootSourceOverrideEnabled"`
		Mode    *string `json:"BootSourceOverrideMode"`
	}
}

func patchSystem(c *call) answer {
	var p bootPatch
	if a, readable := c.body(&p); !readable {
		return a
	}
	h := c.host
	h.mu.Lock()
	defer h.mu.Unlock()
	args := map[string]string{}
	next := h.machine.boot
	if p.Boot != nil {
		for _, f := range []struct {
			name  string
			value *string
			into  *string
			legal []string
		}{
			{"BootSourceOverrideTarget", p.Boot.Target, &next.Target, bootTargets()},
			{"BootSourceOverrideEnabled", p.Boot.Enabled, &next.Enabled, bootEnabled()},
			{"BootSourceOverrideMode", p.Boot.Mode, &next.Mode, bootModes()},
		} {
			if f.value == nil {
				continue
			}
			args[f.name] = *f.value
			if !slices.Contains(f.legal, *f.value) {
				return refuse(http.StatusBadRequest, "PropertyValueNotInList", "The value "+*f.value+" for the property "+f.name+" is not in the list of acceptable values.", *f.value, f.name)
			}
			*f.into = *f.value
		}
	}
	c.note("SetBoot", args)
	if a, stale := c.preconditions(); stale {
		return a
	}
	h.machine.boot = next
	h.touch()
	return done()
}

// preconditions holds a change against the state that the caller has seen. The
// caller holds h.mu.
func (c *call) preconditions() (answer, bool) {
	got := c.r.Header.Get("If-Match")
	switch {
	case got == "" && c.host.shape.needETag:
		return refuse(http.StatusPreconditionRequired, "PreconditionRequired", "A precondition header or annotation is required to change this resource."), true
	case got != "" && got != "*" && strings.TrimPrefix(got, "W/") != strings.TrimPrefix(c.host.etag(), "W/"):
		return refuse(http.StatusPreconditionFailed, "PreconditionFailed", "The ETag supplied did not match the ETag required to change this resource."), true
	default:
		return answer{}, false
	}
}

func postReset(c *call) answer {
	var in struct{ ResetType string }
	if a, readable := c.body(&in); !readable {
		return a
	}
	h := c.host
	c.note("Reset", map[string]string{"ResetType": in.ResetType})
	if !slices.Contains(h.shape.resets, in.ResetType) {
		return refuse(http.StatusBadRequest, "ActionParameterValueNotInList", "The value "+in.ResetType+" for the parameter ResetType is not in the list of acceptable values.", in.ResetType, "ResetType", "Reset")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.faults.RefusePower {
		return refuse(http.StatusBadRequest, "ActionNotSupported", "The action ComputerSystem.Reset is not supported by the resource now.", "ComputerSystem.Reset")
	}
	if h.faults.RefuseShutdown && strings.HasPrefix(in.ResetType, "Graceful") {
		return refuse(http.StatusBadRequest, "ActionParameterNotSupported", "The parameter ResetType with the value "+in.ResetType+" is not supported on the target resource.", "ResetType", "Reset")
	}
	if already := h.reset(in.ResetType); already && h.shape.alreadyStatus != http.StatusNoContent {
		return refuse(h.shape.alreadyStatus, "InvalidOperationForSystemState", "The command cannot be executed: the server is already powered "+strings.ToUpper(h.powerState())+".", in.ResetType)
	}
	return done()
}

func getProcessors(c *call) answer {
	return c.collection("Processor", "Processors", numbered(c.host.shape.cpu.idFormat, c.host.shape.cpu.sockets)...)
}

func numbered(format string, n int) []string {
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprintf(format, i+1))
	}
	return ids
}

func getProcessor(c *call) answer {
	p := c.host.shape.cpu
	i := slices.Index(numbered(p.idFormat, p.sockets), c.id(1))
	if i < 0 {
		return missing(root + "/" + c.path)
	}
	b := c.resource("Processor.v1_11_0.Processor", c.id(1), "CPU "+c.id(1))
	b["ProcessorType"], b["Socket"], b["Manufacturer"], b["Model"] = "CPU", fmt.Sprintf(p.socketFormat, i+1), p.maker, p.model
	b["ProcessorArchitecture"], b["TotalCores"], b["MaxSpeedMHz"], b["Status"] = p.architecture, p.cores, p.maxMHz, enabled()
	for key, n := range map[string]int{"TotalThreads": p.threads, "OperatingSpeedMHz": p.operatingMHz} {
		if n > 0 {
			b[key] = n
		}
	}
	if p.isa != "" {
		b["InstructionSet"] = p.isa
	}
	return ok(b)
}

func getMemory(c *call) answer {
	m := c.host.shape.memory
	return c.collection("Memory", "Memory Device Collection", numbered(m.idFormat, m.modules)...)
}

func getModule(c *call) answer {
	m := c.host.shape.memory
	if !slices.Contains(numbered(m.idFormat, m.modules), c.id(1)) {
		return missing(root + "/" + c.path)
	}
	b := c.resource("Memory.v1_11_0.Memory", c.id(1), "Memory "+c.id(1))
	b["CapacityMiB"], b["MemoryDeviceType"], b["Manufacturer"], b["Status"] = m.moduleMiB, "DDR4", "Samsung", enabled()
	b["SerialNumber"] = c.host.id.serial("memory/"+c.id(1), 8)
	return ok(b)
}

func getSecureBoot(c *call) answer {
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	b := c.resource("SecureBoot.v1_1_0.SecureBoot", "SecureBoot", "UEFI Secure Boot")
	b["SecureBootEnable"], b["SecureBootMode"] = c.host.secure, "DeployedMode"
	b["SecureBootCurrentBoot"] = map[bool]string{true: "Enabled", false: "Disabled"}[c.host.secure]
	return ok(b)
}

func patchSecureBoot(c *call) answer {
	var in struct{ SecureBootEnable *bool }
	if a, readable := c.body(&in); !readable {
		return a
	}
	if in.SecureBootEnable == nil {
		return refuse(http.StatusBadRequest, "PropertyMissing", "The property SecureBootEnable is required.", "SecureBootEnable")
	}
	c.note("SetSecureBoot", map[string]string{"SecureBootEnable": fmt.Sprint(*in.SecureBootEnable)})
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	c.host.secure = *in.SecureBootEnable
	c.host.touch()
	return done()
}

func getManager(c *call) answer {
	h := c.host
	h.mu.Lock()
	defer h.mu.Unlock()
	b := c.resource("Manager.v1_11_0.Manager", c.managerID(), "Manager")
	b["ManagerType"], b["FirmwareVersion"], b["Model"], b["PowerState"], b["Status"] = "BMC", h.versions.BMC, h.shape.product, "On", enabled()
	b["UUID"] = identity{seed: h.id.seed + "/bmc", number: h.id.number}.uuid()
	b["Links"] = obj{"ManagerForServers": []link{{c.system()}}, "ManagerForChassis": []link{{c.chassis()}}}
	if !h.shape.systemMedia {
		b["VirtualMedia"] = c.link("Managers", c.managerID(), "VirtualMedia")
	}
	return ok(b)
}

func getChassis(c *call) answer {
	h := c.host
	b := c.resource("Chassis.v1_14_0.Chassis", c.chassisID(), "Computer System Chassis")
	b["ChassisType"], b["Manufacturer"], b["Model"], b["Status"] = "RackMount", h.shape.manufacturer, h.shape.model, enabled()
	b["SerialNumber"] = h.id.serial("system", h.shape.serialDigits)
	b["NetworkAdapters"] = link{c.chassis("NetworkAdapters")}
	b["Links"] = obj{"ComputerSystems": []link{{c.system()}}, "ManagedBy": []link{c.link("Managers", c.managerID())}}
	return ok(b)
}

// gbps is a speed of a port as its adapter shows it; nil if it has no link.
func gbps(mbps any) any {
	n, isInt := mbps.(int)
	if !isInt || n <= 0 {
		return nil
	}
	return math.Round(float64(n)/100) / 10
}
