package admission_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
)

type claim = v1alpha1.HostClaim

func newClaim(changes ...func(*claim)) *claim {
	c := &claim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "c"}}
	for _, change := range changes {
		change(c)
	}
	return c
}

func labels(key, value string) func(*claim) {
	return func(c *claim) { c.Spec.HostSelector.MatchLabels = map[string]string{key: value} }
}

func expressions(e ...v1alpha1.HostSelectorRequirement) func(*claim) {
	return func(c *claim) { c.Spec.HostSelector.MatchExpressions = e }
}

func rule(key string, operator selection.Operator, values ...string) v1alpha1.HostSelectorRequirement {
	return v1alpha1.HostSelectorRequirement{Key: key, Operator: operator, Values: values}
}

func TestValidateHostClaim(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64)
	const values = "spec.hostSelector.matchExpressions[1].values"
	good := rule("rack", "exists")
	tests := map[string]struct {
		good, bad *claim
		want      finding
	}{
		"a label's key": {
			good: newClaim(labels("example.com/rack", "7")),
			bad:  newClaim(labels("no blanks", "7")),
			want: finding{invalid, "spec.hostSelector.matchLabels[no blanks]", "no blanks=7: name part must consist of alphanumeric"},
		},
		"a label's value": {
			good: newClaim(labels("rack", "")),
			bad:  newClaim(labels("rack", long)),
			want: finding{invalid, "spec.hostSelector.matchLabels[rack]", "rack=" + long + ": must be no more than 63"},
		},
		"an expression's key": {
			good: newClaim(expressions(good)),
			bad:  newClaim(expressions(rule("no blanks", "exists"))),
			want: finding{invalid, "spec.hostSelector.matchExpressions[0].key", "matchExpr 1: name part must consist of"},
		},
		"an operator": {
			good: newClaim(expressions(good, rule("rack", "!"))),
			bad:  newClaim(expressions(good, rule("rack", "In", "7"))),
			want: finding{invalid, "spec.hostSelector.matchExpressions[1].operator", "matchExpr 2: invalid operation In in match expression on label key rack"},
		},
		"= takes one value": {
			good: newClaim(expressions(good, rule("rack", "=", "7"))),
			bad:  newClaim(expressions(good, rule("rack", "=", "7", "8"))),
			want: finding{invalid, values, "matchExpr 2: operator = takes exactly one value, not 2"},
		},
		"== takes one value": {
			good: newClaim(expressions(good, rule("rack", "==", "7"))),
			bad:  newClaim(expressions(good, rule("rack", "=="))),
			want: finding{invalid, values, "matchExpr 2: operator == takes exactly one value, not 0"},
		},
		"!= takes one value": {
			good: newClaim(expressions(good, rule("rack", "!=", "7"))),
			bad:  newClaim(expressions(good, rule("rack", "!="))),
			want: finding{invalid, values, "matchExpr 2: operator != takes exactly one value, not 0"},
		},
		"in takes values": {
			good: newClaim(expressions(good, rule("rack", "in", "7", "8"))),
			bad:  newClaim(expressions(good, rule("rack", "in"))),
			want: finding{invalid, values, "matchExpr 2: operator in takes at least one value"},
		},
		"notin takes values that could be a label's": {
			good: newClaim(expressions(good, rule("rack", "notin", "7"))),
			bad:  newClaim(expressions(good, rule("rack", "notin", "7", "no blanks"))),
			want: finding{invalid, values, "matchExpr 2: a valid label must be"},
		},
		"exists takes no value": {
			good: newClaim(expressions(good)),
			bad:  newClaim(expressions(good, rule("rack", "exists", "7"))),
			want: finding{invalid, values, "matchExpr 2: operator exists takes no values, not 1"},
		},
		"! takes no value": {
			good: newClaim(expressions(rule("rack", "!"))),
			bad:  newClaim(expressions(good, rule("rack", "!", ""))),
			want: finding{invalid, values, "matchExpr 2: operator ! takes no values, not 1"},
		},
		"a reboot": {
			good: newClaim(func(c *claim) { c.Annotations = map[string]string{"reboot.metal3.io": `{"mode":"soft"}`} }),
			bad:  newClaim(func(c *claim) { c.Annotations = map[string]string{"reboot.metal3.io": "now"} }),
			want: finding{invalid, "metadata.annotations[reboot.metal3.io]", "failed to unmarshal the data from the reboot.metal3.io annotation"},
		},
		"an image": {
			good: newClaim(func(c *claim) { c.Spec.Image = &v1alpha1.Image{URL: "http://192.0.2.80/os", Checksum: sum} }),
			bad:  newClaim(func(c *claim) { c.Spec.Image = &v1alpha1.Image{URL: "http://192.0.2.80/os"} }),
			want: finding{invalid, "spec.image.checksum", "checksum is required for normal images"},
		},
		"a Secret of another namespace": {
			good: newClaim(func(c *claim) { c.Spec.UserData, c.Spec.MetaData = secret("team"), secret("") }),
			bad:  newClaim(func(c *claim) { c.Spec.NetworkData = secret("kube-system") }),
			want: finding{forbidden, "spec.networkData.namespace", "networkData: cross-namespace Secret references are not allowed"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, admission.ValidateHostClaim(tt.good), nil)
			check(t, admission.ValidateHostClaim(tt.bad), &tt.want)
			check(t, admission.ValidateHostClaimUpdate(tt.good, tt.bad), &tt.want)
			check(t, admission.ValidateHostClaimUpdate(tt.bad, tt.bad.DeepCopy()), nil)
		})
	}
}
