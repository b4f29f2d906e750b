package webhook

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// manifest reads the objects of a file in deploy/webhook, by kind.
func manifest(t *testing.T, name string) map[string]map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "webhook", name))
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]map[string]any{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var o unstructured.Unstructured
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		objects[o.GetKind()] = o.Object
	}
}

func as[T any](t *testing.T, object map[string]any) *T {
	t.Helper()
	o := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, o, true); err != nil {
		t.Fatal(err)
	}
	return o
}

// What is installed asks exactly what is served.
func TestManifestsAreWhatIsServed(t *testing.T) {
	t.Parallel()
	all, guard := Configurations(Door{Service: defaultService, Namespace: "metalbus-system"})
	for file, want := range map[string]*admissionregistrationv1.ValidatingWebhookConfiguration{
		"self-made.yaml": all, "cert-manager.yaml": all, "guard-deletion.yaml": guard,
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			got := as[admissionregistrationv1.ValidatingWebhookConfiguration](t, manifest(t, file)["ValidatingWebhookConfiguration"])
			if got.Name != want.Name {
				t.Errorf("name %q, want %q", got.Name, want.Name)
			}
			if diff := cmp.Diff(want.Webhooks, got.Webhooks); diff != "" {
				t.Errorf("(-served +installed)\n%s", diff)
			}
		})
	}
}

func TestServiceLeadsToTheWebhook(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"self-made.yaml", "cert-manager.yaml"} {
		service := as[corev1.Service](t, manifest(t, file)["Service"])
		if service.Name != defaultService || service.Namespace != "metalbus-system" || service.Spec.Ports[0].TargetPort.IntValue() != 9443 {
			t.Errorf("%s: the Service %s/%s leads to %v", file, service.Namespace, service.Name, service.Spec.Ports)
		}
	}
}

func TestCertManagerKnowsTheNames(t *testing.T) {
	t.Parallel()
	names, _, err := unstructured.NestedStringSlice(manifest(t, "cert-manager.yaml")["Certificate"], "spec", "dnsNames")
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Service: defaultService, Namespace: "metalbus-system"}
	if diff := cmp.Diff(cfg.hosts(), names); diff != "" {
		t.Error(diff)
	}
}
