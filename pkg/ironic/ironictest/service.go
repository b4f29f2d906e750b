package ironictest

import (
	"errors"
	"slices"
)

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
		if err := o.bootForService(); err != nil {
			return o.failService("Failed to prepare node %s for service: %s", o.n.uuid, err)
		}
	}
	if unknown != nil {
		return o.failService("Node failed to start the first service step: node does not support this service step: %s", unknown.python())
	}
	if err := o.run(flow{name: "servicing", title: "Servicing", kind: "service", wait: serviceWait, wake: servicing}, steps, own); err != nil {
		return o.failServiceStep(err)
	}
	return o.serviced(withAgent)
}

func (o *operation) failService(format string, args ...any) error {
	return o.failInMaintenance(serviceFailed, "service failure", "servicing", format, args...)
}

// failServiceStep needs a person where the conductor's own step failed, and none
// where the agent's did.
func (o *operation) failServiceStep(err error) error {
	f, isStep := errors.AsType[*stepError](err)
	switch {
	case isStep && f.byAgent:
		return o.fail(serviceFailed, "servicing", "Service step %s failed on node %s. %s", f.step, o.n.uuid, err)
	case isStep:
		return o.failService("Node %s failed step %s: %s", o.n.uuid, f.step.python(), err)
	}
	return o.failService("%s", err)
}

// bootForService boots the agent. A release that does not let agents in while a
// node is in service waits for ever.
func (o *operation) bootForService() error {
	if o.i.cfg.Release >= Ironic39 || o.i.cfg.FastTrack {
		return o.bootAgent(serviceWait, servicing)
	}
	if err := o.bootInto(); err != nil {
		return err
	}
	if err := o.goTo(serviceWait); err != nil {
		return err
	}
	return o.hang()
}

// serviced lets the machine's own system run again.
func (o *operation) serviced(withAgent bool) error {
	if withAgent {
		if err := o.backToDisk(); err != nil {
			return o.failService("Failed to tear down from service for node %s, reason: %s", o.n.uuid, err)
		}
	}
	return o.arrive(active)
}

// backToDisk boots the machine from its disk.
func (o *operation) backToDisk() error {
	if err := o.toDisk(); err != nil {
		return err
	}
	return o.power(true)
}

func (o *operation) abortService() error {
	return o.fail(serviceFailed, "servicing", "By request, the service operation was aborted")
}

// leaveService goes back to active out of a service that failed.
func (o *operation) leaveService() error {
	if err := o.backToDisk(); err != nil {
		return o.fail(serviceFailed, "servicing", "Failed to tear down service after aborting the operation: %s", err)
	}
	return o.arrive(active)
}
