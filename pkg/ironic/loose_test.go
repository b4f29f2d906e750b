package ironic_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/pkg/ironic"
)

// B27: one odd attribute does not take the others with it.
func TestOddBIOSSettings(t *testing.T) {
	a := newAPI(t)
	a.on("GET /nodes/"+uuid1+"/bios", answer(200, `{"bios": [
		{"name": "Turbo", "value": "Enabled", "attribute_type": "Enumeration", "allowable_values": ["Enabled", "Disabled"], "read_only": false},
		{"name": "Cores", "value": 10, "attribute_type": "Integer", "lower_bound": 1, "upper_bound": null},
		{"name": "Quiet", "value": true},
		{"name": "Nothing", "value": null},
		{"name": "Bound", "value": "1", "lower_bound": "low", "max_length": 8},
		{"name": "Two words", "value": "x y"}]}`))
	got, err := a.client(nil).BIOS(t.Context(), uuid1)
	if err != nil {
		t.Fatal(err)
	}
	one, eight, no := 1, 8, false
	want := []ironic.BIOSSetting{
		{Name: "Turbo", Value: "Enabled", AttributeType: "Enumeration", AllowableValues: []string{"Enabled", "Disabled"}, ReadOnly: &no},
		{Name: "Cores", Value: "10", AttributeType: "Integer", LowerBound: &one},
		{Name: "Quiet", Value: "true"},
		{Name: "Nothing", Null: true},
		{Name: "Bound", Value: "1", MaxLength: &eight},
		{Name: "Two words", Value: "x y"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestFirmwareComponents(t *testing.T) {
	a := newAPI(t)
	a.on("GET /nodes/"+uuid1+"/firmware", answer(200, `{"firmware": [
		{"component": "bios", "initial_version": "1", "current_version": "2", "last_version_flashed": null, "updated_at": null},
		{"component": "nic:AB12", "initial_version": "7", "current_version": null, "updated_at": "2026-01-02T03:04:05+00:00"},
		{"component": "cpld", "initial_version": "0"}]}`))
	got, err := a.client(nil).Firmware(t.Context(), uuid1)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range got {
		names = append(names, f.Component)
	}
	if diff := cmp.Diff([]string{"bios", "nic:AB12"}, names); diff != "" {
		t.Errorf("components (-want +got):\n%s", diff)
	}
	if got[1].UpdatedAt.Year() != 2026 || got[0].CurrentVersion != "2" {
		t.Errorf("components %+v", got)
	}
}

// Hardware tells of itself in many forms, and none of them is an error.
func TestLooseInventory(t *testing.T) {
	a := newAPI(t)
	a.on("GET /nodes/"+uuid1+"/inventory", answer(200, `{
		"inventory": {"cpu": {"frequency": "2100.0000", "count": "16", "flags": ["b", null]}, "memory": {"physical_mb": null, "total": 12},
			"interfaces": [{"name": null, "mac_address": "00:00:5e:00:53:01", "vendor": 32902, "speed_mbps": "25000"}],
			"disks": [{"name": "/dev/sda", "size": 1e12, "rotational": null, "vendor": {"odd": 1}}]},
		"plugin_data": {"all_interfaces": ["of another form"], "parsed_lldp": {"eth0": {"switch_port_vlans": [{"id": "7", "name": "x"}]}}, "memory_mb": "64"}}`))
	got, err := a.client(nil).Inventory(t.Context(), uuid1)
	if err != nil {
		t.Fatal(err)
	}
	hw := got.Hardware
	if hw.CPU.Frequency.Value != 2100 || hw.CPU.Count.Value != 16 || hw.Memory.PhysicalMB.Known || hw.Memory.Total.Value != 12 {
		t.Errorf("cpu %+v, memory %+v", hw.CPU, hw.Memory)
	}
	if n := hw.Interfaces[0]; n.Name != "" || n.Vendor != "32902" || n.SpeedMbps.Value != 25000 {
		t.Errorf("interface %+v", n)
	}
	if d := hw.Disks[0]; d.Size.Value != 1e12 || d.Rotational.Known || d.Vendor != "" {
		t.Errorf("disk %+v", d)
	}
	if v := got.Extra.LLDP["eth0"].VLANs; len(v) != 1 || v[0].ID.Value != 7 || got.Extra.MemoryMB.Value != 64 || got.Extra.Interfaces != nil {
		t.Errorf("plugin data %+v", got.Extra)
	}
}
