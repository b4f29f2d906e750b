package bmcsim

import (
	"context"
	"time"
)

// What a machine runs, as far as its BMC or a passer-by could tell.
const (
	RunsNothing = "nothing" // powered on, and found nothing to boot
	RunsOff     = "off"
	RunsTest    = "self-test"
	RunsBooting = "booting"
	RunsDisk    = "disk"     // the operating system on its disk
	RunsISO     = "live-iso" // the image in its virtual drive
	RunsNetwork = "network"  // whatever the network offered
	RunsAgent   = "agent"    // a provisioning agent, by word of a BootFunc
)

// Running is what a machine runs, and the image that it came from.
type Running struct {
	Kind  string `json:"kind"`
	Image string `json:"image,omitempty"`
}

// step is a phase that passes with time.
type step string

const (
	stepNone         step = ""
	stepPoweringOn   step = "powering on"
	stepPoweringOff  step = "powering off"
	stepShuttingDown step = "shutting down"
	stepRestarting   step = "restarting"
	stepSelfTest     step = "self-test"
	stepBooting      step = "booting"
)

// machine is what the BMC controls: its power, what it boots and what it runs.
type machine struct {
	on      bool
	step    step
	action  string // the reset that is being carried out
	chosen  Running
	running Running
	boots   int
	disk    string // image on the disk
	boot    override

	timer  *time.Timer
	turn   int // counts steps, so that a timer that is too late is known
	cancel context.CancelFunc
}

// override is the boot source override of the system.
type override struct {
	Target  string `json:"target"`
	Enabled string `json:"enabled"`
	Mode    string `json:"mode"`
}

func newMachine() machine {
	return machine{running: Running{Kind: RunsOff}, boot: override{Target: "None", Enabled: "Disabled", Mode: "UEFI"}}
}

// halt stops the clockwork where it is.
func (m *machine) halt() {
	m.turn++
	if m.timer != nil {
		m.timer.Stop()
	}
	m.dropOS()
}

// dropOS ends whatever a BootFunc plays.
func (m *machine) dropOS() {
	if m.cancel != nil {
		m.cancel()
		m.cancel = nil
	}
}

// after goes to a step and calls next at its end. Both run with h.mu held; without
// a delay next runs at once.
func (h *Host) after(s step, d time.Duration, next func()) {
	m := &h.machine
	m.step = s
	m.turn++
	turn := m.turn
	h.touch()
	if m.timer != nil {
		m.timer.Stop()
		m.timer = nil
	}
	if d <= 0 {
		next()
		return
	}
	m.timer = time.AfterFunc(d, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if m.turn == turn {
			next()
		}
	})
}

// settle ends the last step.
func (h *Host) settle() {
	h.machine.step, h.machine.action = stepNone, ""
	h.touch()
}

func (h *Host) powerOn() {
	h.after(stepPoweringOn, h.sim.cfg.Delays.PowerOn, func() {
		h.machine.on = true
		h.powerEvent()
		h.selfTest()
	})
}

// powerOff cuts the power, then does what comes next, if anything does.
func (h *Host) powerOff(then func()) {
	h.machine.dropOS()
	h.after(stepPoweringOff, h.sim.cfg.Delays.PowerOff, func() {
		h.machine.on = false
		h.machine.running = Running{Kind: RunsOff}
		h.powerEvent()
		h.settle()
		then()
	})
}

// shutDown lets the operating system go down, then does what comes next.
func (h *Host) shutDown(then func()) {
	h.after(stepShuttingDown, h.sim.cfg.Delays.Shutdown, then)
}

func (h *Host) restart() {
	h.machine.dropOS()
	h.after(stepRestarting, h.sim.cfg.Delays.PowerOff, h.selfTest)
}

// selfTest begins a boot.
func (h *Host) selfTest() {
	h.machine.boots++
	h.applyPending()
	h.continueSelfTest()
}

func (h *Host) continueSelfTest() {
	h.machine.running = Running{Kind: RunsTest}
	h.after(stepSelfTest, h.sim.cfg.Delays.SelfTest, func() {
		h.machine.chosen = h.choose()
		h.bootChosen()
	})
}

func (h *Host) bootChosen() {
	h.machine.running = Running{Kind: RunsBooting, Image: h.machine.chosen.Image}
	h.after(stepBooting, h.sim.cfg.Delays.Boot, func() {
		h.machine.running, h.machine.chosen = h.machine.chosen, Running{}
		h.settle()
		h.play(false)
	})
}

// choose picks what to boot, and uses up an override that holds once.
func (h *Host) choose() Running {
	m := &h.machine
	target := "None"
	if m.boot.Enabled != "Disabled" {
		target = m.boot.Target
	}
	if m.boot.Enabled == "Once" {
		m.boot.Enabled, m.boot.Target = "Disabled", "None"
	}
	if h.faults.NoBoot {
		return Running{Kind: RunsNothing}
	}
	if target == "Pxe" || target == "UefiHttp" {
		return Running{Kind: RunsNetwork}
	}
	if target == "BiosSetup" {
		return Running{Kind: RunsNothing}
	}
	return h.firstBootable(target)
}

// firstBootable goes through the sources, the wanted one first, then disk and
// virtual media, as firmware does.
func (h *Host) firstBootable(target string) Running {
	cd, usb := h.inserted(true), h.inserted(false)
	sources := []struct {
		target string
		Running
	}{
		{"Hdd", Running{RunsDisk, h.machine.disk}},
		{"Cd", Running{RunsISO, cd}},
		{"Usb", Running{RunsISO, usb}},
	}
	for _, s := range sources {
		if s.target == target && s.Image != "" {
			return s.Running
		}
	}
	for _, s := range sources {
		if s.Image != "" {
			return s.Running
		}
	}
	return Running{Kind: RunsNothing}
}

func (m *machine) hasOS() bool {
	switch m.running.Kind {
	case RunsDisk, RunsISO, RunsNetwork, RunsAgent:
		return m.step == stepNone
	default:
		return false
	}
}

// powerState is what Redfish shows of the power.
func (h *Host) powerState() string {
	m := &h.machine
	switch {
	case h.shape.transitional && m.step == stepPoweringOn:
		return "PoweringOn"
	case h.shape.transitional && m.step == stepPoweringOff && m.on:
		return "PoweringOff"
	case m.on:
		return "On"
	default:
		return "Off"
	}
}

// bootProgress is what Redfish shows of the boot.
func (h *Host) bootProgress() string {
	switch h.machine.running.Kind {
	case RunsOff:
		return "None"
	case RunsTest, RunsNothing:
		return "SystemHardwareInitializationComplete"
	case RunsBooting:
		return "OSBootStarted"
	default:
		return "OSRunning"
	}
}

// reset carries out a ResetType. It tells whether the machine was there already,
// or cannot be brought there from where it is. The caller holds h.mu.
func (h *Host) reset(kind string) (already bool) {
	m := &h.machine
	going := m.on && m.step != stepPoweringOff || m.step == stepPoweringOn
	switch kind {
	case "On", "ForceOn":
		already = going
	case "Nmi", "PushPowerButton":
		return false
	default:
		already = !going
	}
	if already || h.faults.IgnorePower || h.deafTo(kind) {
		return already
	}
	m.action = kind
	h.carryOut(kind)
	return false
}

// deafTo tells whether a reset asks something of an operating system that is not
// there or does not listen.
func (h *Host) deafTo(kind string) bool {
	graceful := kind == "GracefulShutdown" || kind == "GracefulRestart"
	return graceful && (!h.machine.hasOS() || h.faults.IgnoreShutdown)
}

func (h *Host) carryOut(kind string) {
	nothing := func() {}
	switch kind {
	case "On", "ForceOn":
		h.powerOn()
	case "ForceOff":
		h.powerOff(nothing)
	case "GracefulShutdown":
		h.shutDown(func() { h.powerOff(nothing) })
	case "ForceRestart":
		h.restart()
	case "GracefulRestart":
		h.shutDown(h.restart)
	case "PowerCycle":
		h.powerOff(h.powerOn)
	}
}

// resume goes on with a step that a snapshot caught in the middle, from its start.
func (h *Host) resume() {
	m := &h.machine
	switch m.step {
	case stepNone:
		h.play(true)
	case stepSelfTest:
		h.continueSelfTest()
	case stepBooting:
		h.bootChosen()
	case stepPoweringOn:
		h.powerOn()
	default:
		h.carryOut(m.action)
	}
}
