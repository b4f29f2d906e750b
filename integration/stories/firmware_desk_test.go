package stories_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube/firmware"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// form is what a user wants of a host's firmware where the table alone tells a story.
// What the objects show of it is not told there.
type form struct {
	settings                    map[string]string
	updates                     []v1alpha1.FirmwareUpdate
	settingsInUse, updatesInUse bool
}

// wishFirmware is what the lines settings, updates and policy do there.
func (m *memory) wishFirmware(kind string, args []string) error {
	f := &m.form
	switch kind {
	case "settings":
		f.settings = map[string]string{}
	case "updates":
		f.updates = nil
	default:
		f.settingsInUse, f.updatesInUse = false, false
	}
	for _, a := range args {
		name, value, ok := strings.Cut(a, "=")
		switch {
		case !ok:
			return fmt.Errorf("%q: want a name and a value", a)
		case kind == "settings":
			f.settings[name] = strings.Trim(value, `"`)
		case kind == "updates":
			f.updates = append(f.updates, v1alpha1.FirmwareUpdate{Component: name, URL: value})
		case name == "firmwareSettings":
			f.settingsInUse = value == "onReboot"
		case name == "firmwareUpdates":
			f.updatesInUse = value == "onReboot"
		default:
			return fmt.Errorf("HostUpdatePolicy has no field %q", name)
		}
	}
	m.hear()
	return nil
}

// firmware is what is to be changed, given what was read of the machine.
func (m *memory) firmware(h lifecycle.Host) *event.FirmwareWish {
	digest := lifecycle.Firmware(h).Digest
	if digest == "" {
		return nil
	}
	var known event.Firmware
	if err := m.GetData(context.Background(), h.UID, event.DataFirmware, digest, &known); err != nil {
		m.t.Fatal(err)
	}
	w := event.FirmwareWish{SettingsInUse: m.form.settingsInUse, UpdatesInUse: m.form.updatesInUse}
	for _, name := range slices.Sorted(maps.Keys(m.form.settings)) {
		if to := m.form.settings[name]; known.Settings[name] != to {
			_, err := strconv.ParseInt(to, 10, 64)
			w.Settings = append(w.Settings, event.SettingChange{Name: name, From: known.Settings[name], To: to, Number: err == nil})
		}
	}
	done := h.Provisioning.Firmware
	for _, u := range m.form.updates {
		if done == nil || !slices.Contains(done.Installed, u) {
			w.Updates = append(w.Updates, u)
		}
	}
	if len(w.Settings)+len(w.Updates) == 0 {
		return nil
	}
	return firmware.Named(&w, h.Intent.Firmware, fmt.Sprintf("r%d", h.Rev+1))
}
