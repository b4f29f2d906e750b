package ironictest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// kind is what a value of a field must be.
type kind int

const (
	isText kind = iota
	isBool
	isObject
	isUUID
	isInterface
)

// setting is a field of a node that its owner may set.
type setting struct {
	name      string
	kind      kind
	since     int // first minor of the API that has it
	patchOnly bool
	postOnly  bool
	preset    any // its value while nobody has set it
}

// settings are the fields of nodes that can be set, in the order of their names.
func settings() []setting {
	return []setting{
		{name: "automated_clean", kind: isBool, since: 47},
		{name: "bios_interface", kind: isInterface, since: 40},
		{name: "boot_interface", kind: isInterface, since: 31},
		{name: "chassis_uuid", kind: isUUID},
		{name: "conductor_group", since: 46, preset: ""},
		{name: "console_interface", kind: isInterface, since: 31},
		{name: "deploy_interface", kind: isInterface, since: 31},
		{name: "description", since: 51},
		{name: "disable_power_off", kind: isBool, since: 95, preset: false},
		{name: "driver"},
		{name: "driver_info", kind: isObject, preset: obj{}},
		{name: "extra", kind: isObject, preset: obj{}},
		{name: "firmware_interface", kind: isInterface, since: 86},
		{name: "inspect_interface", kind: isInterface, since: 31},
		{name: "instance_info", kind: isObject, preset: obj{}},
		{name: "instance_name", since: 104},
		{name: "instance_uuid", kind: isUUID},
		{name: "lessee", since: 65},
		{name: "management_interface", kind: isInterface, since: 31},
		{name: "maintenance", kind: isBool, preset: false},
		{name: "name"},
		{name: "network_data", kind: isObject, since: 66, preset: obj{}},
		{name: "network_interface", kind: isInterface, since: 20},
		{name: "owner", since: 50},
		{name: "parent_node", since: 83},
		{name: "power_interface", kind: isInterface, since: 31},
		{name: "properties", kind: isObject, preset: obj{}},
		{name: "protected", kind: isBool, since: 48, patchOnly: true, preset: false},
		{name: "protected_reason", since: 48, patchOnly: true},
		{name: "raid_interface", kind: isInterface, since: 31},
		{name: "rescue_interface", kind: isInterface, since: 38},
		{name: "resource_class", since: 21},
		{name: "retired", kind: isBool, since: 61, preset: false},
		{name: "retired_reason", since: 61},
		{name: "shard", since: 82},
		{name: "storage_interface", kind: isInterface, since: 33},
		{name: "uuid", kind: isUUID, postOnly: true},
		{name: "vendor_interface", kind: isInterface, since: 31},
	}
}

func findSetting(name string) (setting, bool) {
	all := settings()
	i := slices.IndexFunc(all, func(s setting) bool { return s.name == name })
	if i < 0 {
		return setting{}, false
	}
	return all[i], true
}

var (
	uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$`)
	nameForm = regexp.MustCompile(`^[A-Za-z0-9~._-]+$`)
	macForm  = regexp.MustCompile(`^([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}$`)
)

func isUUIDText(s string) bool { return uuidForm.MatchString(s) }

// accept checks a value for a setting and gives it in its form of record. Null
// means the preset.
func (s setting) accept(v any) (any, error) {
	if v == nil {
		return s.preset, nil
	}
	text, isString := v.(string)
	switch s.kind {
	case isBool:
		return s.acceptBool(v)
	case isObject:
		if o, good := v.(map[string]any); good {
			return o, nil
		}
		return nil, s.wrongType(v, "'object', 'null'")
	case isUUID:
		if isString && isUUIDText(text) {
			return text, nil
		}
		return nil, bad("Expected UUID for %s: %v", s.name, v)
	default:
		if isString {
			return text, nil
		}
		return nil, s.wrongType(v, "'string', 'null'")
	}
}

func (s setting) wrongType(v any, want string) error {
	return bad("Schema error for node: %v is not of type %s", v, want)
}

func (s setting) acceptBool(v any) (any, error) {
	switch x := v.(type) {
	case bool:
		return x, nil
	case string:
		switch strings.ToLower(x) {
		case "1", "t", "true", "on", "y", "yes":
			return true, nil
		case "0", "f", "false", "off", "n", "no":
			return false, nil
		}
		return nil, bad("Invalid %s: Unrecognized value '%s', acceptable values are: '0', '1', 'f', 'false', 'n', 'no', 'off', 'on', 't', 'true', 'y', 'yes'", s.name, x)
	default:
		return nil, s.wrongType(v, "'string', 'boolean', 'null'")
	}
}

// hardwareType is a driver, and the interfaces that it may have: the first of each
// is what it has if nobody chooses.
type hardwareType struct {
	name       string
	interfaces map[string][]string
}

// drivers are the hardware types of a release.
func (r Release) drivers() []hardwareType {
	common := func(own map[string][]string) map[string][]string {
		all := map[string][]string{
			"console": {"no-console"}, "deploy": {"direct", "ramdisk", "custom-agent"}, "network": {"noop"}, "rescue": {"no-rescue", "agent"}, "storage": {"noop"},
		}
		maps.Copy(all, own)
		if r < Ironic29 {
			delete(all, "firmware")
		}
		return all
	}
	inspect := func(first ...string) []string {
		if r >= Ironic29 {
			return append(first, "agent", "no-inspect")
		}
		return append(first, "no-inspect")
	}
	fakes := map[string][]string{
		"bios": {"fake", "no-bios"}, "boot": {"fake"}, "deploy": {"fake"}, "firmware": {"fake", "no-firmware"}, "inspect": {"fake", "no-inspect"}, "management": {"fake", "noop"},
		"power": {"fake"}, "raid": {"fake", "no-raid"}, "rescue": {"fake", "no-rescue"}, "vendor": {"fake", "no-vendor"},
	}
	return []hardwareType{
		{"fake-hardware", common(fakes)},
		{"ipmi", common(map[string][]string{
			"bios": {"no-bios"}, "boot": {"ipxe", "pxe"}, "firmware": {"no-firmware"}, "inspect": inspect(), "management": {"ipmitool"}, "power": {"ipmitool"}, "raid": {"no-raid", "agent"}, "vendor": {"ipmitool", "no-vendor"},
		})},
		{"manual-management", common(map[string][]string{
			"bios": {"no-bios"}, "boot": {"ipxe", "pxe"}, "firmware": {"no-firmware"}, "inspect": inspect(), "management": {"noop"}, "power": {"fake", "agent"}, "raid": {"no-raid", "agent"}, "vendor": {"no-vendor"},
		})},
		{"redfish", common(map[string][]string{
			"bios": {"redfish", "no-bios"}, "boot": {"ipxe", "pxe", "redfish-virtual-media"}, "firmware": {"redfish", "no-firmware"}, "inspect": inspect("redfish"), "management": {"redfish"}, "power": {"redfish"},
			"raid": {"redfish", "agent", "no-raid"}, "vendor": {"redfish", "no-vendor"},
		})},
	}
}

func (r Release) driver(name string) (hardwareType, bool) {
	all := r.drivers()
	i := slices.IndexFunc(all, func(h hardwareType) bool { return h.name == name })
	if i < 0 {
		return hardwareType{}, false
	}
	return all[i], true
}

// equip gives the settings of a node its driver's interfaces where none is chosen,
// and tells what is wrong with those that are.
func (r Release) equip(settings obj) error {
	name, _ := settings["driver"].(string)
	h, known := r.driver(name)
	if !known {
		return bad("No valid host was found. Reason: No conductor service registered which supports driver %s for conductor group \"\". Ensure the driver is valid and enabled.", name)
	}
	for kind, valid := range h.interfaces {
		field := kind + "_interface"
		chosen, _ := settings[field].(string)
		if chosen == "" {
			settings[field] = valid[0]
			continue
		}
		if !slices.Contains(valid, chosen) {
			return bad("Could not find the following interface in the 'ironic.hardware.interfaces.%s' entrypoint: %s. Valid interfaces are %s.", kind, chosen, pythonList(r.known(kind)))
		}
	}
	return nil
}

// known are all interfaces of a kind, of any driver.
func (r Release) known(kind string) []string {
	var all []string
	for _, h := range r.drivers() {
		all = append(all, h.interfaces[kind]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// pythonList writes texts as Python shows a list of them.
func pythonList(all []string) string {
	quoted := make([]string, 0, len(all))
	for _, s := range all {
		quoted = append(quoted, fmt.Sprintf("'%s'", s))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
