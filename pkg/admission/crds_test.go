package admission_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
)

// schemas reads the schema of each kind out of the generated definitions.
func schemas(t *testing.T) map[string]apiextensionsv1.JSONSchemaProps {
	t.Helper()
	files, err := filepath.Glob("../../deploy/crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions in deploy/crds: %v", err)
	}
	kinds := map[string]apiextensionsv1.JSONSchemaProps{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		kinds[crd.Spec.Names.Kind] = *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	}
	return kinds
}

// rulesOf collects the messages of all rules in a schema.
func rulesOf(schema apiextensionsv1.JSONSchemaProps) []string {
	var messages []string
	for _, r := range schema.XValidations {
		messages = append(messages, r.Message)
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		messages = append(messages, rulesOf(schema.Properties[name])...)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		messages = append(messages, rulesOf(*schema.Items.Schema)...)
	}
	return messages
}

// Some rules stand in the definitions too, for installs without the webhook.
// They must say what the webhook and the controllers say.
func TestDefinitionsSayTheSame(t *testing.T) {
	t.Parallel()
	two := v1alpha1.RAIDConfig{
		HardwareRAIDVolumes: []v1alpha1.HardwareRAIDVolume{{Level: "1"}},
		SoftwareRAIDVolumes: []v1alpha1.SoftwareRAIDVolume{{Level: "1"}},
	}
	one := func(change func(*host)) field.ErrorList { return admission.ValidateHost(newHost(change)) }
	change := func(change func(*host)) field.ErrorList {
		return admission.ValidateHostUpdate(newHost(), newHost(change))
	}
	subscription := func(host, destination string) *v1alpha1.BMCEventSubscription {
		return &v1alpha1.BMCEventSubscription{Spec: v1alpha1.BMCEventSubscriptionSpec{HostName: host, Destination: destination}}
	}
	said := []field.ErrorList{
		one(func(h *host) { h.Spec.Firmware = &v1alpha1.FirmwareConfig{} }),
		one(func(h *host) { h.Spec.DisablePowerOff, h.Spec.Online = true, false }),
		one(hints(v1alpha1.RootDeviceHints{DeviceName: "sda"})),
		one(hints(v1alpha1.RootDeviceHints{DeviceName: "/dev/disk/by-id/x"})),
		one(raid(two)),
		one(nics(v1alpha1.NetworkInterface{})),
		one(nics(v1alpha1.NetworkInterface{Name: "eth0", MACAddress: "00:00:5e:00:53:02"})),
		change(bmc("")),
		change(bootMAC("")),
		change(func(h *host) { h.Spec.ExternallyProvisioned = true }),
		admission.ValidateSubscription(subscription("", "https://a/")),
		admission.ValidateSubscription(subscription("a", "")),
		admission.ValidateSubscriptionUpdate(subscription("a", "https://a/"), subscription("a", "https://b/")),
		admission.ValidateAttachment(attachment("access", "1")),
	}
	var matched []string
	rules := map[string]bool{}
	for _, schema := range schemas(t) {
		for _, message := range rulesOf(schema) {
			rules[message] = true
			if slices.ContainsFunc(said, func(errs field.ErrorList) bool {
				return len(errs) == 1 && strings.Contains(errs[0].Detail, message)
			}) {
				matched = append(matched, message)
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(rules)), slices.Sorted(slices.Values(matched))); diff != "" {
		t.Errorf("messages in deploy/crds, and those that pkg/admission has too (-want +got)\n%s", diff)
	}
	if len(rules) != len(said) {
		t.Errorf("%d rules in deploy/crds, %d provoked here", len(rules), len(said))
	}
}
