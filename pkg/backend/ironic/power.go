package ironic

import (
	"fmt"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// powerOn is how switching on stands. Done is only what was seen to be so.
func (v view) powerOn() lifecycle.Outlook {
	switch n := v.node; {
	case n.PowerState == ironic.PowerOn && n.TargetPowerState == "":
		return finished()
	case v.occupied():
		return v.busy(lifecycle.Long)
	case v.changing():
		return v.switching()
	case n.Fault == ironic.FaultPower:
		return v.powerless()
	case v.did(writeOn):
		return v.broken(event.ClassPower, "PowerOn operation failed: ", "the machine is still off, and Ironic does not say why")
	default:
		return needs(writeOn)
	}
}

// changing reports whether Ironic is at a change of power. Older ones tell no target
// for the first moments, but hold the node.
func (v view) changing() bool {
	op := v.op()
	begun := op != nil && op.Answered && op.Refusals == 0
	return v.node.TargetPowerState != "" || (begun && v.node.Reservation != "")
}

// switching waits for a change of power that Ironic is at.
func (v view) switching() lifecycle.Outlook {
	if op := v.op(); op != nil && v.now.Sub(op.StepAt) > stuckLate {
		return v.refuse(event.ClassTimeout, fmt.Sprintf("Ironic has been changing the power of node %s for more than %s", v.node.UUID, stuckLate),
			"Restart the conductor of Ironic that holds the node; it is tried again by itself")
	}
	what := "Ironic to change the power"
	if target := v.node.TargetPowerState; target != "" {
		what = fmt.Sprintf("the machine to go to %q", target)
	}
	return underway(what, lifecycle.Quick)
}

// occupied reports whether Ironic or an agent is at work on the machine, so that
// its power is not to be touched.
func (v view) occupied() bool {
	return ironic.Busy(v.node.ProvisionState) || ironic.Waiting(v.node.ProvisionState)
}

// powerOff is how switching off stands.
func (v view) powerOff() lifecycle.Outlook {
	if o := v.freed(); o != nil {
		return o
	}
	switch n := v.node; {
	case n.PowerState == ironic.PowerOff && n.TargetPowerState == "":
		return finished()
	case n.DisablePowerOff:
		return v.refuse(event.ClassUnsupported, "the machine must not be powered off (spec.disablePowerOff)", "Set spec.disablePowerOff to false, or reboot the host instead")
	case foreign(n, v.host):
		return v.undeployNow()
	case v.changing() && !v.harder():
		return v.switching()
	case n.Fault == ironic.FaultPower:
		return v.powerless()
	default:
		return v.switchOff()
	}
}

// harder reports whether a soft power-off is under way that is to be a hard one by
// now. Ironic may still hold the node for the soft one, and says so.
func (v view) harder() bool {
	op := v.op()
	soft := op != nil && op.Answered && (op.Step == writeSoft || op.Step == writeHard && op.Refusals > 0)
	return soft && v.node.TargetPowerState == ironic.PowerOff && v.offMode() == v1alpha1.RebootModeHard
}

// offMode is how the machine is to be switched off.
func (v view) offMode() v1alpha1.RebootMode { return lifecycle.OffMode(v.host) }

// switchOff: a soft power-off that had no effect is followed by one hard one.
func (v view) switchOff() lifecycle.Outlook {
	switch {
	case v.did(writeHard):
		return v.broken(event.ClassPower, "PowerOff operation failed: ", "the machine is still on, and Ironic does not say why")
	case v.did(writeSoft), v.offMode() == v1alpha1.RebootModeHard:
		return needs(writeHard)
	default:
		return needs(writeSoft)
	}
}

// freed ends what keeps the power from being changed, where that may be ended: an
// inspection always, a cleaning if it was manual, or is for nothing any more.
// nil if the node is free.
func (v view) freed() lifecycle.Outlook {
	n := v.node
	switch n.ProvisionState {
	case ironic.StateInspectWait:
		return needs(writeAbort)
	case ironic.StateInspectFailed:
		if n.TargetProvisionState != "" {
			return needs(writeManage)
		}
		return nil
	case ironic.StateCleanWait:
		manual := n.TargetProvisionState == ironic.StateManageable
		if manual || !cleans(v.host) || lifecycle.Leaving(v.host) {
			return needs(writeAbort)
		}
	}
	if v.occupied() {
		return v.busy(lifecycle.Long)
	}
	return nil
}

// reboot is how a restart without a time off stands.
func (v view) reboot() lifecycle.Outlook {
	switch n := v.node; {
	case v.occupied():
		return v.busy(lifecycle.Long)
	case v.changing():
		return v.switching()
	case n.Fault == ironic.FaultPower:
		return v.powerless()
	case !v.did(writeReboot):
		return needs(writeReboot)
	case n.LastError != "":
		return v.broken(event.ClassPower, "Reboot failed: ", "")
	case n.PowerState != ironic.PowerOn:
		return needs(writeOn)
	default:
		return finished()
	}
}
