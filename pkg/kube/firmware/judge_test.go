package firmware

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// machine is firmware of all types.
func machine() event.Firmware {
	return event.Firmware{
		Settings: map[string]string{"NumCores": "10", "Turbo": "Enabled", "Serial": "F0", "Quiet": "false", "AssetTag": "", "Free": "a"},
		Schema: map[string]v1alpha1.SettingSchema{
			"NumCores": {AttributeType: v1alpha1.AttributeInteger, LowerBound: new(1)},
			"Turbo":    {AttributeType: v1alpha1.AttributeEnumeration, AllowableValues: []string{"Enabled", "Disabled"}},
			"Serial":   {AttributeType: v1alpha1.AttributeString, ReadOnly: new(true)},
			"Quiet":    {AttributeType: v1alpha1.AttributeBoolean},
			"AssetTag": {AttributeType: v1alpha1.AttributeString, MaxLength: new(8)},
		},
		Odd:        []string{"Boot Order"},
		Components: []v1alpha1.FirmwareComponentStatus{{Component: "bios", InitialVersion: "1"}},
	}
}

func text(s string) intstr.IntOrString { return intstr.FromString(s) }

// B26: values and types of firmware settings.
func TestB26Settings(t *testing.T) {
	for name, tt := range map[string]struct {
		want    v1alpha1.DesiredSettingsMap
		changes string
		faults  []string
	}{
		"nothing":                     {nil, "", nil},
		"a number that it is":         {v1alpha1.DesiredSettingsMap{"NumCores": intstr.FromInt32(10)}, "", nil},
		"the same as text":            {v1alpha1.DesiredSettingsMap{"NumCores": text("10")}, "", nil},
		"another number":              {v1alpha1.DesiredSettingsMap{"NumCores": intstr.FromInt32(12)}, "NumCores 10>12 number", nil},
		"another number as text":      {v1alpha1.DesiredSettingsMap{"NumCores": text("12")}, "NumCores 10>12 number", nil},
		"a value that it is":          {v1alpha1.DesiredSettingsMap{"Turbo": text("Enabled"), "Serial": text("F0")}, "", nil},
		"another value":               {v1alpha1.DesiredSettingsMap{"Turbo": text("Disabled"), "Quiet": text("true")}, "Quiet false>true, Turbo Enabled>Disabled", nil},
		"a number for a text":         {v1alpha1.DesiredSettingsMap{"AssetTag": intstr.FromInt32(7)}, "AssetTag >7", nil},
		"what nobody has said may be": {v1alpha1.DesiredSettingsMap{"Free": intstr.FromInt32(7)}, "Free a>7 number", nil},
		"below a lone bound":          {v1alpha1.DesiredSettingsMap{"NumCores": text("0")}, "", []string{"NumCores"}},
		"no number":                   {v1alpha1.DesiredSettingsMap{"NumCores": text("ten")}, "", []string{"ten"}},
		"the wrong case":              {v1alpha1.DesiredSettingsMap{"Turbo": text("enabled")}, "", []string{"Enabled, Disabled"}},
		"read-only":                   {v1alpha1.DesiredSettingsMap{"Serial": text("X")}, "", []string{"ReadOnly"}},
		"too long":                    {v1alpha1.DesiredSettingsMap{"AssetTag": text("123456789")}, "", []string{"8"}},
		"an unknown name":             {v1alpha1.DesiredSettingsMap{"Nope": intstr.FromInt32(1)}, "", []string{"Nope"}},
		"a password":                  {v1alpha1.DesiredSettingsMap{"SysPassword": text("p")}, "", []string{"Password"}},
		"what has no value":           {v1alpha1.DesiredSettingsMap{"Boot Order": text("p")}, "", []string{"Boot Order"}},
		"one fault keeps all from it": {v1alpha1.DesiredSettingsMap{"Turbo": text("Disabled"), "Nope": text("1"), "NumCores": text("0")}, "", []string{"Nope", "NumCores"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := judgeSettings(tt.want, machine())
			var list []string
			for _, s := range v.settings {
				line := fmt.Sprintf("%s %s>%s", s.Name, s.From, s.To)
				if s.Number {
					line += " number"
				}
				list = append(list, line)
			}
			if got := strings.Join(list, ", "); got != tt.changes {
				t.Errorf("changes %q, want %q", got, tt.changes)
			}
			if len(v.faults) != len(tt.faults) || (len(v.differ) > 0) != (len(tt.faults) > 0 || tt.changes != "") {
				t.Fatalf("faults %q of %q, want %q", v.faults, v.differ, tt.faults)
			}
			for _, f := range tt.faults {
				if !strings.Contains(strings.Join(v.faults, "; "), f) {
					t.Errorf("faults %q do not tell of %q", v.faults, f)
				}
			}
		})
	}
}

// B27: what is odd is named, and the rest is shown.
func TestB27OddSettingsAreNamed(t *testing.T) {
	f := machine()
	f.Settings["SetupPassword"] = "must not be seen"
	o := &v1alpha1.HostFirmwareSettings{}
	read := event.FirmwareRead{Digest: "d", At: now, Problem: "the BMC answers 500"}
	s := settingsStatus(o, f, judgeSettings(nil, f), subject{now: now, remarks: remarksOn(f, read)})
	if len(s.Settings) != 6 || s.FirmwareSchema == nil || !strings.HasPrefix(s.FirmwareSchema.Name, "schema-") || len(s.FirmwareSchema.Name) != len("schema-")+8 {
		t.Errorf("status %+v", s)
	}
	valid := condition(s.Conditions, "Valid")
	if valid.Status != metav1.ConditionTrue || !strings.Contains(valid.Message, "Boot Order") || !strings.Contains(valid.Message, "500") {
		t.Errorf("condition %+v", valid)
	}
}

func condition(list []metav1.Condition, kind string) metav1.Condition {
	for _, c := range list {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// B28: the generation that conditions are about is always that of the object, though
// nothing else has changed; and our old notice goes.
func TestB28ConditionsAreAboutTheObjectAsItIs(t *testing.T) {
	o := &v1alpha1.HostFirmwareSettings{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
	o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.SupportedCondition, Status: metav1.ConditionFalse}, {Type: "Others", Status: metav1.ConditionTrue}}
	o.Status = settingsStatus(o, machine(), verdict{}, subject{generation: 7, now: now})
	before := o.Status
	o.Generation = 9
	o.Status = settingsStatus(o, machine(), verdict{}, subject{generation: 9, now: now.Add(time.Hour)})
	for _, kind := range []string{"Valid", "ChangeDetected"} {
		was, is := condition(before.Conditions, kind), condition(o.Status.Conditions, kind)
		if was.ObservedGeneration != 7 || is.ObservedGeneration != 9 || !is.LastTransitionTime.Equal(&was.LastTransitionTime) {
			t.Errorf("%s: from %+v to %+v", kind, was, is)
		}
	}
	if equal(before, o.Status) || len(o.Status.Conditions) != 3 {
		t.Errorf("conditions %+v", o.Status.Conditions)
	}
}

func TestUpdates(t *testing.T) {
	bios := func(v string) v1alpha1.FirmwareUpdate {
		return v1alpha1.FirmwareUpdate{Component: "bios", URL: "http://192.0.2.80/bios-" + v}
	}
	secret := v1alpha1.FirmwareUpdate{Component: "bios", URL: "http://u:hunter2@192.0.2.80/bios-2"}
	for name, tt := range map[string]struct {
		want, installed []v1alpha1.FirmwareUpdate
		due             int
		valid           bool
		shown           []v1alpha1.FirmwareUpdate
	}{
		"nothing":                      {nil, nil, 0, true, nil},
		"a first one":                  {[]v1alpha1.FirmwareUpdate{bios("2")}, nil, 1, true, nil},
		"one that is installed":        {[]v1alpha1.FirmwareUpdate{bios("2")}, []v1alpha1.FirmwareUpdate{bios("2")}, 0, true, []v1alpha1.FirmwareUpdate{bios("2")}},
		"another one":                  {[]v1alpha1.FirmwareUpdate{bios("3")}, []v1alpha1.FirmwareUpdate{bios("2")}, 1, true, []v1alpha1.FirmwareUpdate{bios("2")}},
		"one that is wanted no longer": {nil, []v1alpha1.FirmwareUpdate{bios("2")}, 0, true, nil},
		"of what is no component":      {[]v1alpha1.FirmwareUpdate{bios("3"), {Component: "disk", URL: "u"}}, nil, 0, false, nil},
		"one with a login":             {[]v1alpha1.FirmwareUpdate{secret}, nil, 0, false, nil},
		"a login in one that is installed": {
			[]v1alpha1.FirmwareUpdate{secret}, []v1alpha1.FirmwareUpdate{bios("2")}, 0, true, []v1alpha1.FirmwareUpdate{bios("2")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := &v1alpha1.HostFirmwareComponents{Spec: v1alpha1.HostFirmwareComponentsSpec{Updates: tt.want}}
			v := judgeUpdates(o, tt.installed)
			s := componentsStatus(o, machine(), v, tt.installed, subject{now: now})
			if text := fmt.Sprint(v, s); strings.Contains(text, "hunter2") {
				t.Errorf("it tells the password: %s", text)
			}
			if len(v.updates) != tt.due || (condition(s.Conditions, "Valid").Status == metav1.ConditionTrue) != tt.valid {
				t.Errorf("due %v, conditions %+v", v.updates, s.Conditions)
			}
			changed := condition(s.Conditions, "ChangeDetected").Status == metav1.ConditionTrue
			if changed != (tt.due > 0 || !tt.valid) || !equal(s.Updates, tt.shown) {
				t.Errorf("changed %v, updates %v, want %v", changed, s.Updates, tt.shown)
			}
		})
	}
}

// A wish keeps its ID as long as it asks for nothing more than before.
func TestNamed(t *testing.T) {
	a, b := event.SettingChange{Name: "A", From: "1", To: "2"}, event.SettingChange{Name: "B", From: "1", To: "2"}
	of := func(id string, s ...event.SettingChange) *event.FirmwareWish {
		return &event.FirmwareWish{ID: id, Settings: s}
	}
	for name, tt := range map[string]struct{ wish, before, want *event.FirmwareWish }{
		"none":                   {nil, of("r1", a), nil},
		"a first one":            {of("", a), nil, of("r9", a)},
		"the same":               {of("", a), of("r1", a), of("r1", a)},
		"less":                   {of("", a), of("r1", a, b), of("r1", a)},
		"more":                   {of("", a, b), of("r1", a), of("r9", a, b)},
		"from another value":     {of("", event.SettingChange{Name: "A", From: "3", To: "2"}), of("r1", a), of("r9", event.SettingChange{Name: "A", From: "3", To: "2"})},
		"updates have none":      {&event.FirmwareWish{UpdatesInUse: true}, of("r1", a), &event.FirmwareWish{UpdatesInUse: true}},
		"after one without name": {of("", a), &event.FirmwareWish{UpdatesInUse: true}, of("r9", a)},
	} {
		if diff := cmp.Diff(tt.want, Named(tt.wish, tt.before, "r9")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Only schemas of ours go, that have been there for a while and that nobody refers to.
func TestSchemasThatNobodyRefersTo(t *testing.T) {
	schema := func(name string, change func(*v1alpha1.FirmwareSchema)) *v1alpha1.FirmwareSchema {
		o := &v1alpha1.FirmwareSchema{ObjectMeta: metav1.ObjectMeta{
			Namespace: "lab", Name: name, Labels: map[string]string{managedByLabel: managedBy}, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
		}}
		if change != nil {
			change(o)
		}
		return o
	}
	schemas := []*v1alpha1.FirmwareSchema{
		schema("left", nil), schema("used", nil),
		schema("new", func(o *v1alpha1.FirmwareSchema) { o.CreationTimestamp = metav1.NewTime(now) }),
		schema("others", func(o *v1alpha1.FirmwareSchema) { o.Labels = nil }),
		schema("owned", func(o *v1alpha1.FirmwareSchema) { o.OwnerReferences = []metav1.OwnerReference{{UID: "u"}} }),
		schema("elsewhere", func(o *v1alpha1.FirmwareSchema) { o.Namespace = "other" }),
	}
	settings := []*v1alpha1.HostFirmwareSettings{{}, {}}
	for i, name := range []string{"used", "elsewhere"} {
		settings[i].Status.FirmwareSchema = &v1alpha1.SchemaReference{Namespace: "lab", Name: name}
	}
	var got []string
	for _, o := range leftOver(schemas, settings, now) {
		got = append(got, o.Name)
	}
	if diff := cmp.Diff([]string{"left", "elsewhere"}, got); diff != "" {
		t.Errorf("left over (-want +got):\n%s", diff)
	}
}

// Machines with the same settings share a schema, whatever the order and the values.
func TestSchemaNames(t *testing.T) {
	a, b, c := machine(), machine(), machine()
	b.Settings = nil
	c.Schema["NumCores"] = v1alpha1.SettingSchema{AttributeType: v1alpha1.AttributeInteger, LowerBound: new(2)}
	if schemaName(a.Schema) != schemaName(b.Schema) || schemaName(a.Schema) == schemaName(c.Schema) {
		t.Errorf("names %s, %s and %s", schemaName(a.Schema), schemaName(b.Schema), schemaName(c.Schema))
	}
}
