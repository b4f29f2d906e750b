package ironic

import (
	"slices"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// cleaning is what a manual cleaning is to do: nothing if it has no steps.
type cleaning struct {
	disks []map[string]any
	steps []ironic.Step
}

// cleaning is what has to be done before the host is available.
func (v view) cleaning() (cleaning, error) {
	changes := lifecycle.FirmwareChanges(v.host)
	if err := v.refuseUpdates(changes); err != nil {
		return cleaning{}, err
	}
	plan, err := v.raid()
	if err != nil {
		return cleaning{}, problemError(v.kind, event.ClassHardware, err.Error(), "Correct spec.raid; it is tried again at once")
	}
	return cleaning{disks: plan.disks, steps: slices.Concat(plan.steps, firmwareSteps(changes))}, nil
}

// prepare is how the preparing of a host stands that needs the cleaning.
func (v view) prepare(c cleaning) lifecycle.Outlook {
	switch state := v.node.ProvisionState; {
	case state == ironic.StateCleaning || state == ironic.StateCleanWait:
		return v.busy(lifecycle.Long)
	case state == ironic.StateCleanFailed:
		return v.cleanFailed(writeClean, event.ClassHardware, "")
	case len(c.steps) == 0 || (v.did(writeClean) && v.marked()):
		return v.preparedAlready()
	case v.host.Intent.Spec.DisablePowerOff:
		return v.refuse(event.ClassUnsupported, "RAID and firmware are set up by a cleaning, for which the machine has to be powered off, and spec.disablePowerOff forbids that",
			"Set spec.disablePowerOff to false while the host is prepared, or remove the RAID and firmware settings")
	case state == ironic.StateManageable:
		return v.prepared(writeClean, true)
	default:
		return v.toManageable()
	}
}

// preparedAlready: there is nothing to do, or it has been done.
func (v view) preparedAlready() lifecycle.Outlook {
	switch v.node.ProvisionState {
	case ironic.StateAvailable, ironic.StateManageable:
		return finished()
	default:
		return v.toManageable()
	}
}

// toManageable is the way back to manageable from where nothing is lost by it.
func (v view) toManageable() lifecycle.Outlook {
	switch v.node.ProvisionState {
	case ironic.StateAvailable, ironic.StateInspectFailed, ironic.StateAdoptFailed, ironic.StateCleanFailed:
		return v.verb(writeManage)
	case ironic.StateVerifying, ironic.StateInspecting, ironic.StateInspectWait, ironic.StateDeleting:
		return v.busy(lifecycle.Long)
	case ironic.StateActive:
		return v.active()
	default:
		return v.unexpected("Bring the node to manageable by hand; it goes on by itself")
	}
}

// cleanFailed is the outlook of a node that was not cleaned. If it was this
// operation that wanted it cleaned, its user is told; else the way is made free for
// another try.
func (v view) cleanFailed(by string, otherwise event.Class, prefix string) lifecycle.Outlook {
	if v.did(writeAbort) {
		return v.timedOut(prefix)
	}
	if v.did(by) {
		return v.broken(otherwise, prefix, "cleaning failed, and Ironic does not say why")
	}
	return v.verb(writeManage)
}
