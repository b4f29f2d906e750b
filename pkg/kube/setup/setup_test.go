package setup_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube/setup"
)

const manifests = `
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {name: h1, namespace: metal}
spec: {online: true}
---
apiVersion: v1
kind: Secret
metadata: {name: h1-bmc, namespace: metal}
stringData: {username: admin}
---
---
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {name: h2, namespace: metal}
spec: {online: true}
`

func TestWhatIsThereStaysAsItIs(t *testing.T) {
	there := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "metal", Name: "h1"}}
	there.Spec.Online = false
	var order []string
	c := setup.New(fake.NewClientBuilder().WithScheme(setup.Scheme()).WithObjects(there).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetName() != "h2" { // the two hosts may come in any order
				order = append(order, o.GetName())
			}
			return c.Create(ctx, o, opts...)
		},
	}).Build())

	var seen atomic.Int64
	made, err := c.CreateMissing(t.Context(), []byte(manifests), func(int) { seen.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	if made != 2 || seen.Load() != 3 {
		t.Errorf("made %d and dealt with %d, want 2 and 3", made, seen.Load())
	}
	if diff := cmp.Diff([]string{"h1-bmc", "h1"}, order); diff != "" {
		t.Errorf("the Secret comes first:\n%s", diff)
	}
	hosts, err := c.Hosts(t.Context(), "metal")
	if err != nil {
		t.Fatal(err)
	}
	online := map[string]bool{}
	for _, h := range hosts {
		online[h.Name] = h.Spec.Online
	}
	if diff := cmp.Diff(map[string]bool{"h1": false, "h2": true}, online); diff != "" {
		t.Error(diff)
	}
}

func TestWhatCannotBeMadeIsNamed(t *testing.T) {
	tests := map[string]struct {
		manifests string
		says      string
	}{
		"YAML that is none":              {"a: [", "read the manifests"},
		"an object that the API refuses": {manifests, "create Secret metal/h1-bmc: quota"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := setup.New(fake.NewClientBuilder().WithScheme(setup.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					return errors.New("quota")
				},
			}).Build())
			if _, err := c.CreateMissing(t.Context(), []byte(tc.manifests), func(int) {}); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want it to say %q", err, tc.says)
			}
		})
	}
}

func TestKindsAreWaitedFor(t *testing.T) {
	const kind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: baremetalhosts.metal3.io}
spec:
  group: metal3.io
  names: {kind: BareMetalHost, listKind: BareMetalHostList, plural: baremetalhosts}
  scope: Namespaced
  versions:
  - {name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`
	looks := 0
	c := setup.New(fake.NewClientBuilder().WithScheme(setup.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return nil
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			crds, ok := l.(*apiextensionsv1.CustomResourceDefinitionList)
			if !ok {
				return c.List(ctx, l, opts...)
			}
			looks++
			crds.Items = []apiextensionsv1.CustomResourceDefinition{crd(t, looks > 2)}
			return nil
		},
	}).Build())
	if n, err := c.ApplyCRDs(t.Context(), fstest.MapFS{"a.yaml": {Data: []byte(kind)}}); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if looks != 3 {
		t.Errorf("looked %d times, want 3", looks)
	}
	if _, err := c.ApplyCRDs(t.Context(), fstest.MapFS{}); err == nil {
		t.Error("an empty folder is an error")
	}
}

// crd is the kind of hosts.
func crd(t *testing.T, isEstablished bool) apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var c apiextensionsv1.CustomResourceDefinition
	c.Name = "baremetalhosts.metal3.io"
	c.Spec.Group, c.Spec.Names.ListKind = "metal3.io", "BareMetalHostList"
	c.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Storage: true}}
	if isEstablished {
		c.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	}
	return c
}

func TestNamespaceIsMadeOnce(t *testing.T) {
	k := fake.NewClientBuilder().WithScheme(setup.Scheme()).Build()
	c := setup.New(k)
	for range 2 {
		if err := c.EnsureNamespace(t.Context(), "metal"); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Get(t.Context(), client.ObjectKey{Name: "metal"}, &corev1.Namespace{}); err != nil {
		t.Error(err)
	}
}

func TestHostThatIsNotThere(t *testing.T) {
	h, err := setup.New(fake.NewClientBuilder().WithScheme(setup.Scheme()).Build()).Host(t.Context(), "metal", "h1")
	if h != nil || err != nil {
		t.Errorf("got %v and %v", h, err)
	}
}
