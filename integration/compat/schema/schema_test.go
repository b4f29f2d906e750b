package schema_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/deploy/crds"
	"github.com/metalbus/metalbus/integration/compat/schema"
)

func TestEveryDifferenceHasAReason(t *testing.T) {
	t.Parallel()
	theirs, err := schema.Upstream()
	if err != nil {
		t.Fatal(err)
	}
	ours, err := schema.Ours(crds.FS)
	if err != nil {
		t.Fatal(err)
	}
	known, err := schema.Differences()
	if err != nil {
		t.Fatal(err)
	}
	unknown, stale := schema.Check(schema.Compare(theirs, ours), known)
	for _, d := range unknown {
		t.Errorf("not in differences.yaml: %s", d)
	}
	for _, k := range stale {
		t.Errorf("in differences.yaml without a reason, or no longer so: %s", k.Difference)
	}
	if n := len(theirs); n < 400 {
		t.Errorf("only %d places are described", n)
	}
}

const definition = `
spec:
  group: metal3.io
  names: {kind: DataImage, plural: dataimages, shortNames: [di]}
  scope: Namespaced
  versions:
  - subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: SPEC
          status:
            type: object
            properties:
              lastReconciled: {type: string, format: date-time}
              attachedImage: {type: object, required: [url], properties: {url: {type: string}}}
              error: {type: object, required: [count, message], properties: {count: {type: integer}, message: {type: string}}}
`

// Whatever is changed in a definition is seen.
func TestDifferencesAreSeen(t *testing.T) {
	t.Parallel()
	theirs, err := schema.Upstream()
	if err != nil {
		t.Fatal(err)
	}
	for place := range theirs {
		if !strings.HasPrefix(place, "DataImage") {
			delete(theirs, place)
		}
	}
	alias := "DataImage: short names: theirs nothing, ours [di]"
	for name, tt := range map[string]struct {
		spec string
		want []string
	}{
		"nothing else":           {`{type: object, required: [url], properties: {url: {type: string}}}`, nil},
		"a field is missing":     {`{type: object}`, []string{"DataImage spec.url: is there: theirs yes, ours nothing"}},
		"a field more":           {`{type: object, required: [url], properties: {url: {type: string}, more: {type: string}}}`, []string{"DataImage spec.more: is there: theirs nothing, ours yes"}},
		"another type":           {`{type: object, required: [url], properties: {url: {type: integer}}}`, []string{"DataImage spec.url: type: theirs string, ours integer"}},
		"no longer required":     {`{type: object, properties: {url: {type: string}}}`, []string{"DataImage spec.url: required: theirs true, ours nothing"}},
		"a pattern":              {`{type: object, required: [url], properties: {url: {type: string, pattern: x}}}`, []string{"DataImage spec.url: pattern: theirs nothing, ours x"}},
		"a default":              {`{type: object, required: [url], properties: {url: {type: string, default: x}}}`, []string{`DataImage spec.url: default: theirs nothing, ours "x"`}},
		"values that are listed": {`{type: object, required: [url], properties: {url: {type: string, enum: [b, a]}}}`, []string{`DataImage spec.url: one of: theirs nothing, ours "a" | "b"`}},
		"a length":               {`{type: object, required: [url], properties: {url: {type: string, maxLength: 3}}}`, []string{"DataImage spec.url: greatest length: theirs nothing, ours 3"}},
		"a rule":                 {`{type: object, required: [url], properties: {url: {type: string}}, x-kubernetes-validations: [{rule: "true"}]}`, []string{"DataImage spec: rules: theirs nothing, ours 1"}},
		"unknown fields":         {`{type: object, required: [url], properties: {url: {type: string}}, x-kubernetes-preserve-unknown-fields: true}`, []string{"DataImage spec: keeps unknown fields: theirs nothing, ours true"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, err := schema.Ours(fstest.MapFS{"a.yaml": {Data: []byte(strings.Replace(definition, "SPEC", tt.spec, 1))}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range schema.Compare(theirs, ours) {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(append([]string{alias}, tt.want...), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestReasonsAreChecked(t *testing.T) {
	t.Parallel()
	a, b := schema.Difference{Place: "a", Property: "type"}, schema.Difference{Place: "b", Property: "type"}
	unknown, stale := schema.Check([]schema.Difference{a, b}, []schema.Known{
		{Difference: a}, {Difference: schema.Difference{Place: "c"}, Why: "once"},
	})
	if diff := cmp.Diff([]schema.Difference{b}, unknown); diff != "" {
		t.Errorf("unknown\n%s", diff)
	}
	if len(stale) != 2 {
		t.Errorf("stale: %v", stale)
	}
}
