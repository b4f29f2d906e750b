package ironictest

import (
	"net/http"
	"slices"
	"time"
)

// Power states, and what may be asked for beside them.
const (
	powerOn      = "power on"
	powerOff     = "power off"
	rebooting    = "rebooting"
	softOff      = "soft power off"
	softReboot   = "soft rebooting"
	powerFailure = "power failure"
	// syncRetries is how many power syncs in a row may go wrong.
	syncRetries = 3
)

func powerText(on bool) string {
	if on {
		return powerOn
	}
	return powerOff
}

// putPower asks for a change of power.
func putPower(c *call) (answer, error) {
	n, err := c.node()
	if err != nil {
		return nothing(err)
	}
	body, err := c.read("target", "timeout")
	if err != nil {
		return nothing(err)
	}
	target, _ := body["target"].(string)
	state := n.state.power
	if state == "" {
		state = "None"
	}
	seconds, limited := body["timeout"].(float64)
	switch {
	case limited && seconds < 1:
		return nothing(bad("timeout has to be positive integer"))
	case !slices.Contains([]string{powerOn, powerOff, rebooting, softOff, softReboot}, target):
		return nothing(wrongState(target, c.r.PathValue("node"), state))
	case n.state.provision == cleaning || n.state.provision == cleanWait:
		return nothing(wrongState(target, c.r.PathValue("node"), n.state.provision))
	case n.flag("disable_power_off") && (target == powerOff || target == softOff):
		return nothing(conflict("Failed to set node power state to %s.", target))
	case n.state.reservation != "":
		return nothing(locked(n))
	case n.text("parent_node") == n.uuid:
		return nothing(conflict("Node %s child_node %s is presently locked and cannot be changed.", n.uuid, n.uuid))
	}
	c.i.changePower(n, target)
	return answer{status: http.StatusAccepted}.with("Location", c.base+"/v1/nodes/"+n.uuid+"/states"), nil
}

// changePower starts a change of power. It leaves the provision state, and an
// operation that waits for its agent, alone. The caller holds i.mu.
func (i *Ironic) changePower(n *node, target string) {
	n.state.targetPower = map[string]string{powerOff: powerOff, softOff: powerOff}[target]
	if n.state.targetPower == "" {
		n.state.targetPower = powerOn
	}
	n.state.lastError = ""
	i.beside(n, func(o *operation) error { return o.changePower(target) })
}

// changePower carries a change of power out.
func (o *operation) changePower(target string) error {
	if err := o.pause(o.i.cfg.Delays.Power); err != nil {
		return err
	}
	if err := o.held("power"); err != nil {
		return err
	}
	want := target != powerOff && target != softOff
	wrong := o.reach(func(m *Machine) error {
		if target == softOff || target == softReboot {
			if err := m.listens(); err != nil {
				return err
			}
		}
		if target == rebooting || target == softReboot {
			return m.reboot()
		}
		return m.bring(want)
	})
	return o.with(func(n *node) {
		n.state.targetPower = ""
		if wrong == nil {
			n.state.power = powerText(want)
			return
		}
		text := "Failed to change power state to '" + powerText(want) + "' by '" + target + "': " + wrong.Error()
		o.i.record(n, "power", "ERROR", text)
		n.state.lastError = text
	})
}

// syncPower compares what is known of power with what BMCs say, again and again.
func (i *Ironic) syncPower() {
	tick := time.NewTicker(i.cfg.Delays.PowerSync)
	defer tick.Stop()
	for {
		select {
		case <-i.ctx.Done():
			return
		case <-tick.C:
			i.SyncPower()
		}
	}
}

// SyncPower is one power sync of all nodes, and the recovery of those that an
// earlier one gave up. Tests call it to have one now.
func (i *Ironic) SyncPower() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, n := range i.order {
		i.syncOne(n)
	}
}

func (i *Ironic) syncOne(n *node) {
	skip := []string{deployWait, cleanWait, enroll, adoptFailed}
	if n.state.reservation != "" || n.state.targetPower != "" || slices.Contains(skip, n.state.provision) {
		return
	}
	if n.maintenance() && n.state.fault != powerFailure {
		return
	}
	m := i.phantom(n)
	if m == nil {
		var err error
		if m, err = i.cfg.Rack.reach(bmcOf(n)); err != nil {
			i.syncFailed(n, err)
			return
		}
	}
	n.failed = 0
	if n.state.fault == powerFailure {
		n.setMaintenance(false, "", "")
	}
	if on := n.state.power == powerOn; i.cfg.ForcesPower && n.state.power != "" && m.isOn() != on {
		if m.setPower(on) != nil {
			return // the next sync tries again
		}
	}
	n.state.power = powerText(m.isOn())
	if i.cfg.Release >= Ironic39 {
		n.state.lastError = ""
		i.readHealth(n, m)
	}
}

func (i *Ironic) syncFailed(n *node, err error) {
	if n.maintenance() {
		return // given up already
	}
	n.failed++
	if n.failed <= syncRetries {
		return
	}
	text := "During sync_power_state, max retries exceeded for node " + n.uuid + ", node state None does not match expected state '" + n.state.power + "'. Updating DB state to 'None' Switching node to maintenance mode. Error: " + err.Error()
	i.record(n, "monitoring", "ERROR", text)
	n.state.lastError, n.state.power = text, ""
	n.setMaintenance(true, text, powerFailure)
}

func (i *Ironic) readHealth(n *node, m *Machine) {
	m.mu.Lock()
	health := m.health
	m.mu.Unlock()
	if n.state.health == health || n.phantom != nil {
		return
	}
	before := n.state.health
	if before == "" {
		before = "None"
	}
	i.record(n, "monitoring", "INFO", "Node health status changed: health='"+health+"' (previously '"+before+"')")
	n.state.health = health
}
