package ironictest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Setting is a BIOS setting of every machine.
type Setting struct {
	Name, Type, Value string
	Allowed           []string
	Low, High         any
	ReadOnly          bool
}

// biosSettings are what every machine has.
func biosSettings() []Setting {
	return []Setting{
		{Name: "BootMode", Type: "Enumeration", Value: "Uefi", Allowed: []string{"Bios", "Uefi"}},
		{Name: "NumaNodes", Type: "Integer", Value: "1", Low: 1, High: 4},
		{Name: "ProcVirtualization", Type: "Enumeration", Value: "Enabled", Allowed: []string{"Enabled", "Disabled"}},
		{Name: "SriovGlobalEnable", Type: "Enumeration", Value: "Disabled", Allowed: []string{"Enabled", "Disabled"}},
		{Name: "SystemModelName", Type: "String", Value: "Model 1", ReadOnly: true},
	}
}

// bios are the settings as Ironic keeps them.
func (m *Machine) bios(now any) []any {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []any
	for _, s := range biosSettings() {
		value := s.Value
		if v, set := m.settings[s.Name]; set {
			value = v
		}
		entry := obj{
			"name": s.Name, "value": value, "attribute_type": s.Type, "read_only": s.ReadOnly, "allowable_values": nil, "lower_bound": s.Low, "upper_bound": s.High, "min_length": nil, "max_length": nil,
			"unique": nil, "reset_required": nil, "created_at": now, "updated_at": nil,
		}
		if s.Allowed != nil {
			entry["allowable_values"] = s.Allowed
		}
		all = append(all, entry)
	}
	return all
}

// setSettings changes BIOS settings, all or none.
func (m *Machine) setSettings(values map[string]string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := biosSettings()
	for name := range values {
		if !slices.ContainsFunc(known, func(s Setting) bool { return s.Name == name && !s.ReadOnly }) {
			return fmt.Errorf("HTTP PATCH returned code 400. Base.1.8.PropertyUnknown: The property %s is not in the list of valid properties for the resource. Extended information: none", name)
		}
	}
	m.did(DidSetSettings, strings.Join(slices.Sorted(maps.Keys(values)), ","))
	maps.Copy(m.settings, values)
	return nil
}

// applySettings is the step bios.apply_configuration.
func (o *operation) applySettings(s step, wait, wake string) error {
	wanted := map[string]string{}
	list, _ := s.args["settings"].([]any)
	for _, x := range list {
		entry, _ := x.(obj)
		name, _ := entry["name"].(string)
		wanted[name] = fmt.Sprint(entry["value"])
	}
	if err := o.reach(func(m *Machine) error { return m.setSettings(wanted) }); err != nil {
		return err
	}
	if err := o.rebooted(wait, wake); err != nil {
		return err
	}
	return o.readRecords()
}

// updateFirmware is the step firmware.update, and the older
// management.update_firmware.
func (o *operation) updateFirmware(s step, wait, wake string) error {
	list, _ := s.args["settings"].([]any)
	for _, x := range list {
		entry, _ := x.(obj)
		component, _ := entry["component"].(string)
		address, _ := entry["url"].(string)
		if err := o.updateOne(component, address, wait, wake); err != nil {
			return err
		}
	}
	return o.readRecords()
}

func (o *operation) updateOne(component, address, wait, wake string) error {
	if err := o.goTo(wait); err != nil {
		return err
	}
	if err := o.pause(o.i.cfg.Delays.Step); err != nil {
		return err
	}
	if err := o.goTo(wake); err != nil {
		return err
	}
	if err := o.reach(func(m *Machine) error {
		if err := o.i.fetch(address, ""); err != nil {
			return says("Firmware update failed for node %s, firmware %s. Error: %s", o.n.uuid, address, err)
		}
		return m.update(o.n.uuid, component, address)
	}); err != nil {
		return err
	}
	if component == "bmc" {
		return nil
	}
	return o.rebooted(wait, wake)
}

// update changes the firmware of a component to what the file's name says:
// bios-2.0.0.bin, bmc-2.1.0.bin, nic-3.1.bin.
func (m *Machine) update(node, component, address string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.firmware[component]; !known {
		return says("Firmware component %s is not valid or not supported", component)
	}
	m.did(DidUpdate, component)
	if m.faults.FailUpdate {
		return says("Firmware update failed for node %s, firmware %s. Error: the image %s failed verification", node, address, address)
	}
	name := strings.TrimSuffix(address[strings.LastIndex(address, "/")+1:], ".bin")
	if _, version, dashed := strings.Cut(name, "-"); dashed {
		m.firmware[component] = version
	}
	return nil
}

// firmwareOf are the components as Ironic keeps them. Up to 29 it knows of no
// network cards.
func (m *Machine) firmwareOf(r Release, old []any, now any) []any {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []any
	for _, c := range slices.Sorted(maps.Keys(m.firmware)) {
		if r < Ironic39 && strings.HasPrefix(c, "nic:") {
			continue
		}
		entry := obj{"component": c, "initial_version": m.firmware[c], "current_version": m.firmware[c], "last_version_flashed": nil, "created_at": now, "updated_at": nil}
		if r >= Ironic39 {
			entry["vendor"], entry["model"], entry["serial_number"] = nil, nil, nil
		}
		for _, x := range old {
			before, _ := x.(obj)
			if before["component"] != c {
				continue
			}
			entry["initial_version"], entry["created_at"] = before["initial_version"], before["created_at"]
			entry["last_version_flashed"], entry["updated_at"] = before["last_version_flashed"], before["updated_at"]
			if before["current_version"] != m.firmware[c] {
				entry["last_version_flashed"], entry["updated_at"] = m.firmware[c], now
			}
		}
		all = append(all, entry)
	}
	return all
}

// readRecords reads settings and firmware, where the node's interfaces can, and
// the power.
func (o *operation) readRecords() error {
	now := stamp(o.i.cfg.Now())
	var old []any
	if err := o.with(func(n *node) { old = n.records.firmware }); err != nil {
		return err
	}
	var bios, firmware []any
	on := false
	if err := o.look(func(m *Machine) {
		on, bios, firmware = m.isOn(), m.bios(now), m.firmwareOf(o.i.cfg.Release, old, now)
	}); err != nil {
		return err
	}
	return o.with(func(n *node) {
		n.state.power = powerText(on)
		if n.text("bios_interface") == "redfish" {
			n.records.bios = bios
		}
		if n.text("firmware_interface") == "redfish" {
			n.records.firmware = firmware
		}
	})
}

func getBIOS(c *call) (answer, error) {
	n, err := c.node()
	if err != nil {
		return nothing(err)
	}
	want := []string{"created_at", "updated_at", "links", "name", "value"}
	if f := c.r.URL.Query().Get("fields"); f != "" {
		want = append(strings.Split(f, ","), "links")
	}
	detail := c.r.URL.Query().Get("detail") == "true"
	rows := []any{}
	for _, x := range n.records.bios {
		row, _ := x.(obj)
		row = maps.Clone(row)
		name, _ := row["name"].(string)
		row["links"] = links(c.base, "nodes", n.uuid+"/bios/"+name)
		if !detail {
			maps.DeleteFunc(row, func(k string, _ any) bool { return !slices.Contains(want, k) })
		}
		rows = append(rows, row)
	}
	return ok(obj{"bios": rows})
}

func getFirmware(c *call) (answer, error) {
	if err := c.needs(minorFirmware); err != nil {
		return nothing(err)
	}
	n, err := c.node()
	if err != nil {
		return nothing(err)
	}
	rows := n.records.firmware
	if rows == nil {
		rows = []any{}
	}
	return ok(obj{"firmware": rows})
}

func getInventory(c *call) (answer, error) {
	if err := c.needs(minorInventory); err != nil {
		return nothing(err)
	}
	n, err := c.node()
	if err != nil {
		return nothing(err)
	}
	if n.records.inventory == nil {
		return nothing(refuse(http.StatusNotFound, "Node inventory record for node %d could not be found.", n.seq))
	}
	return ok(n.records.inventory)
}
