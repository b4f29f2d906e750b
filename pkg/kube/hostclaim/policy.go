package hostclaim

import (
	"regexp"
	"slices"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// lets reports whether a policy lets claims of a namespace in. labels are those
// of the namespace. A policy whose expression can not be read lets nobody in;
// whoever wrote it has been warned.
func lets(policy *v1alpha1.HostDeployPolicy, namespace string, labels map[string]string) bool {
	who := policy.Spec.HostClaimNamespaces
	if who == nil || policy.DeletionTimestamp != nil {
		return false
	}
	if who.Names != nil && !slices.Contains(who.Names, namespace) {
		return false
	}
	if expression, err := regexp.Compile(who.NameMatches); err != nil || !expression.MatchString(namespace) {
		return false
	}
	return !slices.ContainsFunc(who.HasLabels, func(wanted v1alpha1.NameValuePair) bool {
		value, there := labels[wanted.Name]
		return !there || (wanted.Value != "" && wanted.Value != value)
	})
}

// asksForLabels reports whether the namespace's labels matter to any policy.
func asksForLabels(policies []*v1alpha1.HostDeployPolicy) bool {
	return slices.ContainsFunc(policies, func(p *v1alpha1.HostDeployPolicy) bool {
		return p.Spec.HostClaimNamespaces != nil && len(p.Spec.HostClaimNamespaces.HasLabels) > 0
	})
}

// open are the namespaces whose hosts a claim may have.
func open(claim *v1alpha1.HostClaim, policies []*v1alpha1.HostDeployPolicy, labels map[string]string) []string {
	var namespaces []string
	only := claim.Spec.HostSelector.InNamespace
	for _, p := range policies {
		if (only == "" || only == p.Namespace) && lets(p, claim.Namespace, labels) {
			namespaces = append(namespaces, p.Namespace)
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}
