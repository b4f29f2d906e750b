package compat_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/metalbus/metalbus/integration/internal/lab"
)

// property is a part of the schema that kubectl explain reads.
type property struct {
	Description          string              `json:"description"`
	Type                 string              `json:"type"`
	Enum                 []any               `json:"enum"`
	Required             []string            `json:"required"`
	Properties           map[string]property `json:"properties"`
	Items                *property           `json:"items"`
	AdditionalProperties *property           `json:"additionalProperties"`
}

// inside is the schema whose fields stand below a field, and what leads there.
func (p property) inside() (property, string) {
	switch {
	case p.Items != nil:
		return *p.Items, "[]"
	case p.AdditionalProperties != nil:
		return *p.AdditionalProperties, "map[string]"
	default:
		return p, ""
	}
}

// kinds are the schemas of our kinds as the API shows them.
func kinds(t *testing.T, k *lab.Kube) map[string]property {
	t.Helper()
	var doc struct {
		Components struct {
			Schemas map[string]property `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(raw(t, k, "/openapi/v3/apis/metal3.io/v1alpha1", "application/json"), &doc); err != nil {
		t.Fatal(err)
	}
	found := map[string]property{}
	for name, schema := range doc.Components.Schemas {
		kind, ours := strings.CutPrefix(name, "io.metal3.v1alpha1.")
		if ours && !strings.HasSuffix(kind, "List") {
			found[kind] = schema
		}
	}
	return found
}

// Every field is explained, in a sentence that begins with its name.
func TestEveryFieldIsExplained(t *testing.T) {
	k, _ := guarded(t)
	all := kinds(t, k)
	if len(all) != 13 {
		t.Errorf("%d kinds, want 13", len(all))
	}
	for kind, schema := range all {
		if schema.Description == "" {
			t.Errorf("%s is not explained", kind)
		}
		for _, part := range []string{"spec", "status"} {
			if p, ok := schema.Properties[part]; ok {
				explained(t, kind+"."+part, part, p)
			}
		}
	}
}

func explained(t *testing.T, path, name string, p property) {
	t.Helper()
	inner, _ := p.inside()
	if foreign(inner) {
		return
	}
	if after, ok := strings.CutPrefix(p.Description, name); !ok || !strings.HasPrefix(strings.TrimPrefix(after, ":"), " ") {
		t.Errorf("%s: %q, want a sentence that begins with %q", path, p.Description, name)
	}
	for child, schema := range inner.Properties {
		explained(t, path+"."+child, child, schema)
	}
}

// foreign types are Kubernetes' own, and explained by it.
func foreign(p property) bool {
	_, condition := p.Properties["lastTransitionTime"]
	_, reference := p.Properties["fieldPath"]
	_, taint := p.Properties["timeAdded"]
	_, secret := p.Properties["namespace"]
	return condition || reference || taint || (secret && len(p.Properties) == 2)
}

// What kubectl explain prints reads well: whoever changes a word sees it here.
func TestExplain(t *testing.T) {
	k, _ := guarded(t)
	all := kinds(t, k)
	var text strings.Builder
	for _, path := range []string{
		"BareMetalHost.spec", "BareMetalHost.spec.image", "BareMetalHost.spec.bmc", "BareMetalHost.spec.raid.softwareRAIDVolumes", "BareMetalHost.status",
		"HostFirmwareSettings.spec", "HostFirmwareComponents.spec.updates", "HostClaim.spec.hostSelector", "HostDeployPolicy.spec.hostClaimNamespaces",
		"DataImage.status", "BMCEventSubscription.spec", "PreprovisioningImage.spec", "HostUpdatePolicy.spec", "HardwareData.spec.hardware",
		"FirmwareSchema.spec.schema", "BareMetalSwitch.spec", "HostNetworkAttachment.spec",
	} {
		names := strings.Split(path, ".")
		p := all[names[0]]
		for _, name := range names[1:] {
			outer, _ := p.inside()
			p = outer.Properties[name]
		}
		fmt.Fprintf(&text, "$ kubectl explain %s\n%s\n", path, explain(p))
	}
	golden(t, "explain.txt", text.String())
}

func explain(p property) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", p.Description)
	inner, _ := p.inside()
	for _, name := range slices.Sorted(maps.Keys(inner.Properties)) {
		field := inner.Properties[name]
		core, around := field.inside()
		required := ""
		if slices.Contains(inner.Required, name) {
			required = ", required"
		}
		if len(field.Enum) > 0 {
			required += fmt.Sprintf(", one of %v", field.Enum)
		}
		fmt.Fprintf(&text, "  %s (%s%s%s)\n    %s\n", name, around, core.Type, required, strings.ReplaceAll(field.Description, "\n", "\n    "))
	}
	return text.String()
}
