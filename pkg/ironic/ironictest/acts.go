package ironictest

import (
	"slices"
	"time"
)

// What can be done to a machine through its BMC or by an agent on it.
const (
	DidPowerOn     = "power on"
	DidPowerOff    = "power off"
	DidReboot      = "reboot"
	DidSetBoot     = "set boot device"
	DidInsert      = "insert media"
	DidEject       = "eject media"
	DidErase       = "erase"
	DidWrite       = "write image"
	DidStep        = "run step"
	DidSetSettings = "set BIOS settings"
	DidUpdate      = "update firmware"
	DidRAID        = "change RAID"
	DidSubscribe   = "change subscriptions"
)

// Act is one thing that was done to a machine.
type Act struct {
	Time time.Time
	What string
	Arg  string
}

// maxActs bounds the log of one machine.
const maxActs = 256

// did notes an act. The caller holds m.mu.
func (m *Machine) did(what, arg string) {
	m.changes++
	if len(m.acts) >= maxActs {
		m.acts = append(m.acts[:0], m.acts[1:]...)
	}
	m.acts = append(m.acts, Act{Time: m.now(), What: what, Arg: arg})
}

// Acts are the things that were done to the machine, the oldest first; only the
// last ones if there were very many.
func (m *Machine) Acts() []Act {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.acts)
}

// Changes counts the things that were ever done to the machine: power, boot
// device, media, disk, settings. Reading changes nothing.
func (m *Machine) Changes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes
}

// The acts themselves. Each holds the machine for its moment only.

func (m *Machine) setPower(on bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	what := DidPowerOff
	if on {
		what = DidPowerOn
	}
	m.did(what, "")
	switch {
	case m.faults.RefusePower && m.strikesNow():
		return errRefusedPower
	case m.faults.IgnorePower || m.on == on:
		return nil
	}
	m.switchTo(on)
	return nil
}

const errNoEffect words = "Failed to set node power state: the power did not change"

// bring sets the power, if it is not there already, and sees whether that worked.
func (m *Machine) bring(on bool) error {
	if m.isOn() == on {
		return nil
	}
	if err := m.setPower(on); err != nil {
		return err
	}
	if m.isOn() != on {
		return errNoEffect
	}
	return nil
}

// listens is why the system does not shut down when it is asked to, nil if it does.
func (m *Machine) listens() error {
	switch f := m.Faults(); {
	case f.RefuseShutdown:
		return errRefusedPower
	case f.IgnoreShutdown:
		return errNoEffect
	default:
		return nil
	}
}

func (m *Machine) reboot() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.did(DidReboot, "")
	switch {
	case m.faults.RefusePower && m.strikesNow():
		return errRefusedPower
	case m.faults.IgnorePower:
		return nil
	}
	m.switchTo(false)
	m.switchTo(true)
	return nil
}

func (m *Machine) setBoot(device string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.did(DidSetBoot, device)
	m.boot = device
}

func (m *Machine) insert(image string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.did(DidInsert, image)
	if m.faults.FailMedia {
		return errRefusedMedia
	}
	m.cd = image
	return nil
}

// eject takes out what is in; nothing is done to an empty drive.
func (m *Machine) eject() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cd != "" {
		m.did(DidEject, m.cd)
		m.cd = ""
	}
}

// erase wipes the disk.
func (m *Machine) erase(step string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.did(DidErase, step)
	m.disk.Image, m.disk.ConfigDrive = "", nil
	m.disk.Erases++
}

func (m *Machine) write(image string, drive any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.did(DidWrite, image)
	m.disk.Image, m.disk.ConfigDrive = image, drive
	m.disk.Writes++
}

func (m *Machine) ranStep(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.did(DidStep, name)
}

// isOn reads the power.
func (m *Machine) isOn() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.on
}

// agentUp tells whether an agent runs after the boot: the image that was booted is
// one, unless nothing boots.
func (m *Machine) agentUp() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.on && m.runs == RunsISO {
		m.runs = RunsAgent
	}
	return m.on && m.runs == RunsAgent
}
