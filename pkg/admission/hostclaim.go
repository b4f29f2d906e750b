package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// ValidateHostClaim says what is wrong with a claim, all of it at once.
func ValidateHostClaim(claim *v1alpha1.HostClaim) field.ErrorList {
	spec := field.NewPath("spec")
	selector := spec.Child("hostSelector")
	return slices.Concat(
		validateMatchLabels(claim.Spec.HostSelector.MatchLabels, selector.Child("matchLabels")),
		validateMatchExpressions(claim.Spec.HostSelector.MatchExpressions, selector.Child("matchExpressions")),
		validateSecretNamespace(claim.Spec.UserData, claim.Namespace, spec, "userData"),
		validateSecretNamespace(claim.Spec.NetworkData, claim.Namespace, spec, "networkData"),
		validateSecretNamespace(claim.Spec.MetaData, claim.Namespace, spec, "metaData"),
		validateRebootAnnotations(claim.Annotations, field.NewPath("metadata", "annotations")),
		validateImage(claim.Spec.Image, spec.Child("image")),
	)
}

// ValidateHostClaimUpdate says what is wrong with a change of a claim. Faults
// that it had already are let be as long as the spec stays as it is.
func ValidateHostClaimUpdate(before, after *v1alpha1.HostClaim) field.ErrorList {
	errs := ValidateHostClaim(after)
	if equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		errs = without(errs, ValidateHostClaim(before))
	}
	return errs
}

// ClaimWarnings says what is allowed in a claim and still likely to be a slip.
func ClaimWarnings(claim *v1alpha1.HostClaim) []string {
	spec := claim.Spec
	return append(Warnings(ImageLogins)(spec.Image), unheard(spec.Image, spec.UserData, spec.NetworkData, spec.MetaData)...)
}

func validateMatchLabels(labels map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		value := labels[key]
		for _, problem := range slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)) {
			errs = append(errs, field.Invalid(path.Key(key), value, fmt.Sprintf("%s=%s: %s", key, value, problem)))
		}
	}
	return errs
}

// validateMatchExpressions counts expressions from one in its messages.
func validateMatchExpressions(expressions []v1alpha1.HostSelectorRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, expression := range expressions {
		label := fmt.Sprintf("matchExpr %d: ", i+1)
		for _, problem := range validation.IsQualifiedName(expression.Key) {
			errs = append(errs, field.Invalid(path.Index(i).Child("key"), expression.Key, label+problem))
		}
		for _, problem := range problemsWithValues(expression) {
			errs = append(errs, field.Invalid(path.Index(i).Child("values"), strings.Join(expression.Values, ", "), label+problem))
		}
		if !isOperator(expression.Operator) {
			errs = append(errs, field.Invalid(path.Index(i).Child("operator"), expression.Operator, fmt.Sprintf(
				"%sinvalid operation %s in match expression on label key %s; use =, ==, !=, in, notin, exists or !",
				label, expression.Operator, expression.Key)))
		}
	}
	return errs
}

func isOperator(operator selection.Operator) bool {
	switch operator {
	case selection.Equals, selection.DoubleEquals, selection.NotEquals, selection.In, selection.NotIn,
		selection.Exists, selection.DoesNotExist:
		return true
	default:
		return false
	}
}

// problemsWithValues says what is wrong with the number of values, and with
// each of them.
func problemsWithValues(expression v1alpha1.HostSelectorRequirement) []string {
	var problems []string
	n := len(expression.Values)
	switch expression.Operator {
	case selection.Equals, selection.DoubleEquals, selection.NotEquals:
		if n != 1 {
			problems = append(problems, fmt.Sprintf("operator %s takes exactly one value, not %d", expression.Operator, n))
		}
	case selection.In, selection.NotIn:
		if n == 0 {
			problems = append(problems, fmt.Sprintf("operator %s takes at least one value", expression.Operator))
		}
	case selection.Exists, selection.DoesNotExist:
		if n != 0 {
			problems = append(problems, fmt.Sprintf("operator %s takes no values, not %d", expression.Operator, n))
		}
		return problems
	default:
		return nil
	}
	for _, value := range expression.Values {
		problems = append(problems, validation.IsValidLabelValue(value)...)
	}
	return problems
}
