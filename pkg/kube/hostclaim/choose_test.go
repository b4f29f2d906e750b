package hostclaim

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

func TestPolicies(t *testing.T) {
	t.Parallel()
	labelled := func(name, value string) *v1alpha1.HostClaimNamespaces {
		return &v1alpha1.HostClaimNamespaces{HasLabels: []v1alpha1.NameValuePair{{Name: name, Value: value}}}
	}
	for name, tt := range map[string]struct {
		who  *v1alpha1.HostClaimNamespaces
		want bool
	}{
		"nobody":                      {nil, false},
		"everybody":                   {everybody(), true},
		"by name":                     {&v1alpha1.HostClaimNamespaces{Names: []string{"other", "team"}}, true},
		"by another name":             {&v1alpha1.HostClaimNamespaces{Names: []string{"other"}}, false},
		"by no name at all":           {&v1alpha1.HostClaimNamespaces{Names: []string{}}, false},
		"by expression, anywhere":     {&v1alpha1.HostClaimNamespaces{NameMatches: "ea"}, true},
		"by expression, as a whole":   {&v1alpha1.HostClaimNamespaces{NameMatches: "^ea$"}, false},
		"by something else":           {&v1alpha1.HostClaimNamespaces{NameMatches: "("}, false},
		"by label":                    {labelled("tier", ""), true},
		"by label and value":          {labelled("tier", "gold"), true},
		"by label and another value":  {labelled("tier", "lead"), false},
		"by another label":            {labelled("colour", ""), false},
		"by name, and not by label":   {&v1alpha1.HostClaimNamespaces{Names: []string{"team"}, HasLabels: labelled("tier", "lead").HasLabels}, false},
		"by name and by an exression": {&v1alpha1.HostClaimNamespaces{Names: []string{"team"}, NameMatches: "^t"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := lets(newPolicy("lab", tt.who), "team", map[string]string{"tier": "gold"}); got != tt.want {
				t.Errorf("lets in: %t", got)
			}
		})
	}
	leaving := newPolicy("lab", everybody())
	leaving.DeletionTimestamp = &metav1.Time{}
	if lets(leaving, "team", nil) {
		t.Error("a policy that is being deleted lets in")
	}
}

func TestOpenNamespaces(t *testing.T) {
	t.Parallel()
	policies := []*v1alpha1.HostDeployPolicy{
		newPolicy("b", everybody()), newPolicy("a", everybody()), newPolicy("a", nil), newPolicy("c", nil),
	}
	if diff := cmp.Diff([]string{"a", "b"}, open(newClaim("x"), policies, nil)); diff != "" {
		t.Error(diff)
	}
	in := func(namespace string) []string {
		return open(newClaim("x", func(c *v1alpha1.HostClaim) { c.Spec.HostSelector.InNamespace = namespace }), policies, nil)
	}
	if diff := cmp.Diff([]string{"b"}, in("b")); diff != "" {
		t.Error(diff)
	}
	if got := in("c"); len(got) > 0 {
		t.Errorf("open: %v", got)
	}
}

func TestChoices(t *testing.T) {
	t.Parallel()
	labelled := func(labels ...string) func(*v1alpha1.BareMetalHost) {
		return func(h *v1alpha1.BareMetalHost) {
			h.Labels = map[string]string{}
			for i := 0; i < len(labels); i += 2 {
				h.Labels[labels[i]] = labels[i+1]
			}
		}
	}
	annotated := func(key string) func(*v1alpha1.BareMetalHost) {
		return func(h *v1alpha1.BareMetalHost) { h.Annotations = map[string]string{key: ""} }
	}
	in := func(state v1alpha1.ProvisioningState) func(*v1alpha1.BareMetalHost) {
		return func(h *v1alpha1.BareMetalHost) { h.Status.Provisioning.State = state }
	}
	used := func(h *v1alpha1.BareMetalHost) { h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Metal3Machine"} }
	troubled := func(h *v1alpha1.BareMetalHost) { h.Status.ErrorMessage = "no" }
	leaving := func(h *v1alpha1.BareMetalHost) { h.DeletionTimestamp = &metav1.Time{} }
	elsewhere := func(h *v1alpha1.BareMetalHost) { h.Namespace = "other" }
	selecting := func(s v1alpha1.HostSelector) func(*v1alpha1.HostClaim) {
		return func(c *v1alpha1.HostClaim) { c.Spec.HostSelector = s }
	}
	inDomain := func(c *v1alpha1.HostClaim) { c.Spec.FailureDomain = "z1" }
	const domain = v1alpha1.FailureDomainLabelName
	for name, tt := range map[string]struct {
		claim func(*v1alpha1.HostClaim)
		hosts []*v1alpha1.BareMetalHost
		want  []string
		why   string
	}{
		"free hosts": {hosts: []*v1alpha1.BareMetalHost{newHost("a"), newHost("b", in("ready")), newHost("c", elsewhere)}, want: []string{"a", "b"}},
		"hosts that are not free": {
			hosts: []*v1alpha1.BareMetalHost{
				newHost("a", used), newHost("b", used), newHost("c", leaving), newHost("d", annotated("baremetalhost.metal3.io/paused")),
				newHost("e", in("provisioned")), newHost("f", troubled), newHost("g", annotated("clusterctl.cluster.x-k8s.io/delete-for-move")),
			},
			why: "of the hosts that fit in lab: 2 in use, 2 being deleted, 1 paused, 1 not available, 1 in trouble. The claim waits for one.",
		},
		"no host at all": {why: "no host fits the selector in lab."},
		"by label": {
			claim: selecting(v1alpha1.HostSelector{MatchLabels: map[string]string{"rack": "7"}}),
			hosts: []*v1alpha1.BareMetalHost{newHost("a", labelled("rack", "7")), newHost("b", labelled("rack", "8")), newHost("c")}, want: []string{"a"},
		},
		"by expressions, in any case": {
			claim: selecting(v1alpha1.HostSelector{MatchExpressions: []v1alpha1.HostSelectorRequirement{
				{Key: "rack", Operator: "In", Values: []string{"7", "8"}}, {Key: "gpu", Operator: "!"}, {Key: "tier", Operator: "NotIn", Values: []string{"lead"}},
			}}),
			hosts: []*v1alpha1.BareMetalHost{
				newHost("a", labelled("rack", "7")), newHost("b", labelled("rack", "8", "gpu", "")), newHost("c", labelled("rack", "8", "tier", "lead")), newHost("d"),
			},
			want: []string{"a"},
		},
		"of the failure domain": {
			claim: inDomain, hosts: []*v1alpha1.BareMetalHost{newHost("a"), newHost("b", labelled(domain, "z1")), newHost("c", labelled(domain, "z2"))}, want: []string{"b"},
		},
		"of another failure domain if there is none": {
			claim: inDomain, hosts: []*v1alpha1.BareMetalHost{newHost("a", labelled(domain, "z2")), newHost("b", labelled(domain, "z1"), used)}, want: []string{"a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := newClaim("x")
			if tt.claim != nil {
				tt.claim(claim)
			}
			got, err := choices(claim, []string{"lab"}, tt.hosts)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, h := range got.candidates {
				names = append(names, h.Name)
			}
			if diff := cmp.Diff(tt.want, names); diff != "" {
				t.Errorf("candidates (-want +got)\n%s", diff)
			}
			if tt.why != "" && got.why != "No available host found: "+tt.why {
				t.Errorf("why: %s", got.why)
			}
		})
	}
}

func TestWhyNoNamespaceIsOpen(t *testing.T) {
	t.Parallel()
	for only, says := range map[string]string{
		"": "no namespace has a HostDeployPolicy that lets claims of namespace team in", "lab": "namespace lab has no HostDeployPolicy that lets claims of namespace team in",
	} {
		claim := newClaim("x", func(c *v1alpha1.HostClaim) { c.Spec.HostSelector.InNamespace = only })
		got, err := choices(claim, nil, []*v1alpha1.BareMetalHost{newHost("a")})
		if err != nil || len(got.candidates) > 0 || !strings.Contains(got.why, says) {
			t.Errorf("%v %s %v", got.candidates, got.why, err)
		}
	}
}
