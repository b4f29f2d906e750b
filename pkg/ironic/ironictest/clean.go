package ironictest

import (
	"errors"
	"fmt"
	"slices"
)

// cleanAutomatically is cleaning on the way to available.
func (o *operation) cleanAutomatically() error {
	wanted := true
	if err := o.with(func(n *node) { wanted = n.settings["automated_clean"] != false }); err != nil {
		return err
	}
	if !wanted {
		if err := o.pause(o.i.cfg.Delays.BMC); err != nil {
			return err
		}
		return o.arrive(available)
	}
	return o.clean(cleaningFlow("automated cleaning", "Automated Cleaning"), stepsOf([]any{obj{"interface": "deploy", "step": "erase_devices_metadata", "priority": 10}}))
}

// cleanManually is cleaning by the caller's steps.
func (o *operation) cleanManually() error {
	return o.clean(cleaningFlow("manual cleaning", "Manual Cleaning"), stepsOf(o.body["clean_steps"]))
}

func cleaningFlow(name, title string) flow {
	return flow{name: name, title: title, kind: "clean", wait: cleanWait, wake: cleaning}
}

func (o *operation) clean(f flow, steps []step) error {
	if err := o.with(func(n *node) { n.state.target = o.target }); err != nil {
		return err
	}
	if o.powerOffIsDisabled() {
		return o.fail(cleanFailed, "cleaning", "Failed to prepare node %s for cleaning: Failed to set node power state to power off.", o.n.uuid)
	}
	own, unknown, err := o.sort("clean", steps)
	if err != nil {
		return err
	}
	withAgent := o.i.cfg.Release < Ironic39 || slices.Contains(own, false)
	if disabled, _ := o.body["disable_ramdisk"].(bool); disabled {
		withAgent = false
	}
	if withAgent {
		if err := o.bootAgent(cleanWait, cleaning); err != nil {
			return o.failClean("Failed to prepare node %s for cleaning: %s", o.n.uuid, err)
		}
	}
	if unknown != nil {
		return o.failClean("Node failed to start the first cleaning step: node does not support this clean step: %s", unknown.python())
	}
	if err := o.run(f, steps, own); err != nil {
		return o.failCleanStep(err)
	}
	return o.cleaned(withAgent)
}

// powerOffIsDisabled tells whether the node may not be switched off, which the boot
// of an agent from virtual media begins with.
func (o *operation) powerOffIsDisabled() bool {
	is := false
	_ = o.with(func(n *node) { // one that is over will say so at its next step
		is = n.flag("disable_power_off") && n.text("boot_interface") == "redfish-virtual-media"
	})
	return is
}

// failClean is a cleaning that did not begin: no maintenance.
func (o *operation) failClean(format string, args ...any) error {
	if err := o.tearDown(); err != nil {
		return err
	}
	return o.fail(cleanFailed, "cleaning", format, args...)
}

func (o *operation) failCleanStep(err error) error {
	text := err.Error()
	if f, isStep := errors.AsType[*stepError](err); isStep {
		text = fmt.Sprintf("Node %s failed step %s: %s", o.n.uuid, f.step.python(), f.err)
		if f.byAgent {
			text = fmt.Sprintf("Clean step %s failed on node %s. %s", f.step, o.n.uuid, f.err)
		}
	}
	return o.failInMaintenance(cleanFailed, "clean failure", "cleaning", "%s", text)
}

// cleaned switches the agent off and lets the node arrive.
func (o *operation) cleaned(withAgent bool) error {
	if withAgent {
		if err := o.leaveAgent(); err != nil {
			return o.failInMaintenance(cleanFailed, "clean failure", "cleaning", "Failed to tear down from cleaning for node %s, reason: %s", o.n.uuid, err)
		}
	}
	return o.arrive(o.target)
}

func (o *operation) abortClean() error {
	if err := o.fail(cleanFailed, "cleaning", "By request, the clean operation was aborted"); err != nil {
		return err
	}
	return o.tearDown()
}
