package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"path"
	"strings"
	"text/template"

	"github.com/invopop/jsonschema"

	"github.com/metalbus/metalbus/api/event"
)

//go:embed page.md.tmpl
var pageTemplate string

// sectionView is a section as the page shows it.
type sectionView struct {
	Name, Writer, Meaning, Schema string
	Operations, Facts             []entry
	Fields                        []field
}

// entry is an operation, a phase or a fact as the page shows it.
type entry struct{ Name, Meaning string }

// field is a field of a section's state.
type field struct{ Name, Type, Meaning string }

func meaning(s event.Section) string {
	return map[event.Section]string{
		event.SectionIntent:       "what people ask of the host",
		event.SectionRegistration: "the host as a node of its backend",
		event.SectionInspection:   "what its hardware is",
		event.SectionProvisioning: "what is on its disk",
		event.SectionPower:        "whether it is on",
	}[s]
}

// page is docs/events.md.
func (s *schemas) page() ([]byte, error) {
	var sections []sectionView
	for _, section := range event.Sections() {
		sections = append(sections, s.view(section))
	}
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{"Sections": sections, "Phases": phaseEntries(), "DeadLetter": event.TypeDeadLetter})
	return out.Bytes(), err
}

func (s *schemas) view(section event.Section) sectionView {
	v := sectionView{
		Name: string(section), Writer: section.Writer(), Meaning: meaning(section),
		Schema: path.Base(event.DataSchema(section)),
	}
	for _, f := range event.Facts() {
		if f.Section != section {
			continue
		}
		kind, phase := operation(f.Name)
		what, _, _ := strings.Cut(f.Meaning, ": ")
		if phase == "" {
			v.Facts = append(v.Facts, entry{event.Type(section, f.Name), cell(f.Meaning)})
		}
		if phase == event.Started {
			v.Operations = append(v.Operations, entry{string(kind), cell(what)})
		}
	}
	schema := s.schema(section)
	state, _ := schema.Properties.Get("state")
	v.Fields = fields(resolve(state, schema.Definitions))
	return v
}

// operation takes the fact of an operation apart; the phase of others is "".
func operation(fact string) (event.Kind, event.Phase) {
	for _, k := range event.Kinds() {
		for _, p := range phases() {
			if fact == k.Fact(p) {
				return k, p
			}
		}
	}
	return "", ""
}

func phases() []event.Phase {
	return []event.Phase{event.Started, event.Claimed, event.Accepted, event.Resumed, event.Succeeded, event.Failed, event.Aborted}
}

// phaseEntries say what each phase means, as the catalogue does of one kind.
func phaseEntries() (all []entry) {
	k := event.Kinds()[0]
	for _, p := range phases() {
		for _, f := range event.Facts() {
			if f.Section == k.Section() && f.Name == k.Fact(p) {
				_, text, _ := strings.Cut(f.Meaning, ": ")
				all = append(all, entry{string(p), cell(text)})
			}
		}
	}
	return all
}

func resolve(s *jsonschema.Schema, defs jsonschema.Definitions) *jsonschema.Schema {
	if d, ok := defs[strings.TrimPrefix(s.Ref, "#/$defs/")]; ok {
		return d
	}
	return s
}

func fields(s *jsonschema.Schema) (all []field) {
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		all = append(all, field{p.Key, typeOf(p.Value), cell(p.Value.Description)})
	}
	return all
}

// typeOf says in a few words what a value is.
func typeOf(s *jsonschema.Schema) string {
	switch {
	case s.Ref != "":
		return strings.TrimPrefix(s.Ref, "#/$defs/")
	case len(s.OneOf) > 0:
		return typeOf(s.OneOf[0])
	case s.Type == "array":
		return "list of " + typeOf(s.Items)
	case s.Type == "object" && s.AdditionalProperties != nil:
		return "map of " + typeOf(s.AdditionalProperties)
	case s.Format == "date-time":
		return "time"
	default:
		return s.Type
	}
}

// cell is a text as a table may hold it.
func cell(text string) string { return strings.ReplaceAll(fmt.Sprint(text), "|", `\|`) }
