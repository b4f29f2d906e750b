package chart_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/integration/internal/programs"
)

var shared lab.Lab

// patience is for what happens in its own time.
const patience = time.Minute

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

func TestHelmFindsNothingToComplainOf(t *testing.T) {
	helm(t, "lint", "--strict", folder(t))
}

// Every object passes what the API checks when it is really made, unknown
// fields included.
func TestAKubernetesAPITakesEveryObject(t *testing.T) {
	kube := shared.Kube(t)
	defineCertManager(t, kube)
	strict := client.WithFieldValidation(kube.Client, metav1.FieldValidationStrict)
	for name, values := range map[string][]string{
		"as it is":                     nil,
		"for some namespaces only":     {"watchNamespaces={watched-a,watched-b}"},
		"with a NATS of the user's":    {"nats.enabled=false", "bus.urls={nats://nats.example:4222}", "bus.credentialsSecret=creds", "bus.caSecret=ca"},
		"small":                        {"nats.replicas=1", "bus.replicas=1", "services.registrar.replicas=1"},
		"with settings for everything": {"image.tag=v1", "traceEndpoint=http://collector:4318", "nats.storageClassName=fast", "nodeSelector.zone=a"},
		"without a webhook":            {"webhook.mode=none"},
		"with cert-manager":            {"webhook.mode=certManager", "webhook.guardHostDeletion=true"},
		"with a guard of used hosts":   {"webhook.guardHostDeletion=true", "watchNamespaces={watched-a}"},
		"with switches":                {"switches.enabled=true"},
	} {
		t.Run(name, func(t *testing.T) {
			release := kube.Namespace(t)
			objects := render(t, release, values)
			if len(objects) == 0 {
				t.Fatal("the chart makes nothing")
			}
			for _, object := range objects {
				place(t, kube, object)
				if err := strict.Create(t.Context(), object, client.DryRunAll); err != nil {
					t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
				}
			}
		})
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for name, values := range map[string]string{
		"a level of logs that is none": "logLevel=LOUD",
		"a cluster of NATS of two":     "nats.replicas=2",
		"a webhook of another kind":    "webhook.mode=sometimes",
		"switches without a Secret":    "switches.configsSecret=",
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := run(t, "template", "release", folder(t), "--set", values); err == nil {
				t.Errorf("helm takes %s:\n%.500s", values, out)
			}
		})
	}
}

// defineCertManager has the API know cert-manager's kinds, by their names only.
func defineCertManager(t *testing.T, kube *lab.Kube) {
	t.Helper()
	for kind, plural := range map[string]string{"Issuer": "issuers", "Certificate": "certificates"} {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + ".cert-manager.io"}}
		crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "cert-manager.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
				},
			}},
		}
		if err := kube.Client.Create(t.Context(), crd); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
		lab.Eventually(t, patience, "know the kind "+kind, func() error {
			if err := kube.Client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
				return err
			}
			for _, c := range crd.Status.Conditions {
				if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
					return nil
				}
			}
			return errors.New("it is not established")
		})
	}
}

// place makes the namespace of an object, since a dry run of it makes none.
func place(t *testing.T, kube *lab.Kube, object *unstructured.Unstructured) {
	t.Helper()
	if object.GetNamespace() == "" {
		return
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.GetNamespace()}}
	if err := kube.Client.Create(t.Context(), namespace); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
}

// render is every object that an installation makes. Those that have a
// namespace and do not name it are put into the release's.
func render(t *testing.T, namespace string, values []string) []*unstructured.Unstructured {
	t.Helper()
	args := []string{"template", "release", folder(t), "--namespace", namespace}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(helm(t, args...)), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if object.GetNamespace() == "" && !strings.HasPrefix(object.GetKind(), "Cluster") {
			object.SetNamespace(namespace)
		}
		objects = append(objects, object)
	}
}

func folder(t *testing.T) string {
	t.Helper()
	root, err := programs.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "charts", "metalbus")
}

func helm(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := run(t, args...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", args[0], err, out)
	}
	return out
}

// run gives what helm wrote: its output, or its complaints if it failed.
func run(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	program, err := programs.Helm(t.Context(), shared.Program(""))
	if err != nil {
		t.Fatal(fmt.Errorf("build helm: %w", err))
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return complaints.Bytes(), err
	}
	return out, nil
}
