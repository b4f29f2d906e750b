package hostclaim

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// selectorOf is the claim's selector. The webhook has checked it; the error is
// for what got past it.
func selectorOf(claim *v1alpha1.HostClaim) (labels.Selector, error) {
	selector := labels.SelectorFromSet(claim.Spec.HostSelector.MatchLabels)
	for _, e := range claim.Spec.HostSelector.MatchExpressions {
		r, err := labels.NewRequirement(e.Key, selection.Operator(strings.ToLower(string(e.Operator))), e.Values)
		if err != nil {
			return nil, err
		}
		selector = selector.Add(*r)
	}
	return selector, nil
}

// unfit says why a host can not be taken into use, "" if it can.
func unfit(h *v1alpha1.BareMetalHost) string {
	_, paused := h.Annotations[v1alpha1.PausedAnnotation]
	_, moving := h.Annotations[v1alpha1.DeleteForMoveAnnotation]
	switch state := h.Status.Provisioning.State; {
	case h.Spec.ConsumerRef != nil:
		return "in use"
	case h.DeletionTimestamp != nil || moving:
		return "being deleted"
	case paused:
		return "paused"
	case state != v1alpha1.StateAvailable && state != v1alpha1.StateReady:
		return "not available"
	case h.Status.ErrorMessage != "":
		return "in trouble"
	default:
		return ""
	}
}

// choice is what there is to choose from for a claim.
type choice struct {
	// candidates are the hosts that fit and are free, those of the claim's
	// failure domain alone if there are any.
	candidates []*v1alpha1.BareMetalHost
	// why there are none, for people.
	why string
}

// choices sorts the hosts of the open namespaces.
func choices(claim *v1alpha1.HostClaim, namespaces []string, hosts []*v1alpha1.BareMetalHost) (choice, error) {
	selector, err := selectorOf(claim)
	if err != nil {
		return choice{}, err
	}
	var c choice
	var reasons []string
	for _, h := range hosts {
		if !slices.Contains(namespaces, h.Namespace) || !selector.Matches(labels.Set(h.Labels)) {
			continue
		}
		if reason := unfit(h); reason != "" {
			reasons = append(reasons, reason)
			continue
		}
		c.candidates = append(c.candidates, h)
	}
	c.why = "No available host found: " + why(claim, namespaces, reasons)
	c.candidates = preferred(claim.Spec.FailureDomain, c.candidates)
	return c, nil
}

// preferred are the candidates in the failure domain, all of them if none is.
func preferred(domain string, candidates []*v1alpha1.BareMetalHost) []*v1alpha1.BareMetalHost {
	var near []*v1alpha1.BareMetalHost
	for _, h := range candidates {
		if domain != "" && h.Labels[v1alpha1.FailureDomainLabelName] == domain {
			near = append(near, h)
		}
	}
	if len(near) > 0 {
		return near
	}
	return candidates
}

// why says what stands in the way, and what would help.
func why(claim *v1alpha1.HostClaim, namespaces, reasons []string) string {
	if len(namespaces) == 0 {
		where := "no namespace has a HostDeployPolicy that lets claims of namespace " + claim.Namespace + " in"
		if only := claim.Spec.HostSelector.InNamespace; only != "" {
			where = "namespace " + only + " has no HostDeployPolicy that lets claims of namespace " + claim.Namespace + " in"
		}
		return where + "; ask whoever owns the hosts for one."
	}
	where := "in " + strings.Join(namespaces, ", ")
	if len(reasons) == 0 {
		return "no host fits the selector " + where + "."
	}
	counts := map[string]int{}
	for _, r := range reasons {
		counts[r]++
	}
	var parts []string
	for _, r := range []string{"in use", "being deleted", "paused", "not available", "in trouble"} {
		if counts[r] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[r], r))
		}
	}
	return fmt.Sprintf("of the hosts that fit %s: %s. The claim waits for one.", where, strings.Join(parts, ", "))
}
