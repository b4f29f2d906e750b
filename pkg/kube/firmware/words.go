package firmware

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// words are upstream's for what is said of one kind of object.
type words struct {
	changed, valid string // conditions
	fine, wrong    string // reasons
	what           string // differs
	fault          string // stands before what is wrong
}

func onSettings() words {
	return words{
		changed: string(v1alpha1.FirmwareSettingsChangeDetected), valid: string(v1alpha1.FirmwareSettingsValid),
		fine: v1alpha1.FirmwareSettingsSuccessReason, wrong: v1alpha1.FirmwareSettingsConfigurationErrorReason,
		what: "settings", fault: "Invalid BIOS setting: ",
	}
}

func onComponents() words {
	return words{
		changed: string(v1alpha1.HostFirmwareComponentsChangeDetected), valid: string(v1alpha1.HostFirmwareComponentsValid),
		fine: v1alpha1.FirmwareComponentsOKReason, wrong: v1alpha1.FirmwareComponentsInvalidReason,
		what: "updates", fault: "Invalid Firmware Components: ",
	}
}

// judged puts up what differs and what is wrong.
func (w words) judged(list []metav1.Condition, v verdict, s subject) []metav1.Condition {
	list = taken(list)
	s.mark(&list, w.changed, truth(len(v.differ) > 0), w.fine, differing(w.what, v, s.when))
	if len(v.faults) > 0 {
		s.mark(&list, w.valid, metav1.ConditionFalse, w.wrong, joined(w.fault+strings.Join(v.faults, "; "), s.remarks))
	} else {
		s.mark(&list, w.valid, metav1.ConditionTrue, w.fine, s.remarks)
	}
	return list
}

// unjudged puts up why it is not known what comes of an object: the machine's
// firmware could not be read, or the backend reads and changes none of it.
func (w words) unjudged(list []metav1.Condition, at sight, s subject) []metav1.Condition {
	if at.read.Problem == "" {
		list = slices.Clone(list)
		s.mark(&list, v1alpha1.SupportedCondition, metav1.ConditionFalse, v1alpha1.NotSupportedReason, "Nothing of this is carried out: the backend "+at.backend()+
			" reads and changes no firmware of this machine. Change it at the BMC, or use a BMC and a backend that can: Ironic with Redfish.")
		return list
	}
	list = taken(list)
	for _, kind := range []string{w.changed, w.valid} {
		s.mark(&list, kind, metav1.ConditionUnknown, notReadReason, s.remarks)
	}
	return list
}
