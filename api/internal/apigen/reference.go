package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// reference writes the page on the API from the definitions in crds and the
// constants in types.
func reference(crds, types string) ([]byte, error) {
	kinds, err := readDefinitions(crds)
	if err != nil {
		return nil, err
	}
	groups, err := readConstants(types)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	writeHead(&out, kinds)
	fields := fieldWriter{out: &out, homes: map[string]place{}}
	for i := range kinds {
		eachPart(&kinds[i], fields.settle)
	}
	for i := range kinds {
		writeKind(fields, &kinds[i])
	}
	writeConstants(&out, groups)
	return out.Bytes(), nil
}

// readDefinitions reads every definition, BareMetalHost first.
func readDefinitions(dir string) ([]apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	var kinds []apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // The files of this very repository.
		if err != nil {
			return nil, err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		kinds = append(kinds, crd)
	}
	slices.SortFunc(kinds, func(a, b apiextensionsv1.CustomResourceDefinition) int {
		return cmp.Compare(rank(a), rank(b))
	})
	return kinds, nil
}

func rank(crd apiextensionsv1.CustomResourceDefinition) string {
	kind := crd.Spec.Names.Kind
	if kind == "BareMetalHost" {
		return ""
	}
	return kind
}

func writeHead(out *bytes.Buffer, kinds []apiextensionsv1.CustomResourceDefinition) {
	fmt.Fprintf(out, `# API reference

Generated from `+"`%s` by `go run ./api/internal/apigen`"+`. Do not edit.

Group metal3.io, version v1alpha1. Every kind lives in a namespace. In a cluster, `+"`kubectl explain bmh.spec.image`"+` says the same.

| Kind | kubectl | What it is |
| --- | --- | --- |
`, typesDir)
	for _, crd := range kinds {
		names := crd.Spec.Names
		first, _, _ := strings.Cut(oneLine(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description), ". ")
		fmt.Fprintf(out, "| [%s](#%s) | %s | %s |\n", names.Kind, strings.ToLower(names.Kind),
			code(append(slices.Clone(names.ShortNames), names.Plural)...), cell(strings.TrimSuffix(first, ".")))
	}
}

// eachPart visits the spec and the status of a kind.
func eachPart(crd *apiextensionsv1.CustomResourceDefinition, visit func(place, apiextensionsv1.JSONSchemaProps)) {
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, part := range []string{"spec", "status"} {
		if top, ok := schema.Properties[part]; ok {
			visit(place{crd.Spec.Names.Kind, part}, top)
		}
	}
}

func writeKind(fields fieldWriter, crd *apiextensionsv1.CustomResourceDefinition) {
	version := crd.Spec.Versions[0]
	schema := version.Schema.OpenAPIV3Schema
	out := fields.out
	fmt.Fprintf(out, "\n## %s\n\n%s\n", crd.Spec.Names.Kind, paragraphs(schema.Description))
	if columns := version.AdditionalPrinterColumns; len(columns) > 0 {
		fmt.Fprintf(out, "\nColumns of `kubectl get`: %s.\n", columnList(columns))
	}
	if rules := rulesOf(*schema); len(rules) > 0 {
		fmt.Fprint(out, "\nRefused by the API server itself:\n\n")
		for _, message := range rules {
			fmt.Fprintf(out, "- %s\n", message)
		}
	}
	fmt.Fprint(out, "\n| Field | Type | Meaning |\n| --- | --- | --- |\n")
	eachPart(crd, func(p place, schema apiextensionsv1.JSONSchemaProps) { fields.write(p, schema, false) })
}

func columnList(columns []apiextensionsv1.CustomResourceColumnDefinition) string {
	var names []string
	for _, column := range columns {
		name := column.Name
		if column.Priority > 0 {
			name += " (with -o wide)"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
