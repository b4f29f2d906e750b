package webhook

import (
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
)

// hook is a webhook: one kind, and what is asked about it.
type hook struct {
	kind, plural string
	// operations are what it is asked about.
	operations []admissionv1.Operation
	judge      judge
	// warns: it refuses nothing, so nothing depends on its being asked.
	warns bool
}

// name is what the webhook is called in its configuration.
func (h hook) name() string { return strings.ToLower(h.kind) + "." + v1alpha1.GroupVersion.Group }

// path is where its questions are sent.
func (h hook) path() string {
	group := strings.ReplaceAll(v1alpha1.GroupVersion.Group, ".", "-")
	return "/validate-" + group + "-" + v1alpha1.GroupVersion.Version + "-" + strings.ToLower(h.kind)
}

// hooks are all webhooks, by name. That hosts are deleted is asked about by a
// configuration of its own, which is there only where it is wanted.
func hooks(known *index, guard bool) []hook {
	return []hook{
		{"BareMetalHost", "baremetalhosts", written(), on(hostRules{known, guard}.judge), false},
		{"BareMetalSwitch", "baremetalswitches", written(), on(by(admission.ValidateSwitch, admission.ValidateSwitchUpdate)), false},
		{"BMCEventSubscription", "bmceventsubscriptions", written(), on(warning(by(admission.ValidateSubscription, admission.ValidateSubscriptionUpdate), admission.Warnings(admission.SubscriptionLogins))), false},
		{"DataImage", "dataimages", written(), on(warning(by(admission.ValidateDataImage, admission.ValidateDataImageUpdate), admission.Warnings(admission.DataImageLogins))), false},
		{"HostClaim", "hostclaims", written(), on(warning(by(admission.ValidateHostClaim, admission.ValidateHostClaimUpdate), admission.ClaimWarnings)), false},
		{"HostDeployPolicy", "hostdeploypolicies", written(), on(warned(admission.PolicyWarnings)), true},
		{"HostFirmwareComponents", "hostfirmwarecomponents", written(), on(warning(by(admission.ValidateFirmwareComponents, admission.ValidateFirmwareComponentsUpdate), admission.Warnings(admission.FirmwareLogins))), false},
		{"HostNetworkAttachment", "hostnetworkattachments", append(written(), admissionv1.Delete), on(attachmentRules{known}.judge), false},
	}
}

func written() []admissionv1.Operation {
	return []admissionv1.Operation{admissionv1.Create, admissionv1.Update}
}

// change is what is to happen to an object: before is nil when it is made,
// after is nil when it is deleted.
type change[T any] struct{ before, after *T }

// answer is what the rules say of a change.
type answer struct {
	// errs forbid it.
	errs field.ErrorList
	// warnings are shown to whoever asked.
	warnings []string
	// unsure says why it can not be judged now.
	unsure error
}

// by judges by a rule for new objects and one for changes.
func by[T any](create func(*T) field.ErrorList, update func(before, after *T) field.ErrorList) func(change[T]) answer {
	return func(c change[T]) answer {
		switch {
		case c.after == nil:
			return answer{}
		case c.before == nil:
			return answer{errs: create(c.after)}
		default:
			return answer{errs: update(c.before, c.after)}
		}
	}
}

// warned judges by a rule that refuses nothing.
func warned[T any](warnings func(*T) []string) func(change[T]) answer {
	return func(c change[T]) answer {
		if c.after == nil {
			return answer{}
		}
		return answer{warnings: warnings(c.after)}
	}
}

// warning judges by rules, and warns of what they allow.
func warning[T any](rules func(change[T]) answer, warnings func(*T) []string) func(change[T]) answer {
	return func(c change[T]) answer {
		a := rules(c)
		a.warnings = append(a.warnings, warned(warnings)(c).warnings...)
		return a
	}
}
