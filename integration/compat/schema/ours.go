package schema

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// Ours are the facts of the definitions in a folder.
func Ours(folder fs.FS) (Facts, error) {
	files, err := fs.Glob(folder, "*.yaml")
	if err != nil {
		return nil, err
	}
	facts := Facts{}
	for _, file := range files {
		raw, err := fs.ReadFile(folder, file)
		if err != nil {
			return nil, err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		definition(&crd, facts)
	}
	return facts, nil
}

func definition(crd *apiextensionsv1.CustomResourceDefinition, facts Facts) {
	name, version := crd.Spec.Names.Kind, crd.Spec.Versions[0]
	facts.set(name, "plural", crd.Spec.Names.Plural)
	facts.set(name, "scope", crd.Spec.Scope)
	facts.set(name, "short names", crd.Spec.Names.ShortNames)
	facts.set(name, "categories", crd.Spec.Names.Categories)
	facts.set(name, "status subresource", version.Subresources != nil && version.Subresources.Status != nil)
	facts.set(name, "labels", oneOf(slices.Collect(maps.Keys(crd.Labels))))
	var list []string
	for _, c := range version.AdditionalPrinterColumns {
		column := fmt.Sprintf("%s %s %s", c.Name, c.Type, c.JSONPath)
		if c.Priority > 0 {
			column += " wide"
		}
		list = append(list, column)
	}
	facts.set(name, "columns", columns(list))
	top := version.Schema.OpenAPIV3Schema
	facts.set(name, "rules", rules(*top))
	for _, part := range []string{"spec", "status"} {
		if schema, ok := top.Properties[part]; ok {
			properties(name+" "+part, schema, slices.Contains(top.Required, part), facts)
		}
	}
}

func properties(place string, s apiextensionsv1.JSONSchemaProps, required bool, facts Facts) {
	facts.set(place, "type", s.Type)
	facts.set(place, "required", required)
	facts.set(place, "rules", rules(s))
	limits(place, s, facts)
	switch {
	case s.Items != nil:
		properties(place+"[]", *s.Items.Schema, false, facts)
	case s.AdditionalProperties != nil:
		properties(place+"[*]", *s.AdditionalProperties.Schema, false, facts)
	}
	for name, child := range s.Properties {
		properties(join(place, name), child, slices.Contains(s.Required, name), facts)
	}
}

func limits(place string, s apiextensionsv1.JSONSchemaProps, facts Facts) {
	facts.set(place, "format", s.Format)
	facts.set(place, "pattern", s.Pattern)
	facts.set(place, "nullable", s.Nullable)
	facts.set(place, "integer or string", s.XIntOrString)
	facts.set(place, "keeps unknown fields", s.XPreserveUnknownFields != nil)
	setIf(facts, place, "map type", s.XMapType)
	setIf(facts, place, "minimum", s.Minimum)
	setIf(facts, place, "maximum", s.Maximum)
	setIf(facts, place, "least length", s.MinLength)
	setIf(facts, place, "greatest length", s.MaxLength)
	setIf(facts, place, "least entries", s.MinItems)
	setIf(facts, place, "most entries", s.MaxItems)
	if s.XListType != nil && *s.XListType != "map" {
		facts.set(place, "list type", *s.XListType)
	}
	if len(s.XListMapKeys) > 0 {
		facts.set(place, "list is a map by", cmp.Or(s.XListMapKeys...))
	}
	if s.Default != nil {
		facts.set(place, "default", string(s.Default.Raw))
	}
	var values []string
	for _, v := range s.Enum {
		values = append(values, string(v.Raw))
	}
	facts.set(place, "one of", oneOf(values))
}

// rules is how many rules a schema has. What they say is in the reference.
func rules(s apiextensionsv1.JSONSchemaProps) string {
	if len(s.XValidations) == 0 {
		return ""
	}
	return fmt.Sprint(len(s.XValidations))
}
