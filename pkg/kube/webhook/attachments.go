package webhook

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
)

// attachmentRules are the rules on HostNetworkAttachments, some of which ask
// which hosts use them.
type attachmentRules struct{ known *index }

func (r attachmentRules) judge(c change[v1alpha1.HostNetworkAttachment]) answer {
	switch {
	case c.before == nil:
		return answer{errs: admission.ValidateAttachment(c.after)}
	case c.after != nil && equality.Semantic.DeepEqual(c.before.Spec, c.after.Spec):
		return answer{} // who uses it does not matter
	}
	hosts, err := r.known.users(c.before)
	if err != nil {
		return answer{unsure: err}
	}
	users := admission.AttachmentUsers(c.before.Namespace, c.before.Name, hosts)
	if c.after == nil {
		errs, warnings := admission.ValidateAttachmentDeletion(users)
		return answer{errs: errs, warnings: warnings}
	}
	return answer{errs: admission.ValidateAttachmentUpdate(c.before, c.after, users)}
}
