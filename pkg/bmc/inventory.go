package bmc

import (
	"context"
	"encoding/json"
	"math"
	"strings"

	"github.com/stmcginnis/gofish/common"
	"github.com/stmcginnis/gofish/redfish"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Inventory is what a BMC knows of the hardware of its machine, without booting it.
type Inventory struct {
	// Details are in this API's words and units. What the BMC does not know is left
	// out: names of devices are the BMC's own, not those of an operating system, and
	// there are no IP addresses, LLDP data or processor flags.
	Details v1alpha1.HardwareDetails
	// Notes say what could not be read, if anything.
	Notes []string
}

// Inventory reads the hardware, in as few requests as the service's way of expanding
// allows: 5 to 8 where it does, one for each part where it does not.
func (b *BMC) Inventory(ctx context.Context) (Inventory, error) {
	var out Inventory
	err := b.converse(ctx, "read the hardware", func(t *talk) error {
		body, s, _, err := t.readSystem()
		if err != nil {
			return err
		}
		c := &collector{talk: t, system: body, path: s.path}
		out, err = c.collect()
		return err
	})
	return out, err
}

// collector gathers the parts of one machine.
type collector struct {
	*talk
	system *systemBody
	path   string
	notes  []string
}

func (c *collector) collect() (Inventory, error) {
	d := v1alpha1.HardwareDetails{
		SystemVendor: v1alpha1.HardwareSystemVendor{
			Manufacturer: strings.TrimSpace(c.system.Manufacturer), ProductName: strings.TrimSpace(c.system.Model), SerialNumber: strings.TrimSpace(c.system.serial()),
		},
		Firmware: v1alpha1.Firmware{BIOS: v1alpha1.BIOS{Version: strings.TrimSpace(c.system.BiosVersion)}},
		Hostname: c.system.HostName,
	}
	var err error
	if d.CPU, err = c.cpu(); err != nil {
		return Inventory{}, err
	}
	if d.RAMMebibytes, err = c.memory(); err != nil {
		return Inventory{}, err
	}
	if d.NIC, err = c.nics(); err != nil {
		return Inventory{}, err
	}
	if d.Storage, err = c.disks(); err != nil {
		return Inventory{}, err
	}
	return Inventory{Details: d, Notes: c.notes}, nil
}

// note keeps what could not be read, in the place of an error that would make the
// rest worthless.
func (c *collector) note(text string) { c.notes = append(c.notes, text) }

// parts reads the members of a collection into a type of gofish, which knows the
// oddities of many vendors. A part that is odd beyond that is noted and left out.
func parts[T any](c *collector, what, path string) ([]*T, error) {
	members, err := c.all(pathOf(path))
	if isOdd(err) {
		c.note("the " + what + " could not be read")
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeParts[T](c, what, members), nil
}

func decodeParts[T any](c *collector, what string, members []json.RawMessage) []*T {
	out := make([]*T, 0, len(members))
	for _, m := range members {
		p := new(T)
		if err := json.Unmarshal(m, p); err != nil {
			c.note("one of the " + what + " is described in a way that is not understood")
			continue
		}
		out = append(out, p)
	}
	return out
}

func absent(s common.Status) bool { return s.State == common.AbsentState }

// cpu takes the processors together: architecture, model and clock of the first, and
// as many logical processors as all have.
func (c *collector) cpu() (v1alpha1.CPU, error) {
	all, err := parts[redfish.Processor](c, "processors", c.system.Processors.ID)
	if err != nil {
		return v1alpha1.CPU{}, err
	}
	sum := c.system.ProcessorSummary
	cpu := v1alpha1.CPU{Model: strings.TrimSpace(sum.Model)}
	first := true
	for _, p := range all {
		if p.ProcessorType != "" && p.ProcessorType != redfish.CPUProcessorType || absent(p.Status) {
			continue
		}
		cpu.Count += logical(p)
		if first {
			first = false
			cpu.Arch, cpu.ClockMegahertz = arch(p), clock(p)
			if m := strings.TrimSpace(p.Model); m != "" {
				cpu.Model = m
			}
		}
	}
	for _, n := range []int{sum.LogicalProcessorCount, sum.CoreCount, sum.Count} {
		if cpu.Count <= 0 {
			cpu.Count = max(n, 0)
		}
	}
	return cpu, nil
}

// logical is how many logical processors one processor has.
func logical(p *redfish.Processor) int {
	if p.TotalThreads > 0 {
		return p.TotalThreads
	}
	return max(p.TotalCores, 0)
}

// clock is the highest clock frequency, in MHz, as in-band inspection shows it.
func clock(p *redfish.Processor) v1alpha1.ClockSpeed {
	if mhz := float64(p.MaxSpeedMHz); mhz > 0 {
		return v1alpha1.ClockSpeed(math.Round(mhz))
	}
	return v1alpha1.ClockSpeed(max(p.OperatingSpeedMHz, 0))
}

// arch is the architecture as Linux calls it; empty if it is not known.
func arch(p *redfish.Processor) string {
	switch p.InstructionSet {
	case redfish.X8664InstructionSet:
		return "x86_64"
	case redfish.ARMA64InstructionSet:
		return "aarch64"
	case redfish.PowerISAInstructionSet:
		return "ppc64le"
	case redfish.RV64InstructionSet:
		return "riscv64"
	case redfish.X86InstructionSet:
		return "i686"
	default: // not said, or no set of a server: see the architecture
	}
	switch p.ProcessorArchitecture { // no server of today has the 32-bit kinds
	case redfish.X86ProcessorArchitecture:
		return "x86_64"
	case redfish.ARMProcessorArchitecture:
		return "aarch64"
	case redfish.PowerProcessorArchitecture:
		return "ppc64le"
	case redfish.RISCVProcessorArchitecture:
		return "riscv64"
	default:
		return ""
	}
}

const mebibytesPerGibibyte = 1024

// memory is in MiB: the summary's GiB, to the nearest MiB, or the sum of the modules
// if there is no summary or it says 0, as some do until the first boot.
func (c *collector) memory() (int, error) {
	if gib := c.system.MemorySummary.TotalSystemMemoryGiB; gib > 0 {
		return int(math.Round(gib * mebibytesPerGibibyte)), nil
	}
	modules, err := parts[redfish.Memory](c, "memory modules", c.system.Memory.ID)
	if err != nil {
		return 0, err
	}
	sum := 0
	for _, m := range modules {
		if !absent(m.Status) {
			sum += max(m.CapacityMiB, 0)
		}
	}
	return sum, nil
}
