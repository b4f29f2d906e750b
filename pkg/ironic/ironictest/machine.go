package ironictest

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// What a machine runs.
const (
	RunsNothing = ""      // off, or on with nothing to boot
	RunsAgent   = "agent" // the provisioning agent
	RunsDisk    = "disk"  // the system on its disk
	RunsISO     = "iso"   // a live image
)

// Disk is what is on a machine's disk, and what was done to it.
type Disk struct {
	Image       string // address of the image; "" for none
	ConfigDrive any    // as it was given: a JSON object or a string
	Writes      int    // images written
	Erases      int    // times that it was erased, metadata or all
}

// Volume is a RAID volume.
type Volume struct {
	Name  string
	Level string
	GiB   float64
}

// View is how a machine stands.
type View struct {
	Name       string
	On         bool
	Runs       string
	Boots      int
	BootDevice string // what the next boot comes from: "disk", "cd"
	CD         string // address of the inserted image
	Disk       Disk
	Settings   map[string]string // BIOS settings in force
	Firmware   map[string]string // versions by component
	Volumes    []Volume
	Changes    int
}

// Machine is one machine with its BMC. It is safe for concurrent use.
type Machine struct {
	number int
	spec   Spec
	now    func() time.Time

	mu       sync.Mutex
	user     string
	password string
	faults   Faults
	struck   int // by these faults
	on       bool
	runs     string
	boots    int
	boot     string
	cd       string
	disk     Disk
	settings map[string]string
	firmware map[string]string
	volumes  []Volume
	health   string
	hardware Hardware
	subs     []subscription
	// subscribed counts the subscriptions that were ever made.
	subscribed int
	acts       []Act
	changes    int
}

func newMachine(n int, s Spec, now func() time.Time) *Machine {
	return &Machine{
		number: n, spec: s, now: now, user: s.Username, password: s.Password, boot: "disk", health: "OK",
		settings: map[string]string{}, firmware: map[string]string{"bios": "1.0.0", "bmc": "1.0.0", "nic:" + nicSerial(n): "1.0.0"},
		hardware: defaultHardware(n, s),
	}
}

// Name is the machine's name.
func (m *Machine) Name() string { return m.spec.Name }

// Spec is what the machine was made of, with all choices made.
func (m *Machine) Spec() Spec {
	s := m.spec
	s.MACs = slices.Clone(s.MACs)
	return s
}

// View looks at the machine as somebody who stands before it.
func (m *Machine) View() View {
	m.mu.Lock()
	defer m.mu.Unlock()
	return View{
		Name: m.spec.Name, On: m.on, Runs: m.runs, Boots: m.boots, BootDevice: m.boot, CD: m.cd, Disk: m.disk,
		Settings: maps.Clone(m.settings), Firmware: maps.Clone(m.firmware), Volumes: slices.Clone(m.volumes), Changes: m.changes,
	}
}

// SetPower changes the power by hand, as if somebody pressed the button. It is not
// counted as a change by Ironic.
func (m *Machine) SetPower(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.switchTo(on)
}

// SetCredentials changes the BMC's login.
func (m *Machine) SetCredentials(user, password string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.user, m.password = user, password
}

// SetHealth sets what the system says of its health: OK, Warning or Critical.
func (m *Machine) SetHealth(health string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.health = health
}

// SetDisk puts an image on the disk by hand, for a machine that had a life before
// it met this Ironic.
func (m *Machine) SetDisk(image string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.disk.Image = image
	if m.on {
		m.runs = m.bootable()
	}
}

// switchTo turns the machine on or off. The caller holds m.mu.
func (m *Machine) switchTo(on bool) {
	if !on {
		m.on, m.runs = false, RunsNothing
		return
	}
	m.on = true
	m.boots++
	m.runs = m.bootable()
	m.boot = "disk" // the override holds once
}

// bootable is what a boot comes to now. The caller holds m.mu.
func (m *Machine) bootable() string {
	switch {
	case m.faults.NoBoot:
		return RunsNothing
	case m.boot == "cd" && m.cd != "":
		return RunsISO
	case m.boot == "pxe":
		return RunsAgent
	case m.disk.Image != "":
		return RunsDisk
	case m.cd != "":
		return RunsISO
	default:
		return RunsNothing
	}
}

// Faults are misbehaviours of a machine and its BMC.
type Faults struct {
	Down        bool          // the BMC refuses connections
	Slow        time.Duration // added to every exchange with the BMC
	Longer      time.Duration // added to every step in the agent
	RefusePower bool          // the BMC refuses every change of power
	IgnorePower bool          // the BMC accepts them and does nothing
	NoBoot      bool          // nothing is ever booted
	// IgnoreShutdown: the system does not shut down when it is asked to.
	IgnoreShutdown bool
	// RefuseShutdown: the BMC knows no way to ask it.
	RefuseShutdown bool
	// Hold keeps something from getting on, as long as it lasts: in the state of
	// that name the agent is not heard of, nor the end of a reboot that a step needs
	// ("inspect wait", "clean wait", "service wait", "wait call-back", which holds live
	// images up too), and changes of power that somebody asked for are not made
	// ("power").
	Hold        string
	FailInspect string // the agent reports this error with its inventory
	FailClean   string // the clean step of this name fails
	FailDeploy  string // the deploy step of this name fails
	FailService string // the service step of this name fails
	FailUpdate  bool   // firmware updates end with an error
	FailMedia   bool   // the BMC refuses virtual media
	// FailAdopt is why an adoption of this machine fails: a conductor that checks
	// more than the BMC.
	FailAdopt string
	// Text is what steps that fail say; empty for a text that names the step.
	Text string
	// Times is how many failures of steps, inspections, adoptions and refused
	// changes of power there are, before the machine is well again; all if zero.
	Times int
}

// SetFaults puts misbehaviours in force in place of all earlier ones; Faults{}
// heals the machine.
func (m *Machine) SetFaults(f Faults) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults, m.struck = f, 0
}

// strikes reports whether a fault befalls what is done now, and counts it.
func (m *Machine) strikes() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.strikesNow()
}

// strikesNow is strikes for who holds m.mu.
func (m *Machine) strikesNow() bool {
	m.struck++
	return m.faults.Times == 0 || m.struck <= m.faults.Times
}

// Faults are the misbehaviours in force.
func (m *Machine) Faults() Faults {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.faults
}
