package bus_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func TestEventsAreWhatTheirSchemasSay(t *testing.T) {
	b := bustest.New(t)
	full := created("u1")
	full.Intent.CreatedAt = time.Now()
	full.Intent.Labels = map[string]string{"zone": "a"}
	full.Intent.Spec.Image = &v1alpha1.Image{URL: "http://images.example/a"}
	full.Intent.Spec.RAID = &v1alpha1.RAIDConfig{SoftwareRAIDVolumes: []v1alpha1.SoftwareRAIDVolume{{Level: "1"}}}
	full.Intent.Reboots = []event.RebootRequest{{Key: "a", ID: "1"}}
	full.Intent.Base = base(3)
	bustest.Append(t, b, "u1", bustest.The(full), bustest.The(observed(true)),
		bustest.The(lifecycle.Failed{Kind: event.Enroll, Problem: event.Problem{Type: v1alpha1.RegistrationError, Message: "no"}}),
		bustest.The(lifecycle.Started{Kind: event.Enroll, Step: "create"}), bustest.The(lifecycle.Accepted{Kind: event.Enroll}), bustest.The(enrolled().Fact))
	bustest.Append(t, b, "u2", bustest.The(created("u2")), bustest.The(enrolled().Fact), bustest.The(lifecycle.Skipped{}),
		bustest.The(lifecycle.ReadyForImage{RAID: full.Intent.Spec.RAID}))

	bustest.Await(t, "the history to follow", func() bool { return len(collect(t, b, bus.HistoryFilter{})) == 10 })
	for _, e := range collect(t, b, bus.HistoryFilter{}) {
		v := validator{root: readSchema(t, e.DataSchema())}
		var data any
		if err := json.Unmarshal(e.Data(), &data); err != nil {
			t.Fatal(err)
		}
		v.check("data", v.root, data)
		for _, problem := range v.problems {
			t.Errorf("event %s: %s", e.ID(), problem)
		}
	}
}

func readSchema(t *testing.T, url string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "api", "event", "schemas", path.Base(url)))
	if err != nil {
		t.Fatal(err)
	}
	var s map[string]any
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	if s["$id"] != url {
		t.Errorf("the schema at %s says that it is %v", url, s["$id"])
	}
	return s
}

// validator knows as much of JSON Schema as our schemas use.
type validator struct {
	root     map[string]any
	problems []string
}

func (v *validator) fail(where, format string, args ...any) {
	v.problems = append(v.problems, where+": "+fmt.Sprintf(format, args...))
}

func (v *validator) check(where string, schema map[string]any, value any) {
	if ref, ok := schema["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/$defs/")
		def, ok := v.root["$defs"].(map[string]any)[name].(map[string]any)
		if !ok {
			v.fail(where, "no definition of %s", ref)
			return
		}
		v.check(where, def, value)
		return
	}
	if options, ok := schema["oneOf"].([]any); ok {
		v.oneOf(where, options, value)
		return
	}
	v.typed(where, schema, value)
}

func (v *validator) oneOf(where string, options []any, value any) {
	fits := 0
	for _, o := range options {
		try := validator{root: v.root}
		try.check(where, o.(map[string]any), value)
		if len(try.problems) == 0 {
			fits++
		}
	}
	if fits != 1 {
		v.fail(where, "%v fits %d of the choices", value, fits)
	}
}

func (v *validator) typed(where string, schema map[string]any, value any) {
	kind, _ := schema["type"].(string)
	is := map[string]bool{"": true}
	switch x := value.(type) {
	case nil:
		is["null"] = true
	case bool:
		is["boolean"] = true
	case float64:
		is["number"], is["integer"] = true, x == float64(int64(x))
	case string:
		is["string"] = true
		if _, err := time.Parse(time.RFC3339Nano, x); schema["format"] == "date-time" && err != nil {
			v.fail(where, "%q is no time", x)
		}
	case []any:
		is["array"] = true
		items, _ := schema["items"].(map[string]any)
		for i, e := range x {
			v.check(fmt.Sprintf("%s[%d]", where, i), items, e)
		}
	case map[string]any:
		is["object"] = true
		v.object(where, schema, x)
	}
	if !is[kind] {
		v.fail(where, "%v is no %s", value, kind)
	}
}

func (v *validator) object(where string, schema, value map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, ok := value[name.(string)]; !ok {
			v.fail(where, "%s is missing", name)
		}
	}
	for name, e := range value {
		p, ok := properties[name].(map[string]any)
		if !ok {
			p, ok = schema["additionalProperties"].(map[string]any)
		}
		if !ok {
			v.fail(where, "%s is not in the schema", name)
			continue
		}
		v.check(where+"."+name, p, e)
	}
}
