package lifecycle

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

// conditions sum the host up for people and for programs that wait. They are
// in the order in which they are shown: Ready first, then by name.
func conditions(h Host) []metav1.Condition {
	stage := Stage(h)
	list := []metav1.Condition{
		ready(h, stage),
		truth(v1alpha1.AvailableForProvisioningCondition, stage == available, v1alpha1.AvailableReason, v1alpha1.NotAvailableReason),
		healthy(h),
		manageable(h, stage),
		progressing(h, stage),
		truth(v1alpha1.ProvisionedCondition, Used(stage), v1alpha1.ProvisionedReason, v1alpha1.NotProvisionedReason),
	}
	for i := range list {
		list[i].ObservedGeneration = h.Intent.Generation
	}
	return list
}

func truth(kind string, is bool, yes, no string) metav1.Condition {
	if is {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: yes}
	}
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: no}
}

func ready(h Host, stage v1alpha1.ProvisioningState) metav1.Condition {
	c := truth(v1alpha1.ReadyCondition, Used(stage), v1alpha1.ProvisionedReason, v1alpha1.NotProvisionedReason)
	not := func(reason, message string) metav1.Condition {
		return metav1.Condition{Type: c.Type, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	switch OperationalStatus(h) {
	case v1alpha1.OperationalStatusError:
		return not(v1alpha1.ErrorReason, Message(*Problem(h)))
	case v1alpha1.OperationalStatusServicing:
		return not(v1alpha1.ServicingReason, "firmware or settings are being changed")
	case v1alpha1.OperationalStatusDetached:
		return not(v1alpha1.DetachedReason, "the host is out of its backend; remove the annotation "+v1alpha1.DetachedAnnotation+" to attach it again")
	default:
		return c
	}
}

func healthy(h Host) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.HealthyCondition, Status: metav1.ConditionFalse}
	switch h.Power.Health {
	case "OK":
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.HealthyReason
	case "Warning":
		c.Reason, c.Message = v1alpha1.WarningHealthReason, "the BMC reports a warning; see its event log"
	case "Critical":
		c.Reason, c.Message = v1alpha1.CriticalHealthReason, "the BMC reports a critical fault; see its event log"
	default:
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.UnknownHealthReason
	}
	return c
}

func manageable(h Host, stage v1alpha1.ProvisioningState) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ManageableCondition, Status: metav1.ConditionFalse}
	switch {
	case stage == v1alpha1.StateNone || stage == unmanaged:
		c.Reason = v1alpha1.NotManagedReason
		c.Message = "set spec.bmc.address and spec.bmc.credentialsName to have the host managed"
	case stage == registering && Problem(h) != nil:
		c.Reason, c.Message = v1alpha1.RegistrationFailedReason, Message(*Problem(h))
	case stage == registering:
		c.Reason = v1alpha1.RegisteringReason
	case h.Power.Fault != "" && stage != deleting && !h.Registration.Detached:
		c.Reason, c.Message = v1alpha1.PowerFailureReason, h.Power.Fault
	default:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ManageableReason
	}
	return c
}

func progressing(h Host, stage v1alpha1.ProvisioningState) metav1.Condition {
	reason := map[v1alpha1.ProvisioningState]string{
		registering: v1alpha1.RegisteringReason, inspects: v1alpha1.InspectingReason, preparing: v1alpha1.PreparingReason,
		provision: v1alpha1.ProvisioningReason, deprovision: v1alpha1.DeprovisioningReason,
		poweringOff: v1alpha1.PoweringOffBeforeDeleteReason, deleting: v1alpha1.DeletingReason,
	}[stage]
	c := truth(v1alpha1.ProgressingCondition, reason != "", reason, v1alpha1.NotProgressingReason)
	if h.Registration.Detached && stage != deleting {
		c = truth(v1alpha1.ProgressingCondition, false, "", v1alpha1.DetachedReason)
	}
	c.Message = WaitsFor(h)
	return c
}

// WaitsFor says in words what a host that is on its way waits for, "" if for
// nothing in particular.
func WaitsFor(h Host) string {
	if h.Intent.Paused {
		return "paused by the annotation " + v1alpha1.PausedAnnotation
	}
	if why := heldUp(h); why != "" {
		return why
	}
	p := Problem(h)
	op, _ := h.Op()
	switch {
	case p != nil:
		return Message(*p)
	case h.Intent.Credentials.Name != "" && h.Intent.Credentials.Version == "" && !h.Registration.Registered:
		return fmt.Sprintf("waits for the Secret %s/%s", h.Intent.Credentials.Namespace, h.Intent.Credentials.Name)
	case AwaitsRamdisk(h) && (op == nil || op.Step == ""):
		return "waits for " + h.Intent.Ramdisk.Waits
	case op != nil:
		return waitsForOp(*op)
	default:
		return ""
	}
}

// AwaitsRamdisk reports whether the host cannot boot what it has to boot next, as
// that is not there yet.
func AwaitsRamdisk(h Host) bool {
	spec := h.Intent.Spec
	if r := h.Intent.Ramdisk; r == nil || r.Waits == "" || !h.Registration.Registered || Apart(h) {
		return false
	}
	switch Stage(h) {
	case inspects:
		return spec.InspectionMode != v1alpha1.InspectionModeFast
	case provision:
		return !spec.Image.IsLiveISO()
	case deprovision:
		return spec.AutomatedCleaningMode != v1alpha1.CleaningModeDisabled
	default:
		return Stage(h) == preparing
	}
}

// heldUp says in words what keeps the host that is neither its own problem nor
// work on it, "" if nothing does.
func heldUp(h Host) string {
	i := h.Intent
	for _, s := range event.Sections() {
		if stall := h.Work(s).Stalled; stall != nil {
			return fmt.Sprintf("waits since %s UTC for what does not answer: %s", stall.Since.UTC().Format("15:04:05"), stall.Message)
		}
	}
	op, _ := h.Op()
	switch {
	case Waiting(h) != nil:
		return place(*Waiting(h))
	case !i.DeletedAt.IsZero() && i.Detached != nil && i.Detached.Delay:
		return "its deletion waits until the annotation " + v1alpha1.DetachedAnnotation + " is removed, and the host is attached again"
	case !Leaving(h) && i.Detached != nil && !Apart(h) && h.Registration.Registered:
		return "it is detached once it is at rest; to detach it at once, set " + v1alpha1.DetachedAnnotation + `: {"force":true}`
	case op == nil && h.Registration.Problem == nil && Unadopted(h):
		return "its backend has yet to take the running machine over; nothing is done to the machine meanwhile"
	default:
		return ""
	}
}

func waitsForOp(op event.Op) string {
	text := "operation " + string(op.Kind) + " is under way"
	if op.Reason != "" {
		text += " (" + op.Reason + ")"
	}
	if op.Step != "" && op.Step != string(op.Kind) {
		text += ", step " + op.Step
	}
	return text
}
