package ironictest

import (
	"errors"
	"slices"
)

// missingImage is the key of instance_info that a deployment lacks, "" if nothing
// is missing.
func (n *node) missingImage() string {
	info := n.object("instance_info")
	key := ""
	switch n.text("deploy_interface") {
	case "ramdisk":
		key = "boot_iso"
	case "direct":
		key = "image_source"
	}
	if text, _ := info[key].(string); key != "" && text == "" {
		if key == "boot_iso" && info["image_source"] != nil {
			return ""
		}
		return key
	}
	return ""
}

// deploy brings an image, a live image or a custom deployment onto the machine.
func (o *operation) deploy() error {
	how, iso, image := "", "", ""
	if err := o.with(func(n *node) {
		n.state.target = active
		how = n.text("deploy_interface")
		iso, _ = n.object("instance_info")["boot_iso"].(string)
		image, _ = n.object("instance_info")["image_source"].(string)
		if o.body["configdrive"] != nil {
			n.putIn("instance_info", "configdrive", o.body["configdrive"])
		}
	}); err != nil {
		return err
	}
	if err := o.power(false); err != nil {
		return o.failDeploy("Failed to prepare to deploy: %s", err)
	}
	switch how {
	case "fake":
		return o.deployed()
	case "ramdisk":
		return o.deployLive(iso)
	}
	if how == "direct" {
		if err := o.i.fetch(image, ""); err != nil {
			return o.failDeploy("Failed to prepare to deploy: Validation of image href %s failed, reason: %s", image, err)
		}
	}
	return o.deployByAgent(how)
}

func (o *operation) deployLive(iso string) error {
	if err := o.held(deployWait); err != nil {
		return err
	}
	if err := o.reach(func(m *Machine) error {
		if err := o.i.fetch(iso, ""); err != nil {
			return err
		}
		if err := m.insert(iso); err != nil {
			return err
		}
		m.setBoot("cd")
		return nil
	}); err != nil {
		return o.failDeploy("Failed to prepare to deploy: %s", err)
	}
	return o.deployed()
}

func (o *operation) deployByAgent(how string) error {
	steps := stepsOf(o.body["deploy_steps"])
	if how == "direct" {
		steps = slices.Insert(steps, 0, stepsOf([]any{obj{"interface": "deploy", "step": "write_image", "priority": 80}})...)
	}
	if err := o.bootAgent(deployWait, deploying); err != nil {
		return o.failDeploy("Failed to deploy: %s", err)
	}
	own, unknown, err := o.sort("deploy", steps)
	if err != nil {
		return err
	}
	if unknown != nil {
		return o.failDeploy("Failed to validate in-band deploy steps: node does not support this deploy step: %s", unknown.python())
	}
	if err := o.run(flow{name: "deployment", title: "Deployment", kind: "deploy", wait: deployWait, wake: deploying}, steps, own); err != nil {
		name := "deploy.deploy"
		if f, isStep := errors.AsType[*stepError](err); isStep {
			name = f.step.String()
		}
		return o.failDeploy("Deploy step %s failed on node %s. %s", name, o.n.uuid, err)
	}
	return o.bootDisk()
}

// bootDisk ends a deployment by the agent: the machine boots from its disk.
func (o *operation) bootDisk() error {
	if err := o.toDisk(); err != nil {
		return o.failDeploy("Failed to change power state of node %s: %s", o.n.uuid, err)
	}
	return o.deployed()
}

// toDisk switches the machine off and sees to it that it boots from its disk next.
func (o *operation) toDisk() error {
	if err := o.power(false); err != nil {
		return err
	}
	return o.look(func(m *Machine) {
		m.eject()
		m.setBoot("disk")
	})
}

func (o *operation) deployed() error {
	if err := o.power(true); err != nil {
		return o.failDeploy("Failed to change power state of node %s: %s", o.n.uuid, err)
	}
	return o.arrive(active)
}

// failDeploy switches the machine off: half of an image is no system.
func (o *operation) failDeploy(format string, args ...any) error {
	if err := o.tearDown(); err != nil {
		return err
	}
	return o.fail(deployFailed, "provisioning", format, args...)
}

func (o *operation) abortDeploy() error {
	if err := o.fail(deployFailed, "provisioning", "By request, the deploy operation was aborted during or after the completion of step \"deploy.deploy\""); err != nil {
		return err
	}
	return o.tearDown()
}

// undeploy takes the instance off and cleans.
func (o *operation) undeploy() error {
	if err := o.power(false); err != nil {
		return o.fail(failed, "unprovision", "Failed to tear down: %s", err)
	}
	if err := o.look((*Machine).eject); err != nil {
		return o.fail(failed, "unprovision", "Failed to tear down: %s", err)
	}
	if err := o.with(func(n *node) {
		o.i.unname(n)
		n.put("instance_info", obj{})
		n.put("instance_uuid", nil)
		o.i.name(n)
		n.state.target = available
	}); err != nil {
		return err
	}
	if err := o.goTo(cleaning); err != nil {
		return err
	}
	return o.cleanAutomatically()
}

// adopt takes a machine over that runs already. It looks at its power, and at
// nothing else; what it is shows at the next power sync. Ironic 21 takes over a
// machine with a dead BMC too.
func (o *operation) adopt() error {
	refused := ""
	err := o.look(func(m *Machine) {
		if text := m.Faults().FailAdopt; text != "" && m.strikes() {
			refused = text
		}
	})
	if o.i.cfg.Release < Ironic29 && !errors.Is(err, errOver) {
		err = nil
	}
	if err == nil && refused != "" {
		err = words(refused)
	}
	if err == nil {
		err = o.bootsSomething()
	}
	if err != nil {
		if err := o.with(func(n *node) { n.state.power = "" }); err != nil {
			return err
		}
		return o.fail(adoptFailed, "adoption", "Error while attempting to adopt node %s: %s", o.n.uuid, err)
	}
	if err := o.with(func(n *node) {
		if n.object("instance_info")["image_source"] != nil {
			n.putIn("instance_info", "image_type", "whole-disk")
		}
	}); err != nil {
		return err
	}
	return o.arrive(active)
}

// bootsSomething: a node that boots live images must name one, or a kernel and a
// ramdisk. Whether they are there is not looked at.
func (o *operation) bootsSomething() error {
	var err error
	if gone := o.with(func(n *node) {
		info := n.object("instance_info")
		if n.text("deploy_interface") == "ramdisk" && info["boot_iso"] == nil && (info["kernel"] == nil || info["ramdisk"] == nil) {
			err = says("Cannot validate image information for node %s because one or more parameters are missing from its instance_info and insufficient information is present to boot from a remote volume. Missing are: ['kernel', 'ramdisk']", n.uuid)
		}
	}); gone != nil {
		return gone
	}
	return err
}

// verify tries the BMC with the node's credentials, and reads what is worth
// keeping.
func (o *operation) verify() error {
	b, driver := bmc{}, ""
	if err := o.with(func(n *node) { b, driver = bmcOf(n), n.text("driver") }); err != nil {
		return err
	}
	if b.missing != "" && (driver == "redfish" || driver == "ipmi") {
		if err := o.pause(o.i.cfg.Delays.BMC); err != nil {
			return err
		}
		return o.notVerified("Failed to validate power driver interface for node %s. Error: Missing the following %s properties in node %s driver_info: ['%s']", o.n.uuid, driverName(driver), o.n.uuid, b.missing)
	}
	if err := o.look(func(*Machine) {}); err != nil {
		return o.notVerified("Failed to get power state for node %s. Error: %s", o.n.uuid, err)
	}
	if err := o.readRecords(); err != nil {
		return o.notVerified("Failed to get power state for node %s. Error: %s", o.n.uuid, err)
	}
	return o.arrive(manageable)
}

func driverName(driver string) string {
	if driver == "ipmi" {
		return "IPMI"
	}
	return "Redfish"
}

// notVerified leaves the node where it came from, on its way to nowhere.
func (o *operation) notVerified(format string, args ...any) error {
	if err := o.fail(enroll, "verify", format, args...); err != nil {
		return err
	}
	return o.with(func(n *node) { n.state.target = "" })
}
