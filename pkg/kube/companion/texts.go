package companion

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// What objects say whose wishes nobody carries out, and what to do instead.
const (
	ramdiskText = "The image is not booted here. Start the projector with --build-preprov-image, or name one ramdisk for all hosts with --deploy-iso-url, or --deploy-kernel-url and --deploy-ramdisk-url."
	claimText   = "HostClaims are not served here. Start the projector with --hostclaims."
	switchText  = "Switches are not written into any configuration here. Start the projector with --ironic-networking-enabled."
)

// fields are those of a status that change, as a merge patch has them.
type fields map[string]any

// unsupported puts our notice among the conditions of an object; nil if it is
// there.
func unsupported(conditions []metav1.Condition, generation int64, text string, now time.Time) fields {
	var next []metav1.Condition
	for _, c := range conditions {
		next = append(next, *c.DeepCopy())
	}
	changed := meta.SetStatusCondition(&next, metav1.Condition{
		Type: v1alpha1.SupportedCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.NotSupportedReason, Message: text,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now.UTC().Truncate(time.Second)),
	})
	if !changed {
		return nil
	}
	return fields{"conditions": next}
}

func ramdiskNotice(o *v1alpha1.PreprovisioningImage, now time.Time) fields {
	return unsupported(o.Status.Conditions, o.Generation, ramdiskText, now)
}

func claimNotice(o *v1alpha1.HostClaim, now time.Time) fields {
	return unsupported(o.Status.Conditions, o.Generation, claimText, now)
}

func switchNotice(o *v1alpha1.BareMetalSwitch, now time.Time) fields {
	return unsupported(o.Status.Conditions, o.Generation, switchText, now)
}
