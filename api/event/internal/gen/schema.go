package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
)

// schemas makes the schemas of all sections.
type schemas struct{ r *jsonschema.Reflector }

// newSchemas reads the comments of the types, from the module's root.
func newSchemas() (*schemas, error) {
	r := &jsonschema.Reflector{
		AllowAdditionalProperties: true, // readers bear with fields that they do not know
		ExpandedStruct:            true,
		Mapper:                    times,
		Namer:                     name,
	}
	for _, dir := range []string{"api/event", "api/v1alpha1"} {
		if err := r.AddGoComments("github.com/metalbus/metalbus", dir); err != nil {
			return nil, fmt.Errorf("comments of %s: %w", dir, err)
		}
	}
	for key, text := range r.CommentMap {
		r.CommentMap[key] = strings.Join(strings.Fields(text), " ")
	}
	return &schemas{r}, nil
}

// times maps Kubernetes' time, which is null while it is zero.
func times(t reflect.Type) *jsonschema.Schema {
	if t != reflect.TypeFor[metav1.Time]() {
		return nil
	}
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{{Type: "string", Format: "date-time"}, {Type: "null"}}}
}

// name leaves the type parameters out of the name of a generic type.
func name(t reflect.Type) string {
	plain, _, _ := strings.Cut(t.Name(), "[")
	return plain
}

// dataOf is the type of the data of a section's events.
func dataOf(s event.Section) any {
	switch s {
	case event.SectionIntent:
		return event.Data[event.Intent]{}
	case event.SectionRegistration:
		return event.Data[event.Registration]{}
	case event.SectionInspection:
		return event.Data[event.Inspection]{}
	case event.SectionProvisioning:
		return event.Data[event.Provisioning]{}
	default:
		return event.Data[event.Power]{}
	}
}

// schema is the schema of the data of a section's events.
func (s *schemas) schema(section event.Section) *jsonschema.Schema {
	schema := s.r.Reflect(dataOf(section))
	schema.ID = jsonschema.ID(event.DataSchema(section))
	schema.Title = "Data of the events of section " + string(section)
	schema.Description = "The section's whole state after the event, what the event changed, and the operation that it belongs to."
	allowNull(schema)
	for _, d := range schema.Definitions {
		allowNull(d)
	}
	return schema
}

// allowNull lets lists be null that are always there: an empty one is null in Go.
func allowNull(s *jsonschema.Schema) {
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		if p.Value.Type != "array" || !slices.Contains(s.Required, p.Key) {
			continue
		}
		list := *p.Value
		description := list.Description
		list.Description = ""
		p.Value = &jsonschema.Schema{Description: description, OneOf: []*jsonschema.Schema{&list, {Type: "null"}}}
	}
}

// files are the schemas by path.
func (s *schemas) files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, section := range event.Sections() {
		data, err := json.Marshal(s.schema(section))
		for escaped, plain := range map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&"} { // of no use outside of HTML
			data = bytes.ReplaceAll(data, []byte(escaped), []byte(plain))
		}
		if err != nil {
			return nil, fmt.Errorf("schema of %s: %w", section, err)
		}
		var out bytes.Buffer
		if err := json.Indent(&out, data, "", "  "); err != nil {
			return nil, err
		}
		out.WriteByte('\n')
		files["api/event/schemas/"+path.Base(event.DataSchema(section))] = out.Bytes()
	}
	return files, nil
}
