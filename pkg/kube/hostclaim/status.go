package hostclaim

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// standing is where a claim stands.
type standing struct {
	// reason and message are those of the condition Associated, which is True
	// with BareMetalHostAssociated alone.
	reason, message string
	// host is the one that the claim has, nil for none.
	host *v1alpha1.BareMetalHost
	// refused: the API does not let the chosen host be taken.
	refused bool
}

func has(h *v1alpha1.BareMetalHost) standing {
	return standing{reason: v1alpha1.BareMetalHostAssociatedReason, message: "The claim has host " + h.Namespace + "/" + h.Name + ".", host: h}
}

func hasNone(reason, message string) standing { return standing{reason: reason, message: message} }

// notBuilt is what a claim says of what is not brought to its host.
const notBuilt = "Hosts are only bound to claims: image, user data, network data, metadata, custom deploy and power of a claim are not brought to its host. Set them on the host."

// statusOf is the claim's status where it stands. Nothing is changed in the
// claim.
func statusOf(claim *v1alpha1.HostClaim, s standing, now time.Time) v1alpha1.HostClaimStatus {
	status := *claim.Status.DeepCopy()
	set := func(kind string, value metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: reason, Message: message, ObservedGeneration: claim.Generation, LastTransitionTime: seconds(now),
		})
	}
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.SupportedCondition) // of a time when claims were not served
	associated := metav1.ConditionFalse
	if s.host != nil {
		associated = metav1.ConditionTrue
		status.BareMetalHost = &v1alpha1.ObjectReference{Namespace: s.host.Namespace, Name: s.host.Name}
		status.PoweredOn = s.host.Status.PoweredOn
	}
	set(v1alpha1.AssociatedCondition, associated, s.reason, s.message)
	set(v1alpha1.SynchronizedCondition, metav1.ConditionUnknown, v1alpha1.NotSupportedReason, notBuilt)
	value, reason, message := summary(status.Conditions)
	set(v1alpha1.ReadyCondition, value, reason, message)
	if !equality.Semantic.DeepEqual(status, claim.Status) {
		updated := seconds(now)
		status.LastUpdated = &updated
	}
	return status
}

// summary is the condition Ready: the worst of the others. One that is not
// there is not known.
func summary(conditions []metav1.Condition) (value metav1.ConditionStatus, reason, message string) {
	var issues, unknown []string
	for _, kind := range []string{v1alpha1.AssociatedCondition, v1alpha1.SynchronizedCondition, v1alpha1.ProvisionedCondition} {
		c := meta.FindStatusCondition(conditions, kind)
		switch {
		case c == nil:
			unknown = append(unknown, kind+": not reported yet")
		case c.Status == metav1.ConditionFalse:
			issues = append(issues, kind+": "+c.Message)
		case c.Status == metav1.ConditionUnknown:
			unknown = append(unknown, kind+": "+c.Message)
		}
	}
	switch {
	case len(issues) > 0:
		return metav1.ConditionFalse, v1alpha1.IssuesReportedReason, strings.Join(issues, "\n")
	case len(unknown) > 0:
		return metav1.ConditionUnknown, v1alpha1.UnknownReportedReason, strings.Join(unknown, "\n")
	default:
		return metav1.ConditionTrue, v1alpha1.InfoReportedReason, ""
	}
}

func seconds(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }
