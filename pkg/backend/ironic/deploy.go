package ironic

import (
	"fmt"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// deploy is how a deployment stands.
func (v view) deploy() lifecycle.Outlook {
	if o := v.refuseDeploy(); o != nil {
		return o
	}
	switch v.node.ProvisionState {
	case ironic.StateActive:
		return v.deployed()
	case ironic.StateAvailable:
		return v.deployAvailable()
	case ironic.StateManageable:
		return v.prepared(writeProvide, cleans(v.host))
	case ironic.StateDeployWait:
		if lifecycle.Interrupted(v.host, event.SectionProvisioning) {
			return needs(writeUndeploy)
		}
		return v.busy(lifecycle.Long)
	case ironic.StateDeploying, ironic.StateDeleting, ironic.StateCleaning, ironic.StateCleanWait:
		return v.busy(lifecycle.Long)
	case ironic.StateCleanFailed:
		return v.cleanFailed(writeProvide, event.ClassBackend, "Cleaning before the deployment failed: ")
	case ironic.StateDeployFailed:
		return v.deployFailed()
	case ironic.StateError:
		return v.broken(event.ClassBackend, "", "the node is in state error, and Ironic does not say why")
	default:
		return v.toManageable()
	}
}

// refuseDeploy is what cannot be deployed, found before anything is done; nil if
// there is nothing.
func (v view) refuseDeploy() lifecycle.Outlook {
	spec := v.host.Intent.Spec
	if spec.Image != nil && spec.Image.URL != "" {
		if _, _, err := spec.Image.GetChecksum(); err != nil {
			return v.refuse(event.ClassImage, "Validation failed: "+err.Error(), "Correct spec.image; it is tried at once")
		}
	}
	return v.refuseCleaning("deployed")
}

// refuseCleaning: Ironic powers a machine off to clean it.
func (v view) refuseCleaning(what string) lifecycle.Outlook {
	if !v.host.Intent.Spec.DisablePowerOff || !cleans(v.host) {
		return nil
	}
	return v.refuse(event.ClassUnsupported,
		"the host cannot be "+what+": its disks are to be cleaned, for which the machine has to be powered off, and spec.disablePowerOff forbids that",
		"Set spec.automatedCleaningMode to disabled, or spec.disablePowerOff to false")
}

// deployAvailable: a node that somebody else has claimed is left to them.
func (v view) deployAvailable() lifecycle.Outlook {
	if claim := v.node.InstanceUUID; claim != "" && claim != v.host.UID && !v.oldUID(claim) {
		return v.refuse(event.ClassConflict, fmt.Sprintf("node %s is claimed by instance %s, which is none of ours", v.node.UUID, claim),
			"Have whoever made that instance delete it, or clear it (baremetal node unset --instance-uuid)")
	}
	if v.did(writeUndeploy) && !v.op().Forced { // an agent was waited for in vain
		return v.timedOut(v.imageFailed())
	}
	return v.prepared(writeDeploy, !liveISO(v.host))
}

// oldUID reports whether it is the uid that the host had before it was moved here.
func (v view) oldUID(uid string) bool {
	base := v.host.Intent.Base
	return base != nil && base.OldUID == uid
}

// deployed is the outlook of an active node: done, if it was this operation that
// deployed it.
func (v view) deployed() lifecycle.Outlook {
	switch {
	case !v.marked() && !v.sameImage():
		return v.active()
	case !v.node.Protected:
		return needs(writeProtect)
	default:
		return finished()
	}
}

// deployFailed: what this operation deployed has failed; what another one deployed
// may be tried again.
func (v view) deployFailed() lifecycle.Outlook {
	switch {
	case v.did(writeAbort):
		return v.timedOut(v.imageFailed())
	case v.marked() && v.did(writeDeploy):
		return v.broken(event.ClassImage, v.imageFailed(), "Ironic does not say why")
	case v.did(writeUndeploy):
		return needs(writeUndeploy)
	default:
		return v.prepared(writeDeploy, !liveISO(v.host))
	}
}

// imageFailed names the image that could not be deployed.
func (v view) imageFailed() string {
	image := v.host.Intent.Spec.Image
	switch {
	case image == nil:
		return "Custom deployment failed: "
	case image.Checksum == "":
		return fmt.Sprintf("Image provisioning failed (url: %s): ", ironic.Scrub(image.URL))
	default:
		return fmt.Sprintf("Image provisioning failed (url: %s, checksum: %s): ", ironic.Scrub(image.URL), ironic.Scrub(image.Checksum))
	}
}

// undeploy is how the taking off of an image stands.
func (v view) undeploy() lifecycle.Outlook {
	n := v.node
	switch n.ProvisionState {
	case ironic.StateAvailable:
		return finished()
	case ironic.StateManageable:
		if o := v.refuseCleaning("cleaned"); o != nil {
			return o
		}
		return v.prepared(writeProvide, cleans(v.host))
	case ironic.StateActive, ironic.StateDeployFailed, ironic.StateDeployWait, ironic.StateServiceFailed, ironic.StateServiceWait:
		return v.undeployNow()
	case ironic.StateError:
		if v.did(writeUndeploy) {
			return v.broken(event.ClassBackend, "", "Deprovisioning failed")
		}
		return v.undeployNow()
	case ironic.StateCleanFailed:
		if v.did(writeUndeploy) {
			return v.broken(event.ClassBackend, "Cleaning failed: ", "Ironic does not say why")
		}
		return v.cleanFailed(writeProvide, event.ClassBackend, "Cleaning failed: ")
	case ironic.StateDeleting, ironic.StateCleaning, ironic.StateCleanWait, ironic.StateDeploying, ironic.StateServicing:
		return v.busy(lifecycle.Long)
	default:
		return v.toManageable()
	}
}

// undeployNow asks for the verb. A node that is another's by now, or that somebody
// else protects, is left alone.
func (v view) undeployNow() lifecycle.Outlook {
	n := v.node
	switch {
	case foreign(n, v.host):
		mark, _ := n.Extra[markHost].(string)
		return v.refuse(event.ClassConflict, fmt.Sprintf("node %s belongs to the host with uid %s by now", n.UUID, mark),
			"Another object of the same name manages this machine, perhaps in another cluster: remove one of the two (with annotation baremetalhost.metal3.io/detached nothing is done to the machine)")
	case n.Protected && n.ProtectedReason != reasonProtected:
		return v.protected()
	}
	if o := v.refuseCleaning("cleaned"); o != nil {
		return o
	}
	if n.ProvisionState == ironic.StateServiceWait && n.Protected {
		return needs(writeAbort) // a node that waits cannot be made free to be undeployed
	}
	return v.prepared(writeUndeploy, cleans(v.host) && n.ProvisionState != ironic.StateDeployWait)
}

// service is how the changing of firmware of a host in use stands.
func (v view) service() lifecycle.Outlook {
	gaveUp := lifecycle.FirmwareChanges(v.host).Empty()
	if err := v.version.Needs(ironic.FeatureService); err != nil && !gaveUp {
		return v.refuse(event.ClassUnsupported, err.Error(), lifecycle.NextStep(event.ClassUnsupported))
	}
	switch v.node.ProvisionState {
	case ironic.StateActive:
		if gaveUp || (v.did(writeService) && v.marked()) {
			return finished()
		}
		return v.prepared(writeService, true)
	case ironic.StateServicing:
		return v.busy(lifecycle.Long)
	case ironic.StateServiceWait:
		if gaveUp {
			return needs(writeAbort)
		}
		return v.busy(lifecycle.Long)
	case ironic.StateServiceFailed:
		return v.serviceFailed(gaveUp)
	default:
		return v.unexpected("The firmware is changed once the host is in use")
	}
}

// serviceFailed: the system goes on running. If nothing is wanted any more it is
// called off; what failed is told, and tried again later.
func (v view) serviceFailed(gaveUp bool) lifecycle.Outlook {
	switch {
	case gaveUp && !v.version.Has(ironic.FeatureServiceAbort):
		return v.refuse(event.ClassUnsupported, "the failed change of firmware cannot be called off: "+v.version.Needs(ironic.FeatureServiceAbort).Error(),
			"The machine runs on, and can be used and deprovisioned; a change of firmware that works, or a newer Ironic, brings the node back to active")
	case gaveUp:
		return v.verb(writeAbort)
	case v.did(writeAbort):
		return v.timedOut("")
	case v.did(writeService):
		return v.broken(event.ClassHardware, "", "Servicing failed, and Ironic does not say why")
	default:
		return v.prepared(writeService, true)
	}
}
