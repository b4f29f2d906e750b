package chart_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/metalbus/metalbus/integration/internal/programs"
)

// The chart and deploy/rbac are two ways to install the same, so they grant the
// same. What deploy grants is tried by the tests of the projector.
func TestTheChartGrantsWhatDeployGrants(t *testing.T) {
	everything := render(t, "metalbus-system", []string{"switches.enabled=true"})
	scoped := render(t, "metalbus-system", []string{"watchNamespaces={a}"})
	switches := deployed(t, "rbac/switches.yaml", "metalbus-switches")
	for name, tt := range map[string]struct{ chart, deploy []rbacv1.PolicyRule }{
		"the projector":                   {rulesIn(t, everything, "ClusterRole", "metalbus-system-release-projector"), append(deployed(t, "rbac/cluster.yaml", "metalbus-projector"), switches...)},
		"the projector in one namespace":  {rulesIn(t, scoped, "Role", "release-projector"), deployed(t, "rbac/namespaced.yaml", "metalbus-projector")},
		"a stage":                         {rulesIn(t, everything, "ClusterRole", "metalbus-system-release-registrar"), deployed(t, "rbac/cluster.yaml", "metalbus-secrets")},
		"a stage in one namespace":        {rulesIn(t, scoped, "Role", "release-inspector"), deployed(t, "rbac/namespaced.yaml", "metalbus-secrets")},
		"the Lease":                       {rulesIn(t, everything, "Role", "release-leader-election"), deployed(t, "rbac/accounts.yaml", "metalbus-leader-election")},
		"the webhook's configuration":     {rulesIn(t, everything, "ClusterRole", "metalbus-system-release-webhook"), deployed(t, "webhook/self-made.yaml", "metalbus-webhook")},
		"the webhook's configuration too": {rulesIn(t, scoped, "ClusterRole", "metalbus-system-release-webhook"), deployed(t, "webhook/self-made.yaml", "metalbus-webhook")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.deploy, tt.chart); diff != "" || len(tt.chart) == 0 {
				t.Errorf("%d rules (-deploy +chart)\n%s", len(tt.chart), diff)
			}
		})
	}
}

// rulesIn are the rules of the first role of a name.
func rulesIn(t *testing.T, objects []*unstructured.Unstructured, kind, name string) []rbacv1.PolicyRule {
	t.Helper()
	for _, o := range objects {
		if o.GetName() != name || (kind != "" && o.GetKind() != kind) || (o.GetKind() != "Role" && o.GetKind() != "ClusterRole") {
			continue
		}
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
			t.Fatal(err)
		}
		return role.Rules
	}
	t.Errorf("there is no %s %s", kind, name)
	return nil
}

// deployed are the rules of a role in a file below deploy.
func deployed(t *testing.T, file, role string) []rbacv1.PolicyRule {
	t.Helper()
	root, err := programs.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy", filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	return rulesIn(t, decode(t, text), "", role)
}

// decode reads the objects of a file of several documents.
func decode(t *testing.T, text []byte) []*unstructured.Unstructured {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			t.Fatal(err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}
