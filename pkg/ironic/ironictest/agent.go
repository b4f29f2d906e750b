package ironictest

import (
	"errors"
	"time"
)

// bootAgent boots the machine into the agent, lets the node wait in a state
// meanwhile, and comes back with the node locked once the agent is there.
func (o *operation) bootAgent(wait, wake string) error {
	up := false
	if o.i.cfg.FastTrack {
		if err := o.look(func(m *Machine) { up = m.agentUp() }); err != nil {
			return err
		}
	}
	if !up {
		if err := o.bootInto(); err != nil {
			return err
		}
	}
	if err := o.goTo(wait); err != nil {
		return err
	}
	if !up {
		if err := o.pause(o.i.cfg.Delays.Boot); err != nil {
			return err
		}
	}
	if err := o.hearAgent(); err != nil {
		return err
	}
	return o.goTo(wake)
}

// bootInto gets the machine to boot what the node says is its agent.
func (o *operation) bootInto() error {
	if err := o.power(false); err != nil {
		return err
	}
	device, image := "pxe", ""
	if err := o.with(func(n *node) {
		if n.text("boot_interface") == "redfish-virtual-media" {
			device, image = "cd", n.agentImage()
		}
	}); err != nil {
		return err
	}
	if err := o.reach(func(m *Machine) error {
		if device == "cd" {
			if err := m.insert(image); err != nil {
				return err
			}
		}
		m.setBoot(device)
		return nil
	}); err != nil {
		return err
	}
	return o.power(true)
}

// agentImage is the image that the agent is booted from: the node's own, or one
// that Ironic builds.
func (n *node) agentImage() string {
	info := n.object("driver_info")
	if iso, _ := info["deploy_iso"].(string); iso != "" {
		return iso
	}
	return "http://" + conductor + "/redfish/boot-" + n.uuid + ".iso"
}

// hearAgent waits until the agent calls and is listened to. One that never comes
// up, or whose cards belong to no port of the node, is never heard; one of a node
// in maintenance is heard when that is over.
func (o *operation) hearAgent() error {
	up := true // a dead BMC does not end its machine's agent
	if err := o.look(func(m *Machine) { up = m.agentUp() && o.knows(m) }); errors.Is(err, errOver) {
		return err
	}
	if !up {
		return o.hang()
	}
	for {
		heard, state := false, ""
		if err := o.with(func(n *node) { heard, state = !n.maintenance(), n.state.provision }); err != nil {
			return err
		}
		if err := o.held(state); err != nil || heard {
			return err
		}
		if err := o.sleep(o.i.cfg.Delays.Heartbeat); err != nil {
			return err
		}
	}
}

// held waits for as long as a fault holds the machine up there.
func (o *operation) held(where string) error {
	for {
		held := false
		if err := o.look(func(m *Machine) { held = m.Faults().Hold == where }); errors.Is(err, errOver) {
			return err
		}
		if !held {
			return nil
		}
		if err := o.sleep(o.i.cfg.Delays.Heartbeat); err != nil {
			return err
		}
	}
}

// knows tells whether one of the machine's cards belongs to a port of the node.
func (o *operation) knows(m *Machine) bool {
	known := false
	_ = o.with(func(n *node) { // a node that is over knows nothing
		for _, mac := range m.macs() {
			p := o.i.ports[macOf(mac)]
			known = known || p != nil && p.node == n
		}
		known = known || n.phantom == m
	})
	return known
}

// hang waits for an agent that does not come, until somebody ends the operation or
// the wait is over.
func (o *operation) hang() error {
	if d := o.i.cfg.Delays.Callback; d > 0 {
		if err := o.sleep(d); err != nil {
			return err
		}
		return o.timeOut()
	}
	<-o.ctx.Done()
	return errOver
}

// timeOut fails a node that waits for its agent, and ends the operation.
func (o *operation) timeOut() error {
	state, uuid := "", ""
	if err := o.with(func(n *node) { state, uuid = n.state.provision, n.uuid }); err != nil {
		return err
	}
	var err error
	switch state {
	case cleanWait:
		err = o.failInMaintenance(cleanFailed, "clean failure", "cleaning", "Timeout reached while cleaning the node. Please check if the ramdisk responsible for the cleaning is running on the node. Failed on step {}.")
	case inspectWait:
		err = o.fail(inspectFailed, "introspection", "timeout reached while inspecting the node")
	case serviceWait:
		err = o.failInMaintenance(serviceFailed, "service failure", "servicing", "Timeout reached while servicing the node. Please check if the ramdisk responsible for the servicing is running on the node. Failed on step {}.")
	default:
		err = o.fail(deployFailed, "provisioning", "Timeout reached while waiting for callback for node %s", uuid)
	}
	if err != nil {
		return err
	}
	if err := o.with(func(n *node) {
		n.leave(o)
		o.cancel()
	}); err != nil {
		return err
	}
	return errOver
}

// inspect makes the machine's hardware known, by its agent or by its BMC.
func (o *operation) inspect() error {
	byAgent := false
	if err := o.with(func(n *node) {
		n.state.inspectStarted, n.state.inspectFinished = o.i.cfg.Now(), time.Time{}
		byAgent = n.text("inspect_interface") == "agent"
	}); err != nil {
		return err
	}
	if byAgent {
		return o.inspectByAgent()
	}
	return o.inspectByBMC()
}

func (o *operation) inspectByAgent() error {
	if err := o.bootAgent(inspectWait, inspecting); err != nil {
		return o.failInspect("Failed to inspect hardware. Reason: %s", err)
	}
	if err := o.beat(o.i.cfg.Delays.Inspect); err != nil {
		return err
	}
	var found obj
	reported := ""
	var macs []string
	if err := o.look(func(m *Machine) {
		found, macs = m.agentInventory(), m.macs()
		if text := m.Faults().FailInspect; text != "" && m.strikes() {
			reported = text
		}
	}); err != nil {
		return o.failInspect("Failed to finish inspection: %s", err)
	}
	if reported != "" {
		return o.failInspect("Failed to finish inspection: Error in preprocess hook ramdisk-error: The ramdisk reported the following error: %s", reported)
	}
	if err := o.leaveAgent(); err != nil {
		return o.failInspect("Failed to finish inspection: %s", err)
	}
	return o.found(found, macs, false)
}

// leaveAgent switches an agent's machine off when its work is done, unless agents
// stay up.
func (o *operation) leaveAgent() error {
	if o.i.cfg.FastTrack {
		return nil
	}
	if err := o.power(false); err != nil {
		return err
	}
	return o.look((*Machine).eject)
}

func (o *operation) failInspect(format string, args ...any) error {
	return o.fail(inspectFailed, "introspection", format, args...)
}

func (o *operation) inspectByBMC() error {
	if err := o.pause(o.i.cfg.Delays.Inspect); err != nil {
		return err
	}
	var found obj
	var macs []string
	if err := o.look(func(m *Machine) { found, macs = m.bmcInventory(o.i.cfg.Release), m.macs() }); err != nil {
		return o.failInspect("Failed to inspect hardware. Reason: unable to start inspection: %s", err)
	}
	if o.i.cfg.Release < Ironic29 {
		found = nil // it finds ports and properties only
	}
	return o.found(found, macs, true)
}

// found notes what an inspection found, and makes ports of the cards.
func (o *operation) found(inventory obj, macs []string, allBoot bool) error {
	if err := o.with(func(n *node) {
		if n.phantom != nil {
			return // there is no hardware to find
		}
		if inventory != nil {
			n.records.inventory = inventory
		}
		for k, mac := range macs {
			p := o.i.ports[macOf(mac)]
			switch {
			case p == nil:
				o.i.addPort(n, macOf(mac), allBoot || k == 0)
			case p.node == n && !allBoot:
				p.pxe = k == 0
			}
		}
		n.putIn("properties", "cpu_arch", "x86_64")
	}); err != nil {
		return err
	}
	if err := o.with(func(n *node) { n.state.inspectFinished = o.i.cfg.Now() }); err != nil {
		return err
	}
	return o.arrive(manageable)
}

func (o *operation) abortInspect() error {
	if err := o.failInspect("Inspection was aborted by request."); err != nil {
		return err
	}
	return o.tearDown()
}

// tearDown switches an agent's machine off after something went wrong. Whether the
// BMC does it changes nothing.
func (o *operation) tearDown() error {
	if err := o.power(false); errors.Is(err, errOver) {
		return err
	}
	if err := o.look((*Machine).eject); errors.Is(err, errOver) {
		return err
	}
	return nil
}
