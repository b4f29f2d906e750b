package ironic

import (
	"fmt"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// remove is how the removal of a node stands, be it for good (remove) or for as
// long as its user wants (detach). The machine is left as it is.
func (v view) remove() lifecycle.Outlook {
	n := v.node
	switch {
	case foreign(n, v.host):
		return finished() // it belongs to another object of this name by now
	case n.Protected && n.ProtectedReason != reasonProtected:
		return v.protected()
	case n.ProvisionState == ironic.StateDeployWait && v.aborts():
		return v.abortDeployment()
	case ironic.Waiting(n.ProvisionState) && v.aborts():
		return needs(writeAbort)
	case ironic.Waiting(n.ProvisionState) || ironic.Busy(n.ProvisionState):
		return v.leaveBusy()
	default:
		return needs(writeDelete)
	}
}

// protected is the outlook of a node that somebody else protects.
func (v view) protected() lifecycle.Outlook {
	return v.refuse(event.ClassConflict, fmt.Sprintf("node %s is protected by somebody else (%s)", v.node.UUID, ironic.Scrub(v.node.ProtectedReason)),
		"Take the protection off (baremetal node unset --protected)")
}

// aborts reports whether what a node waits for is given up: for a host that goes for
// good, or whose user says that it is to be detached by force.
func (v view) aborts() bool {
	if v.kind == event.Remove {
		return true
	}
	return v.host.Intent.Detached != nil && v.host.Intent.Detached.Force
}

// abortDeployment ends a deployment that waits. Older Ironics can only undo it.
func (v view) abortDeployment() lifecycle.Outlook {
	if v.version.Has(ironic.FeatureDeployAbort) {
		return needs(writeAbort)
	}
	return needs(writeUndeploy)
}

// leaveBusy waits for what Ironic is doing to end. What does not end is deleted
// all the same, in maintenance.
func (v view) leaveBusy() lifecycle.Outlook {
	if v.node.Idle() > v.limit() {
		return needs(writeDelete)
	}
	if v.node.Maintenance && ours(v.node.MaintenanceReason) {
		return needs(writeDelete)
	}
	every := lifecycle.Long
	if v.node.ProvisionState == ironic.StateVerifying {
		every = lifecycle.Quick
	}
	return underway(fmt.Sprintf("Ironic to finish with the node, which is in state %q", v.node.ProvisionState), every)
}

// foreign reports whether the node has been taken over for another host: another
// object, here or in another cluster, of the same name.
func foreign(n ironic.Node, h lifecycle.Host) bool {
	mark, _ := n.Extra[markHost].(string)
	moved := h.Intent.Base != nil && mark == h.Intent.Base.OldUID
	return mark != "" && mark != h.UID && !moved
}
