package bmcaddress

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// DriverInfo is what Ironic needs to know to speak with a BMC. It holds the
// password; printed or logged it does not show it.
type DriverInfo map[string]any

// DriverInfo is the address with a login, in the terms of its Ironic driver. A
// key that would only repeat Ironic's default is left out.
func (a Address) DriverInfo(username, password string) DriverInfo {
	if a.IsRedfish() {
		return a.redfishInfo(username, password)
	}
	info := DriverInfo{
		"ipmi_address":    a.Host,
		"ipmi_port":       a.PortOrDefault(),
		"ipmi_username":   username,
		"ipmi_password":   password,
		"ipmi_priv_level": a.PrivilegeLevel(),
	}
	if a.SkipVerify {
		info["ipmi_verify_ca"] = false
	}
	return info
}

func (a Address) redfishInfo(username, password string) DriverInfo {
	info := DriverInfo{
		"redfish_address":  a.BaseURL(),
		"redfish_username": username,
		"redfish_password": password,
	}
	if path := a.SystemPath(); path != "" {
		info["redfish_system_id"] = path
	}
	if a.SkipVerify {
		info["redfish_verify_ca"] = false
	}
	return info
}

// String names the keys only.
func (d DriverInfo) String() string {
	return "DriverInfo(" + strings.Join(slices.Sorted(maps.Keys(d)), ", ") + ")"
}

// GoString names the keys only.
func (d DriverInfo) GoString() string { return d.String() }

// LogValue names the keys only.
func (d DriverInfo) LogValue() slog.Value { return slog.StringValue(d.String()) }
