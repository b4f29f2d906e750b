package ironic

import (
	"strconv"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// firmwareSteps are the steps that make the changes.
func firmwareSteps(c lifecycle.Changes) []ironic.Step {
	var steps []ironic.Step
	if len(c.Settings) > 0 {
		var settings []any
		for _, s := range c.Settings {
			settings = append(settings, map[string]any{"name": s.Name, "value": plainValue(s)})
		}
		steps = append(steps, ironic.Step{Interface: "bios", Name: "apply_configuration", Args: map[string]any{"settings": settings}})
	}
	if len(c.Updates) > 0 {
		var updates []any
		for _, u := range c.Updates {
			updates = append(updates, map[string]any{"component": u.Component, "url": u.URL})
		}
		steps = append(steps, ironic.Step{Interface: "firmware", Name: "update", Args: map[string]any{"settings": updates}})
	}
	return steps
}

// plainValue is a value as BMCs want it.
func plainValue(s event.SettingChange) any {
	if n, err := strconv.ParseInt(s.To, 10, 64); s.Number && err == nil {
		return n
	}
	return s.To
}

// refuseUpdates: an Ironic that knows no firmware of components cannot update it.
func (v view) refuseUpdates(c lifecycle.Changes) error {
	if err := v.version.Needs(ironic.FeatureFirmwareInterface); err != nil && len(c.Updates) > 0 {
		return problemError(v.kind, event.ClassUnsupported, err.Error(), "Remove the updates from HostFirmwareComponents, or use a newer Ironic; it is tried again at once")
	}
	return nil
}
