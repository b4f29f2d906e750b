package ironic

import (
	"fmt"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// refusal is what is asked of a host that its BMC or this Ironic cannot do, found
// before anything is written; nil if there is nothing.
func (v view) refusal() lifecycle.Outlook {
	spec, can, bmc := v.host.Intent.Spec, v.wish.family.Capabilities, v.wish.address.Type
	unsupported := func(format string, args ...any) lifecycle.Outlook {
		p := lifecycle.NewProblem(v1alpha1.RegistrationError, event.ClassUnsupported, fmt.Sprintf(format, args...))
		p.Local = true
		return lifecycle.Broken{Problem: p}
	}
	switch {
	case fast(v.host) && !can.FastInspection:
		return unsupported("BMC driver %s does not support fast (out-of-band) inspection", bmc)
	case spec.BootMode == v1alpha1.UEFISecureBoot && !can.SecureBoot:
		return unsupported("BMC driver %s does not support secure boot", bmc)
	case can.NeedsProvisioningNetwork && v.set.NoProvisioningNetwork:
		return unsupported("BMC driver %s requires a provisioning network", bmc)
	case spec.DisablePowerOff && !v.version.Has(ironic.FeatureDisablePowerOff):
		return unsupported("current ironic version does not support DisablePowerOff, refusing to manage node: %s", v.version.Needs(ironic.FeatureDisablePowerOff))
	case spec.BootMACAddress == "" && (can.NeedsMAC || v.host.Intent.InspectionDisabled):
		return unsupported("BMC driver %s requires a BootMACAddress value", bmc)
	default:
		return nil
	}
}

// enroll is how the registration of a host stands that has a node.
func (v view) enroll() lifecycle.Outlook {
	n := v.node
	if v.misfit() {
		return v.anew()
	}
	switch state := n.ProvisionState; {
	case state == ironic.StateVerifying:
		return v.busy(lifecycle.Quick)
	case len(v.registrationPatch()) > 0:
		return v.outOfDate()
	case state == ironic.StateEnroll:
		return v.enrolled()
	default:
		return finished()
	}
}

// misfit reports whether the node was made for a BMC of another kind.
func (v view) misfit() bool {
	return v.node.Driver != "" && v.node.Driver != v.wish.family.Driver
}

// anew is the outlook of a node whose driver does not fit: one that never worked is
// made anew, any other has to be detached by its user first.
func (v view) anew() lifecycle.Outlook {
	if v.node.ProvisionState == ironic.StateEnroll {
		return needs(writeRecreate)
	}
	return v.refuse(event.ClassConflict,
		fmt.Sprintf("node %s has the driver %s, and the BMC address %s needs %s", v.node.UUID, v.node.Driver, v.wish.address.Type, v.wish.family.Driver),
		"Detach the host (annotation "+v1alpha1.DetachedAnnotation+") and attach it again: the node is then made anew, and the machine is left alone")
}

// outOfDate is the outlook of a node that does not know the present address,
// credentials or name. In some states it cannot be told.
func (v view) outOfDate() lifecycle.Outlook {
	if ironic.Busy(v.node.ProvisionState) || ironic.Waiting(v.node.ProvisionState) {
		return v.busy(lifecycle.Long)
	}
	return needs(writeUpdate)
}

// verifications is how often a BMC is verified although Ironic gives no reason why
// it was not.
const verifications = 3

// enrolled is the outlook in state enroll: the BMC has not been verified, or failed
// to be.
func (v view) enrolled() lifecycle.Outlook {
	const unexplained = "Ironic could not verify the BMC, and does not say why"
	switch {
	case v.node.TargetProvisionState == ironic.StateManageable:
		return underway("Ironic to verify the BMC", lifecycle.Quick)
	case !v.did(writeManage), v.node.LastError == "" && v.op().Claim <= verifications:
		return v.verb(writeManage)
	default:
		return v.broken(event.ClassUnreachable, "", unexplained)
	}
}

// adopt is how the taking over of a running machine stands. Nothing in it touches
// the machine.
func (v view) adopt() lifecycle.Outlook {
	n := v.node
	if v.goingAnyway() {
		return finished()
	}
	switch n.ProvisionState {
	case ironic.StateActive:
		return v.adopted()
	case ironic.StateManageable:
		return v.takeOver()
	case ironic.StateAdopting:
		return v.busy(lifecycle.Quick)
	case ironic.StateAdoptFailed:
		if v.did(writeAdopt) {
			return v.adoptFailed()
		}
		return v.takeOver()
	case ironic.StateAvailable, ironic.StateInspectFailed:
		return v.verb(writeManage) // neither changes the machine
	case ironic.StateVerifying:
		return v.busy(lifecycle.Quick)
	case ironic.StateServicing, ironic.StateServiceWait, ironic.StateServiceFailed:
		return finished() // in use, and known to be
	default:
		return v.refuse(event.ClassConflict,
			fmt.Sprintf("the host is in use, but its node %s is in state %q", n.UUID, n.ProvisionState),
			"Bring the node back to manageable by hand, without cleaning it; it is adopted then. The machine is not touched")
	}
}

// takeOver has Ironic take the machine over, once its node says what runs there.
func (v view) takeOver() lifecycle.Outlook {
	iso, _ := v.node.InstanceInfo["boot_iso"].(string)
	if wanted := runningISO(v.host); wanted != "" && (iso != wanted || v.node.DeployInterface != deploysISO) {
		return v.prepared(writeAdopt, false)
	}
	return v.verb(writeAdopt)
}

// adoptFailed tells why. That its image cannot be reached is no reason to give a
// machine in use another one.
func (v view) adoptFailed() lifecycle.Outlook {
	text := v.why("Ironic does not say why")
	return lifecycle.Broken{Problem: lifecycle.NewProblem(lifecycle.ErrorTypeOf(v.kind), classify(text, event.ClassBackend), "Host adoption failed: "+text)}
}

// goingAnyway reports whether what the machine carries is being taken off: a node
// that knows nothing of it is cleaned, and need not take it over for that.
func (v view) goingAnyway() bool {
	state := v.node.ProvisionState
	free := state == ironic.StateManageable || state == ironic.StateAvailable || state == ironic.StateAdoptFailed
	return free && v.host.Provisioning.Phase == event.Undeploying
}

// adopted is what is left to do for a node that is active: it comes out of a
// maintenance that was ours, and is protected against others.
func (v view) adopted() lifecycle.Outlook {
	switch n := v.node; {
	case n.Maintenance && n.Fault == "" && ours(n.MaintenanceReason):
		return needs(writeUnmaintain)
	case !n.Protected && v.used():
		return needs(writeProtect)
	default:
		return finished()
	}
}

// ours reports whether it was for a deletion that a node was put into maintenance.
func ours(reason string) bool {
	return reason == reasonDelete || reason == reasonRecover || reason == reasonUpstream
}
