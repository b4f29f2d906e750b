package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// place is where a field stands.
type place struct{ kind, path string }

func (p place) String() string { return fmt.Sprintf("`%s` of %s", p.path, p.kind) }

// depth is how far down in its object a field stands.
func (p place) depth() int { return strings.Count(p.path, ".") }

// fieldWriter writes fields as rows of a table, one with all that is in it
// below it.
type fieldWriter struct {
	out *bytes.Buffer
	// homes is where each set of fields is written, so that it is written
	// once: the place that is least far down, and of those the first.
	homes map[string]place
}

// settle finds the homes of what is in the field at p.
func (w fieldWriter) settle(p place, schema apiextensionsv1.JSONSchemaProps) {
	inner, innerPath := inside(p.path, schema)
	if key := fingerprint(inner); key != "" {
		if home, known := w.homes[key]; !known || p.depth() < home.depth() {
			w.homes[key] = p
		}
	}
	for _, name := range slices.Sorted(maps.Keys(inner.Properties)) {
		w.settle(place{p.kind, innerPath + "." + name}, inner.Properties[name])
	}
}

// write writes the field at p, and what is in it.
func (w fieldWriter) write(p place, schema apiextensionsv1.JSONSchemaProps, required bool) {
	inner, innerPath := inside(p.path, schema)
	meaning := oneLine(schema.Description)
	home, shared := w.homes[fingerprint(inner)]
	elsewhere := shared && home != p
	if elsewhere {
		meaning += fmt.Sprintf(" Fields as in %s.", home)
	}
	fmt.Fprintf(w.out, "| `%s` | %s | %s |\n", p.path, cell(strings.Join(typeOf(schema, required), ", ")), cell(meaning))
	if elsewhere || wellKnown(inner) != "" {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(inner.Properties)) {
		w.write(place{p.kind, innerPath + "." + name}, inner.Properties[name], slices.Contains(inner.Required, name))
	}
}

// inside is the schema whose fields stand below path: that of the field itself,
// of a list's entries, or of a map's values.
func inside(path string, schema apiextensionsv1.JSONSchemaProps) (apiextensionsv1.JSONSchemaProps, string) {
	switch {
	case schema.Items != nil:
		return *schema.Items.Schema, path + "[]"
	case schema.AdditionalProperties != nil:
		return *schema.AdditionalProperties.Schema, path + "[name]"
	default:
		return schema, path
	}
}

// wellKnown is the name of a Kubernetes type that needs no explaining here.
func wellKnown(schema apiextensionsv1.JSONSchemaProps) string {
	_, hasTransition := schema.Properties["lastTransitionTime"]
	_, hasUID := schema.Properties["uid"]
	_, hasEffect := schema.Properties["effect"]
	_, hasNamespace := schema.Properties["namespace"]
	atomic := schema.XMapType != nil && *schema.XMapType == "atomic"
	switch {
	case hasTransition:
		return "Condition"
	case atomic && hasUID:
		return "ObjectReference"
	case atomic && hasNamespace:
		return "SecretReference"
	case hasEffect:
		return "Taint"
	default:
		return ""
	}
}

// typeOf is a field's type and what limits its values.
func typeOf(schema apiextensionsv1.JSONSchemaProps, required bool) []string {
	words := []string{typeName(schema)}
	if required {
		words = append(words, "required")
	}
	if schema.Nullable {
		words = append(words, "may be null")
	}
	if schema.Default != nil {
		words = append(words, "default "+plain(schema.Default.Raw))
	}
	if len(schema.Enum) > 0 {
		words = append(words, "one of "+enumOf(schema))
	}
	words = append(words, limitsOf(schema)...)
	if schema.Items != nil {
		words = append(words, prefixed("each ", limitsOf(*schema.Items.Schema))...)
		if len(schema.Items.Schema.Enum) > 0 {
			words = append(words, "each one of "+enumOf(*schema.Items.Schema))
		}
	}
	return words
}

func typeName(schema apiextensionsv1.JSONSchemaProps) string {
	switch {
	case wellKnown(schema) != "":
		return wellKnown(schema)
	case schema.XIntOrString:
		return "integer or string"
	case schema.Format == "date-time":
		return "time"
	case schema.Items != nil:
		return "list of " + typeName(*schema.Items.Schema)
	case schema.AdditionalProperties != nil:
		return "map of " + typeName(*schema.AdditionalProperties.Schema)
	default:
		return schema.Type
	}
}

// limitsOf are the bounds of a value.
func limitsOf(schema apiextensionsv1.JSONSchemaProps) []string {
	var words []string
	if schema.Minimum != nil {
		words = append(words, fmt.Sprintf("at least %v", *schema.Minimum))
	}
	if schema.Maximum != nil {
		words = append(words, fmt.Sprintf("at most %v", *schema.Maximum))
	}
	if schema.MaxLength != nil {
		words = append(words, fmt.Sprintf("at most %d characters", *schema.MaxLength))
	}
	if schema.MinItems != nil {
		words = append(words, fmt.Sprintf("at least %d entries", *schema.MinItems))
	}
	if schema.MaxItems != nil {
		words = append(words, fmt.Sprintf("at most %d entries", *schema.MaxItems))
	}
	if schema.Pattern != "" {
		words = append(words, "pattern `"+schema.Pattern+"`")
	}
	return words
}

func prefixed(prefix string, words []string) []string {
	var out []string
	for _, word := range words {
		out = append(out, prefix+word)
	}
	return out
}

func enumOf(schema apiextensionsv1.JSONSchemaProps) string {
	var values []string
	for _, value := range schema.Enum {
		values = append(values, plain(value.Raw))
	}
	return strings.Join(values, " ")
}

// plain is a JSON value as code.
func plain(raw []byte) string {
	var text string
	if err := json.Unmarshal(raw, &text); err == nil && text != "" {
		return "`" + text + "`"
	}
	return "`" + string(raw) + "`"
}

// rulesOf are the messages of all rules in a schema.
func rulesOf(schema apiextensionsv1.JSONSchemaProps) []string {
	var messages []string
	for _, rule := range schema.XValidations {
		messages = append(messages, rule.Message)
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		inner, _ := inside(name, schema.Properties[name])
		if name == "spec" {
			messages = append(messages, rulesOf(schema.Properties[name])...)
			continue
		}
		messages = append(messages, prefixed(name+": ", rulesOf(inner))...)
	}
	return messages
}

// fingerprint is the same for the same fields, and empty for fields that are
// not worth a reference: one alone, or those of a well-known type.
func fingerprint(schema apiextensionsv1.JSONSchemaProps) string {
	if len(schema.Properties) < 2 || wellKnown(schema) != "" {
		return ""
	}
	text, err := json.Marshal(schema.Properties)
	if err != nil {
		panic(err) // it was read from JSON
	}
	return string(text)
}

// oneLine puts a description on one line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// paragraphs puts each paragraph of a description on one line.
func paragraphs(text string) string {
	var out []string
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		out = append(out, oneLine(paragraph))
	}
	return strings.Join(out, "\n\n")
}

// cell is text that does not end a table's cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// code is a list of words as code.
func code(words ...string) string {
	var out []string
	for _, word := range words {
		out = append(out, "`"+word+"`")
	}
	return strings.Join(out, " ")
}
