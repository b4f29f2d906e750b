package bmc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Power is what a BMC shows of a machine's power.
type Power string

// The states of power. A machine on its way has not arrived: treat PoweringOff as on
// and PoweringOn as off where only the two matter.
const (
	PowerOn      Power = "On"
	PowerOff     Power = "Off"
	PoweringOn   Power = "PoweringOn"
	PoweringOff  Power = "PoweringOff"
	PowerUnknown Power = ""
)

// Health is what a BMC says of a machine's health.
type Health string

// The states of health.
const (
	HealthOK       Health = "OK"
	HealthWarning  Health = "Warning"
	HealthCritical Health = "Critical"
	HealthUnknown  Health = ""
)

// State is what one look at a machine tells.
type State struct {
	Power  Power
	Health Health
	// Boot is the override of the next boot. Device None means that there is none,
	// for instance because a boot has used it up.
	Boot BootOverride
	// Progress is how far the boot is, in Redfish's words (OSBootStarted,
	// OSRunning...); empty if the BMC does not say.
	Progress string
}

// BootOverride is what the firmware boots in place of its own order.
type BootOverride struct {
	Device Device
	Once   bool // for the next boot only
	Mode   BootMode
}

// System is a machine as its BMC names it.
type System struct {
	// Path is where the system is found.
	Path         string
	Manufacturer string
	Model        string
	SerialNumber string
	State
}

// systemBody is what is read of a ComputerSystem.
type systemBody struct {
	Type         string `json:"@odata.type"`
	Manufacturer string
	Model        string
	SerialNumber string
	SKU          string
	HostName     string
	BiosVersion  string
	PowerState   Power
	Status       struct{ Health, HealthRollup Health }
	BootProgress struct{ LastState string }
	Boot         struct {
		Target  string `json:"BootSourceOverrideTarget"`
		Enabled string `json:"BootSourceOverrideEnabled"`
		Mode    string `json:"BootSourceOverrideMode"`
	}
	ProcessorSummary struct {
		Count                 int
		LogicalProcessorCount int
		CoreCount             int
		Model                 string
	}
	MemorySummary      struct{ TotalSystemMemoryGiB float64 }
	Processors         link
	Memory             link
	EthernetInterfaces link
	Storage            link
	SimpleStorage      link
	VirtualMedia       link
	Links              struct{ Chassis, ManagedBy []link }
	Actions            struct {
		Reset resetAction `json:"#ComputerSystem.Reset"`
	}
}

type resetAction struct {
	Target     string   `json:"target"`
	Allowed    []string `json:"ResetType@Redfish.AllowableValues"`
	ActionInfo string   `json:"@Redfish.ActionInfo"`
}

// system is what does not change of a system, so that it is read once.
type system struct {
	path    string
	reset   resetAction
	media   []string // paths of the collections of virtual drives, the likeliest first
	manager string
	drive   string // path of the optical drive, once it has been found
}

func (b *systemBody) state() State {
	s := State{Power: b.PowerState, Health: b.Status.HealthRollup, Progress: b.BootProgress.LastState}
	if s.Health == HealthUnknown {
		s.Health = b.Status.Health
	}
	s.Boot = BootOverride{Device: Device(b.Boot.Target), Once: b.Boot.Enabled == "Once", Mode: BootMode(b.Boot.Mode)}
	if b.Boot.Enabled == "Disabled" || b.Boot.Target == "" {
		s.Boot.Device = None
	}
	return s
}

func (b *systemBody) lasting(path string) *system {
	s := &system{path: path, reset: b.Actions.Reset}
	s.reset.Target = pathOf(s.reset.Target)
	if s.reset.Target == "" {
		s.reset.Target = path + "/Actions/ComputerSystem.Reset"
	}
	if p := pathOf(b.VirtualMedia.ID); p != "" {
		s.media = append(s.media, p)
	}
	if len(b.Links.ManagedBy) > 0 {
		if p := pathOf(b.Links.ManagedBy[0].ID); p != "" {
			s.manager = strings.TrimRight(p, "/")
			s.media = append(s.media, s.manager+"/VirtualMedia") // where Redfish wants it to be
		}
	}
	return s
}

// Check makes sure that the BMC answers, takes the credentials and has the system:
// what has to be right before anything else is tried. It costs three requests, one
// more if the target names no system, and one only while a session is open.
func (b *BMC) Check(ctx context.Context) (System, error) {
	var out System
	err := b.converse(ctx, "check the BMC", func(t *talk) error {
		body, sys, _, err := t.readSystem()
		if err == nil {
			out = System{Path: sys.path, Manufacturer: body.Manufacturer, Model: body.Model, SerialNumber: body.serial(), State: body.state()}
		}
		return err
	})
	return out, err
}

// State reads power, health and boot override, in one request.
func (b *BMC) State(ctx context.Context) (State, error) {
	var out State
	err := b.converse(ctx, "read the power", func(t *talk) error {
		body, _, _, err := t.readSystem()
		if err == nil {
			out = body.state()
		}
		return err
	})
	return out, err
}

// readSystem reads the system as it is now.
func (t *talk) readSystem() (*systemBody, *system, http.Header, error) {
	path, err := t.systemPath()
	if err != nil {
		return nil, nil, nil, err
	}
	var b systemBody
	found, header, err := t.get(path, &b)
	switch {
	case err != nil:
		return nil, nil, nil, err
	case !found:
		t.remember(path, nil)
		return nil, nil, nil, t.noSystem("the BMC has no system at " + path)
	case b.Type != "" && !strings.Contains(b.Type, "ComputerSystem"):
		return nil, nil, nil, t.noSystem(path + " is no system")
	}
	s := b.lasting(path)
	if old := t.recall(path); old != nil {
		s.drive = old.drive
		if len(s.reset.Allowed) == 0 {
			s.reset.Allowed = old.reset.Allowed
		}
	}
	t.remember(path, s)
	return &b, s, header, nil
}

// known is what lasts of the system: from memory if it has been read before.
func (t *talk) known() (*system, error) {
	path, err := t.systemPath()
	if err != nil {
		return nil, err
	}
	if s := t.recall(path); s != nil {
		return s, nil
	}
	_, s, _, err := t.readSystem()
	return s, err
}

// recall gives a copy of what is remembered of a system; nil if that is nothing.
func (t *talk) recall(path string) *system {
	t.lane.memory.Lock()
	defer t.lane.memory.Unlock()
	if s := t.lane.systems[path]; s != nil {
		c := *s
		return &c
	}
	return nil
}

// remember keeps what lasts of a system; nil forgets it.
func (t *talk) remember(path string, s *system) {
	t.lane.memory.Lock()
	defer t.lane.memory.Unlock()
	if s == nil {
		delete(t.lane.systems, path)
		t.lane.only = ""
		return
	}
	t.lane.systems[path] = s
}

// systemPath is the target's path, or that of the only system.
func (t *talk) systemPath() (string, error) {
	if t.bmc.path != "" {
		return t.bmc.path, nil
	}
	t.lane.memory.Lock()
	only := t.lane.only
	t.lane.memory.Unlock()
	if only != "" {
		return only, nil
	}
	paths, err := t.systems()
	switch {
	case err != nil:
		return "", err
	case len(paths) == 0:
		return "", t.fail(&Error{Reason: ErrNoSystem, Detail: "the BMC shows no system", Advice: "check that its user may see systems; name the system's path in the address"})
	case len(paths) > 1:
		return "", t.fail(&Error{
			Reason: ErrSeveralSystems, Systems: paths, Detail: "the address names no system, and the BMC has several",
			Advice: "end the address with one of " + list(paths),
		})
	}
	t.lane.memory.Lock()
	t.lane.only = paths[0]
	t.lane.memory.Unlock()
	return paths[0], nil
}

// systems are the paths of all systems of the BMC.
func (t *talk) systems() ([]string, error) {
	where, e := t.lane.systemsPath(t.ctx)
	if e != nil {
		return nil, t.fail(e)
	}
	members, err := t.members(where)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, m := range members {
		var l link
		if json.Unmarshal(m, &l) == nil && pathOf(l.ID) != "" {
			paths = append(paths, strings.TrimRight(pathOf(l.ID), "/"))
		}
	}
	return paths, nil
}

// noSystem tells which systems there are in place of the one that was asked for.
func (t *talk) noSystem(detail string) error {
	e := &Error{Reason: ErrNoSystem, Detail: detail, Advice: "end the address with the path of a system, like /redfish/v1/Systems/1"}
	paths, err := t.systems()
	if errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrUnreachable) || errors.Is(err, ErrTimeout) {
		return err
	}
	if len(paths) > 0 {
		e.Systems, e.Advice = paths, "end the address with "+list(paths)
	}
	return t.fail(e)
}

// maxListed bounds the paths that a message names.
const maxListed = 5

func list(paths []string) string {
	if len(paths) > maxListed {
		return strings.Join(paths[:maxListed], ", ") + fmt.Sprintf(" (and %d more)", len(paths)-maxListed)
	}
	return strings.Join(paths, ", ")
}

// serial is the number that the machine's own software shows. Dell's SerialNumber is
// the board's; the service tag, which the BIOS tells the operating system, is the SKU.
func (b *systemBody) serial() string {
	if strings.HasPrefix(b.Manufacturer, "Dell") && b.SKU != "" {
		return b.SKU
	}
	return b.SerialNumber
}

// allows tells whether the BMC says that it knows a reset; one that says nothing is
// asked.
func (s *system) allows(kind string) bool {
	return len(s.reset.Allowed) == 0 || slices.Contains(s.reset.Allowed, kind)
}
