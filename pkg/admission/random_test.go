package admission_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
)

// Whatever an object holds, as long as its types are right: no rule panics,
// none changes the object, and it comes back from JSON as it went there.
func TestRandomObjects(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for kind, schema := range schemas(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				before := decode(t, scheme, kind, objectOf(schema).Draw(t, "before"))
				after := decode(t, scheme, kind, objectOf(schema).Draw(t, "after"))
				copied := after.DeepCopyObject()
				validate(before, after)
				if diff := cmp.Diff(copied, after); diff != "" {
					t.Fatalf("validation changed the object (-before +after)\n%s", diff)
				}
				text := encode(t, after)
				var tree map[string]any
				if err := json.Unmarshal(text, &tree); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(text), string(encode(t, decode(t, scheme, kind, tree)))); diff != "" {
					t.Fatalf("lost on the way (-want +got)\n%s", diff)
				}
			})
		})
	}
}

func decode(t *rapid.T, scheme *runtime.Scheme, kind string, tree map[string]any) runtime.Object {
	object, err := scheme.New(v1alpha1.GroupVersion.WithKind(kind))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return object
}

func encode(t *rapid.T, object runtime.Object) []byte {
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// validate asks every rule that there is for the kind.
func validate(before, after runtime.Object) {
	switch after := after.(type) {
	case *v1alpha1.BareMetalHost:
		old := before.(*v1alpha1.BareMetalHost)
		admission.ValidateHost(after)
		admission.ValidateHostUpdate(old, after)
		admission.ValidateHostDeletion(after)
		admission.HostWarnings(after)
		admission.ConflictKeys(after)
		admission.ConflictWarnings(after, []v1alpha1.BareMetalHost{*old})
		admission.AttachmentUsers("lab", "a", []v1alpha1.BareMetalHost{*old, *after})
	case *v1alpha1.BMCEventSubscription:
		admission.ValidateSubscription(after)
		admission.ValidateSubscriptionUpdate(before.(*v1alpha1.BMCEventSubscription), after)
	case *v1alpha1.DataImage:
		admission.ValidateDataImageUpdate(before.(*v1alpha1.DataImage), after)
	case *v1alpha1.HostFirmwareComponents:
		_ = after.ValidateHostFirmwareComponents()
		admission.ValidateFirmwareComponentsUpdate(before.(*v1alpha1.HostFirmwareComponents), after)
	case *v1alpha1.HostClaim:
		admission.ValidateHostClaimUpdate(before.(*v1alpha1.HostClaim), after)
	case *v1alpha1.HostNetworkAttachment:
		admission.ValidateAttachmentUpdate(before.(*v1alpha1.HostNetworkAttachment), after, []string{"lab/a[eth0]"})
	case *v1alpha1.BareMetalSwitch:
		admission.ValidateSwitchUpdate(before.(*v1alpha1.BareMetalSwitch), after)
	case *v1alpha1.HostDeployPolicy:
		admission.PolicyWarnings(after)
	case *v1alpha1.FirmwareSchema:
		validateSettings(after)
	}
}

func validateSettings(schema *v1alpha1.FirmwareSchema) {
	var settings v1alpha1.HostFirmwareSettings
	_ = json.Unmarshal([]byte(`{"spec":{"settings":{"a":1,"":"x"}}}`), &settings)
	for name := range schema.Spec.Schema {
		for _, value := range settings.Spec.Settings {
			_ = schema.ValidateSetting(name, value)
		}
	}
}

// objectOf draws objects of a kind, with metadata that rules look at.
func objectOf(schema apiextensionsv1.JSONSchemaProps) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		tree := fieldsOf(t, schema)
		tree["metadata"] = map[string]any{
			"namespace":   text().Draw(t, "namespace"),
			"name":        text().Draw(t, "name"),
			"annotations": rapid.MapOf(text(), text()).Draw(t, "annotations"),
		}
		return tree
	})
}

// valueOf draws a value of the schema's type. Enumerations, patterns and bounds
// are kept to now and then only.
func valueOf(t *rapid.T, schema apiextensionsv1.JSONSchemaProps) any {
	switch {
	case schema.Nullable && rapid.IntRange(0, 3).Draw(t, "null") == 0:
		return nil
	case schema.XIntOrString:
		return rapid.OneOf(rapid.Int32().AsAny(), text().AsAny()).Draw(t, "intOrString")
	case schema.Format == "date-time":
		return "2026-01-02T03:04:05Z"
	}
	switch schema.Type {
	case "object":
		return fieldsOf(t, schema)
	case "array":
		items := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			items = append(items, valueOf(t, *schema.Items.Schema))
		}
		return items
	case "boolean":
		return rapid.Bool().Draw(t, "boolean")
	case "integer":
		return rapid.Int32Range(-2, 5000).Draw(t, "integer")
	case "number":
		return rapid.Float32Range(0, 5000).Draw(t, "number")
	default:
		return stringOf(t, schema)
	}
}

func fieldsOf(t *rapid.T, schema apiextensionsv1.JSONSchemaProps) map[string]any {
	tree := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if slices.Contains(schema.Required, name) || rapid.Bool().Draw(t, "has "+name) {
			tree[name] = valueOf(t, schema.Properties[name])
		}
	}
	if more := schema.AdditionalProperties; more != nil {
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			tree[text().Draw(t, "key")] = valueOf(t, *more.Schema)
		}
	}
	return tree
}

func stringOf(t *rapid.T, schema apiextensionsv1.JSONSchemaProps) string {
	if len(schema.Enum) == 0 || rapid.IntRange(0, 3).Draw(t, "free") == 0 {
		return text().Draw(t, "string")
	}
	var value string
	if err := json.Unmarshal(rapid.SampledFrom(schema.Enum).Draw(t, "enum").Raw, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// text draws strings that rules care for, and any other.
func text() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom([]string{
		"", "lab", "host-a", "eth0", "00:00:5e:00:53:01", "ipmi://[2001:db8::10]:6230", "redfish://192.0.2.10/redfish/v1/Managers/1",
		"http://u:p@192.0.2.80/%zz", "oci://reg.example/os", "/dev/sda", "1-4094", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
		"baremetalhost.metal3.io/status", "baremetalhost.metal3.io/detached", "reboot.metal3.io", "reboot.metal3.io/a",
		"inspect.metal3.io", "inspect.metal3.io/hardwaredetails", "disabled", `{"mode":"hard"}`, `{"deleteAction":1}`, `{"nics":[{}]}`, "null", "[]",
	}), rapid.String())
}
