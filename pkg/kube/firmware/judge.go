package firmware

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
)

// verdict is what comes of what users want of settings or updates.
type verdict struct {
	// faults say what is wrong. Nothing is changed unless there are none.
	faults []string
	// differ names what is not as it is wanted.
	differ []string
	// settings and updates are what is to be changed.
	settings []event.SettingChange
	updates  []v1alpha1.FirmwareUpdate
}

// judgeSettings compares the settings that are wanted with those that the machine
// has. 10 and "10" are the same.
func judgeSettings(want v1alpha1.DesiredSettingsMap, f event.Firmware) verdict {
	var v verdict
	for _, name := range slices.Sorted(maps.Keys(want)) {
		value := want[name]
		have, known := f.Settings[name]
		if known && have == value.String() {
			continue
		}
		v.differ = append(v.differ, name)
		if err := settingFault(name, value, f); err != nil {
			v.faults = append(v.faults, err.Error())
			continue
		}
		v.settings = append(v.settings, event.SettingChange{Name: name, From: have, To: value.String(), Number: number(value, f.Schema[name])})
	}
	if len(v.faults) > 0 {
		v.settings = nil
	}
	return v
}

// settingFault says why a setting cannot have a value.
func settingFault(name string, value intstr.IntOrString, f event.Firmware) error {
	schema, known := f.Schema[name]
	_, read := f.Settings[name]
	switch {
	case strings.Contains(name, v1alpha1.AttributePassword):
		return fmt.Errorf("cannot set Password field %s", name)
	case !read && slices.Contains(f.Odd, name):
		return fmt.Errorf("setting %s has no value that can be read, so it cannot be set", name)
	case !read:
		return fmt.Errorf("setting %s is not in the Status field", name)
	case !known:
		return nil // nobody has said what it may be
	default:
		return schema.Validate(name, value)
	}
}

// number reports whether the BMC wants the value as a number.
func number(value intstr.IntOrString, schema v1alpha1.SettingSchema) bool {
	if schema.AttributeType == "" {
		return value.Type == intstr.Int
	}
	return schema.AttributeType == v1alpha1.AttributeInteger
}

// judgeUpdates finds the updates that were not installed yet. One with a login in
// its URL cannot be; those that were have none here.
func judgeUpdates(o *v1alpha1.HostFirmwareComponents, installed []v1alpha1.FirmwareUpdate) verdict {
	var v verdict
	if err := o.ValidateHostFirmwareComponents(); err != nil {
		v.faults = strings.Split(err.Error(), "\n")
	}
	for i, u := range withoutLogins(o.Spec.Updates) {
		if slices.Contains(installed, u) {
			continue
		}
		v.differ = append(v.differ, u.Component)
		v.updates = append(v.updates, u)
		for _, err := range admission.UpdateLogins(i, o.Spec.Updates[i]) {
			v.faults = append(v.faults, err.Error())
		}
	}
	if len(v.faults) > 0 {
		v.updates = nil
	}
	return v
}

// withoutLogins are updates as they may be shown.
func withoutLogins(list []v1alpha1.FirmwareUpdate) []v1alpha1.FirmwareUpdate {
	list = slices.Clone(list)
	for i := range list {
		list[i].URL = v1alpha1.WithoutLogin(list[i].URL)
	}
	return list
}

// wish is what is to be changed, given when users let that be done; nil if nothing
// is to be. installed is what the object says is installed, where the bus does not
// know.
func wish(settings, updates verdict, policy *v1alpha1.HostUpdatePolicy, installed []v1alpha1.FirmwareUpdate) *event.FirmwareWish {
	if len(settings.settings)+len(updates.updates) == 0 {
		return nil
	}
	w := &event.FirmwareWish{Settings: settings.settings, Updates: updates.updates}
	if len(w.Updates) > 0 {
		w.Installed = installed
	}
	if policy != nil {
		w.SettingsInUse = len(w.Settings) > 0 && policy.Spec.FirmwareSettings == v1alpha1.HostUpdatePolicyOnReboot
		w.UpdatesInUse = len(w.Updates) > 0 && policy.Spec.FirmwareUpdates == v1alpha1.HostUpdatePolicyOnReboot
	}
	return w
}

// Named is a wish with its ID: that of the wish before if it asks for nothing more,
// else a new one.
func Named(w, before *event.FirmwareWish, newID string) *event.FirmwareWish {
	if w == nil {
		return nil
	}
	named := *w
	switch {
	case len(w.Settings) == 0:
	case before != nil && before.ID != "" && !slices.ContainsFunc(w.Settings, func(s event.SettingChange) bool { return !slices.Contains(before.Settings, s) }):
		named.ID = before.ID
	default:
		named.ID = newID
	}
	return &named
}

// same reports whether two wishes ask the same, whatever they are called.
func same(a, b *event.FirmwareWish) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.SettingsInUse == b.SettingsInUse && a.UpdatesInUse == b.UpdatesInUse && slices.Equal(a.Settings, b.Settings) &&
		slices.Equal(a.Updates, b.Updates) && slices.Equal(a.Installed, b.Installed)
}

// names are at most so many names, for people.
func names(list []string) string {
	const most = 20
	slices.SortFunc(list, cmp.Compare[string])
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}
