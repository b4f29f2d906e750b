package webhook

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
)

// hostRules are the rules on hosts.
type hostRules struct {
	known *index
	// guard refuses to delete hosts that somebody uses.
	guard bool
}

func (r hostRules) judge(c change[v1alpha1.BareMetalHost]) answer {
	switch {
	case c.after == nil && r.guard:
		return answer{errs: admission.ValidateHostDeletion(c.before)}
	case c.after == nil:
		return answer{}
	case c.before == nil:
		return answer{errs: admission.ValidateHost(c.after), warnings: r.warnings(c.after)}
	default:
		return answer{errs: admission.ValidateHostUpdate(c.before, c.after), warnings: r.newWarnings(c)}
	}
}

func (r hostRules) warnings(host *v1alpha1.BareMetalHost) []string {
	return append(admission.HostWarnings(host), admission.ConflictWarnings(host, r.known.like(host))...)
}

// newWarnings are all warnings for whoever changes the specification, and those
// that were not there before for whoever changes something else: programs that
// only add a label are not told every time what a person wrote long ago.
func (r hostRules) newWarnings(c change[v1alpha1.BareMetalHost]) []string {
	if c.after.DeletionTimestamp != nil {
		return nil
	}
	now := r.warnings(c.after)
	if len(now) == 0 || !equality.Semantic.DeepEqual(c.before.Spec, c.after.Spec) {
		return now
	}
	before := r.warnings(c.before)
	return slices.DeleteFunc(now, func(w string) bool { return slices.Contains(before, w) })
}
