package ironic

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/metalbus/metalbus/pkg/ironic"
)

// firmwareSteps are the steps that bring a machine to the firmware that is wanted,
// given its present settings: nothing where it is so already.
func firmwareSteps(w FirmwareWish, present map[string]string) []ironic.Step {
	var steps []ironic.Step
	if s := settingsThatDiffer(w, present); len(s) > 0 {
		steps = append(steps, ironic.Step{Interface: "bios", Name: "apply_configuration", Args: map[string]any{"settings": s}})
	}
	var updates []any
	for _, u := range w.Updates {
		updates = append(updates, map[string]any{"component": u.Component, "url": u.URL})
	}
	if len(updates) > 0 {
		steps = append(steps, ironic.Step{Interface: "firmware", Name: "update", Args: map[string]any{"settings": updates}})
	}
	return steps
}

// settingsThatDiffer are the settings that the machine has not got, by name. 10 and
// "10" are the same.
func settingsThatDiffer(w FirmwareWish, present map[string]string) []any {
	var names []string
	for name, wanted := range w.Settings {
		if have, known := present[name]; !known || have != wanted.String() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var list []any
	for _, name := range names {
		list = append(list, map[string]any{"name": name, "value": plainValue(w.Settings[name])})
	}
	return list
}

func plainValue(v intstr.IntOrString) any {
	if v.Type == intstr.Int {
		return v.IntVal
	}
	return v.StrVal
}
