package compat_test

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/pkg/admission"
)

// crossings is how many hosts are made of parts of others.
const crossings = 500

// Hosts that are put together from parts of good and bad ones, in any mixture:
// whatever the API says of them is a clear yes or no, and what it takes is what
// the rules have nothing against.
func TestCrossedHosts(t *testing.T) {
	k, _ := guarded(t)
	namespace := k.Namespace(t)
	parents := parents(t)
	taken := 0
	for seed := range int64(crossings) {
		child := cross(rand.New(rand.NewSource(seed)), parents)
		child.SetNamespace(namespace)
		if child.GetName() == "" {
			child.SetGenerateName("one-")
		}
		asked := &host{}
		if err := json.Unmarshal(encode(t, child.Object), asked); err != nil {
			t.Fatal(err)
		}
		findings := admission.ValidateHost(asked)
		err := k.Client.Create(t.Context(), child, client.DryRunAll)
		switch {
		case err == nil && len(findings) > 0:
			t.Errorf("seed %d is taken in spite of %v", seed, findings.ToAggregate())
		case err == nil:
			taken++
		case !isClear(err):
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	t.Logf("%d of %d are taken", taken, crossings)
	if taken == 0 || taken == crossings {
		t.Errorf("%d of %d are taken: the hosts are no test of the rules", taken, crossings)
	}
}

// isClear reports whether an error says of each fault in which field it is.
func isClear(err error) bool {
	var refused *apierrors.StatusError
	if !apierrors.IsInvalid(err) || !errors.As(err, &refused) || refused.ErrStatus.Details == nil {
		return false
	}
	causes := refused.ErrStatus.Details.Causes
	return len(causes) > 0 && !slices.ContainsFunc(causes, func(c metav1.StatusCause) bool { return c.Message == "" })
}

// parents are the hosts of all rules, good and bad.
func parents(t *testing.T) []map[string]any {
	t.Helper()
	var list []map[string]any
	for _, rules := range []map[string]rule{addressRules(), driverRules(), diskRules(), imageRules(), annotationRules(), otherRules()} {
		names := slices.Sorted(maps.Keys(rules))
		for _, name := range names {
			for _, o := range []client.Object{rules[name].good, rules[name].bad} {
				object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, object)
			}
		}
	}
	return list
}

// cross makes a host of parts of three.
func cross(r *rand.Rand, parents []map[string]any) *unstructured.Unstructured {
	child := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost"}}
	for _, part := range []string{"metadata", "spec"} {
		mixed := map[string]any{}
		for range 3 {
			parent, _ := parents[r.Intn(len(parents))][part].(map[string]any)
			for _, field := range slices.Sorted(maps.Keys(parent)) {
				if _, there := mixed[field]; !there || r.Intn(2) == 0 {
					mixed[field] = runtime.DeepCopyJSONValue(parent[field])
				}
			}
		}
		child.Object[part] = mixed
	}
	child.Object["spec"].(map[string]any)["online"] = r.Intn(4) > 0
	return child
}
