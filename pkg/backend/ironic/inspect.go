package ironic

import (
	"strings"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// inspect is how an inspection stands. Finished says that there is an inventory to
// be read.
func (v view) inspect() lifecycle.Outlook {
	switch v.node.ProvisionState {
	case ironic.StateAvailable:
		return v.verb(writeManage)
	case ironic.StateManageable:
		return v.inspectManageable()
	case ironic.StateInspecting:
		return v.busy(v.inspectPoll())
	case ironic.StateInspectWait:
		if lifecycle.Interrupted(v.host, event.SectionInspection) {
			return needs(writeAbort)
		}
		return v.busy(v.inspectPoll())
	case ironic.StateInspectFailed:
		return v.inspectFailed()
	case ironic.StateCleaning, ironic.StateCleanWait, ironic.StateDeleting, ironic.StateVerifying:
		return v.busy(lifecycle.Long)
	case ironic.StateCleanFailed, ironic.StateAdoptFailed:
		return v.verb(writeManage)
	case ironic.StateActive:
		return v.active()
	default:
		return v.unexpected("Bring the node to manageable by hand; the inspection goes on by itself")
	}
}

// inspectManageable: Ironic forgets the time of an older inspection when a new one
// begins, so that a node that has one was inspected since.
func (v view) inspectManageable() lifecycle.Outlook {
	done := !v.node.InspectionFinishedAt.IsZero()
	again := lifecycle.WantsInspection(v.host) || v.host.Inspection.Again
	if done && (v.did(writeInspect) || !again) {
		return finished()
	}
	return v.prepared(writeInspect, !fast(v.host))
}

func (v view) inspectFailed() lifecycle.Outlook {
	aborted := strings.Contains(v.node.LastError, "aborted")
	switch {
	case v.did(writeInspect) && !aborted:
		return v.broken(event.ClassInspection, "", "Inspection failed")
	case v.did(writeAbort) && !v.op().Forced:
		return v.timedOut("")
	default:
		return v.prepared(writeInspect, !fast(v.host))
	}
}

// inspectPoll: a BMC answers in seconds, an agent has to boot.
func (v view) inspectPoll() time.Duration {
	if fast(v.host) {
		return lifecycle.Quick
	}
	return lifecycle.Long
}

// prepared is the outlook of a verb for which the node must be set up first, and,
// where it boots an agent, have a ramdisk.
func (v view) prepared(write string, boots bool) lifecycle.Outlook {
	switch {
	case boots && v.wish.unbootable != "":
		return v.unbootable()
	case boots && v.wish.waits != "":
		return underway(v.wish.waits, lifecycle.Long)
	case v.changeable() && len(v.configPatch()) > 0:
		return needs(writeConfigure)
	default:
		return v.verb(write)
	}
}

// unbootable is the outlook of a host that there is no ramdisk for. A deployment
// that has begun waits: its image is not to blame, and no try of it is used up.
func (v view) unbootable() lifecycle.Outlook {
	if v.kind == event.Deploy && v.host.Provisioning.Phase == event.Deploying {
		return underway("a ramdisk: "+v.wish.unbootable, lifecycle.Long)
	}
	return lifecycle.Broken{Problem: event.Problem{
		Type: v1alpha1.RegistrationError, Class: event.ClassMedia, Message: v.wish.unbootable,
		Next: "See the PreprovisioningImage " + v.host.Name() + ", and whoever builds it; it is tried again as soon as that changes",
	}}
}

// changeable reports whether Ironic takes changes of the node as it is.
func (v view) changeable() bool {
	n := v.node
	return n.Fault != ironic.FaultPower && !ironic.Busy(n.ProvisionState) && !ironic.Waiting(n.ProvisionState)
}
