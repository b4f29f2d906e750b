package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Upstream are the facts of the stored description.
func Upstream() (Facts, error) {
	var d description
	if err := yaml.UnmarshalStrict(upstream, &d); err != nil {
		return nil, fmt.Errorf("read upstream.yaml: %w", err)
	}
	facts := Facts{}
	for name, k := range d.Kinds {
		if err := d.kind(name, k, facts); err != nil {
			return nil, fmt.Errorf("upstream.yaml: %s: %w", name, err)
		}
	}
	return facts, nil
}

type description struct {
	Kinds map[string]kind  `json:"kinds"`
	Types map[string]field `json:"types"`
}

type kind struct {
	Plural            string   `json:"plural"`
	ShortNames        []string `json:"shortNames"`
	StatusSubresource bool     `json:"statusSubresource"`
	Columns           []string `json:"columns"`
	Spec              field    `json:"spec"`
	Status            *field   `json:"status"`
}

// field is a type and what limits its values.
type field struct {
	Type        string           `json:"type"`
	Fields      map[string]field `json:"fields"`
	Format      string           `json:"format"`
	Enum        []any            `json:"enum"`
	Default     any              `json:"default"`
	Pattern     string           `json:"pattern"`
	Minimum     *float64         `json:"minimum"`
	Maximum     *float64         `json:"maximum"`
	MinLength   *int64           `json:"minLength"`
	MaxLength   *int64           `json:"maxLength"`
	MinItems    *int64           `json:"minItems"`
	MaxItems    *int64           `json:"maxItems"`
	Nullable    bool             `json:"nullable"`
	Atomic      bool             `json:"atomic"`
	MapKey      string           `json:"mapKey"`
	IntOrString bool             `json:"intOrString"`
}

// UnmarshalJSON takes the name of a type for a field of that type.
func (f *field) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &f.Type); err == nil {
		return nil
	}
	type plain field
	return yaml.UnmarshalStrict(data, (*plain)(f))
}

func (d description) kind(name string, k kind, facts Facts) error {
	facts.set(name, "plural", k.Plural)
	facts.set(name, "scope", "Namespaced")
	facts.set(name, "short names", k.ShortNames)
	facts.set(name, "status subresource", k.StatusSubresource)
	facts.set(name, "columns", columns(k.Columns))
	if err := d.field(name+" spec", k.Spec, facts); err != nil || k.Status == nil {
		return err
	}
	return d.field(name+" status", *k.Status, facts)
}

func columns(list []string) string { return strings.Join(list, "; ") }

func (d description) field(place string, f field, facts Facts) error {
	name, required := strings.CutSuffix(f.Type, "!")
	facts.set(place, "required", required)
	f.limits(place, facts)
	if items, ok := strings.CutPrefix(name, "[]"); ok {
		facts.set(place, "type", "array")
		return d.field(place+"[]", field{Type: items}, facts)
	}
	if values, ok := strings.CutPrefix(name, "map[]"); ok {
		facts.set(place, "type", "object")
		return d.field(place+"[*]", field{Type: values}, facts)
	}
	if slices.Contains([]string{"string", "integer", "number", "boolean"}, name) {
		facts.set(place, "type", name)
		return nil
	}
	if name != "" {
		known, ok := d.Types[name]
		if !ok {
			return fmt.Errorf("%s: there is no type %q", place, name)
		}
		return d.field(place, known, facts)
	}
	if !f.IntOrString {
		facts.set(place, "type", "object")
	}
	for name, child := range f.Fields {
		if err := d.field(join(place, name), child, facts); err != nil {
			return err
		}
	}
	return nil
}

// join is the place of a field of an object: a kind and a path.
func join(place, name string) string { return place + "." + name }

func (f field) limits(place string, facts Facts) {
	facts.set(place, "format", f.Format)
	facts.set(place, "pattern", f.Pattern)
	facts.set(place, "nullable", f.Nullable)
	facts.set(place, "map type", atomic(f.Atomic))
	facts.set(place, "list is a map by", f.MapKey)
	facts.set(place, "integer or string", f.IntOrString)
	for property, value := range map[string]*float64{"minimum": f.Minimum, "maximum": f.Maximum} {
		setIf(facts, place, property, value)
	}
	for property, value := range map[string]*int64{
		"least length": f.MinLength, "greatest length": f.MaxLength, "least entries": f.MinItems, "most entries": f.MaxItems,
	} {
		setIf(facts, place, property, value)
	}
	if f.Default != nil {
		facts.set(place, "default", text(f.Default))
	}
	var values []string
	for _, v := range f.Enum {
		values = append(values, text(v))
	}
	facts.set(place, "one of", oneOf(values))
}

func setIf[T any](facts Facts, place, property string, value *T) {
	if value != nil {
		facts.set(place, property, *value)
	}
}

func atomic(is bool) string {
	if is {
		return "atomic"
	}
	return ""
}

// oneOf is a set of values in one form.
func oneOf(values []string) string {
	slices.Sort(values)
	return strings.Join(values, " | ")
}

// text is a JSON value as text.
func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // it was read from YAML
	}
	return string(raw)
}
