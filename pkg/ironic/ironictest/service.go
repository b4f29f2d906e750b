package ironictest

import "slices"

// service carries out steps on a machine that is in use.
func (o *operation) service() error {
	if err := o.with(func(n *node) { n.state.target = active }); err != nil {
		return err
	}
	steps := stepsOf(o.body["service_steps"])
	own, unknown, err := o.sort("service", steps)
	if err != nil {
		return err
	}
	withAgent := o.i.cfg.Release < Ironic39 || slices.Contains(own, false)
	if withAgent {
		bmcErr, err := o.bootForService()
		if err != nil {
			return err
		}
		if bmcErr != nil {
			return o.failInMaintenance(serviceFailed, "service failure", "servicing", "Failed to prepare node %s for service: %s", o.n.uuid, bmcErr)
		}
	}
	if unknown != nil {
		return o.failInMaintenance(serviceFailed, "service failure", "servicing", "Node failed to start the first service step: node does not support this service step: %s", unknown.python())
	}
	failure, err := o.run("service", serviceWait, servicing, steps, own)
	switch {
	case err != nil:
		return err
	case failure != nil && failure.byAgent:
		return o.fail(serviceFailed, "servicing", "Service step %s failed on node %s. %s", failure.step, o.n.uuid, failure.err)
	case failure != nil:
		return o.failInMaintenance(serviceFailed, "service failure", "servicing", "Node %s failed step %s: %s", o.n.uuid, failure.step.python(), failure.err)
	}
	return o.serviced(withAgent)
}

// bootForService boots the agent. A release that does not let agents in while a
// node is in service waits for ever.
func (o *operation) bootForService() (bmcErr, err error) {
	if o.i.cfg.Release >= Ironic39 || o.i.cfg.FastTrack {
		return o.bootAgent(serviceWait, servicing)
	}
	if bmcErr, err = o.bootInto(); bmcErr != nil || err != nil {
		return bmcErr, err
	}
	if err := o.goTo(serviceWait); err != nil {
		return nil, err
	}
	return nil, o.hang()
}

// serviced lets the machine's own system run again.
func (o *operation) serviced(withAgent bool) error {
	if withAgent {
		bmcErr, err := o.backToDisk()
		if err != nil {
			return err
		}
		if bmcErr != nil {
			return o.failInMaintenance(serviceFailed, "service failure", "servicing", "Failed to tear down from service for node %s, reason: %s", o.n.uuid, bmcErr)
		}
	}
	return o.arrive(active)
}

// backToDisk boots the machine from its disk.
func (o *operation) backToDisk() (bmcErr, err error) {
	if bmcErr, err = o.power(false); bmcErr != nil || err != nil {
		return bmcErr, err
	}
	bmcErr, err = o.reach(func(m *Machine) error {
		if err := m.eject(); err != nil {
			return err
		}
		return m.setBoot("disk")
	})
	if bmcErr != nil || err != nil {
		return bmcErr, err
	}
	return o.power(true)
}

func (o *operation) abortService() error {
	return o.fail(serviceFailed, "servicing", "By request, the service operation was aborted")
}

// leaveService goes back to active out of a service that failed.
func (o *operation) leaveService() error {
	if _, err := o.backToDisk(); err != nil {
		return err
	}
	return o.arrive(active)
}
