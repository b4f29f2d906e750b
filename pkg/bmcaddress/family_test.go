package bmcaddress_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/metalbus/metalbus/pkg/bmcaddress"
)

func parse(t *testing.T, address string, skipVerify bool) bmcaddress.Address {
	t.Helper()
	a, err := bmcaddress.Parse(address, skipVerify)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestFamilies(t *testing.T) {
	t.Parallel()
	redfish := func(boot string) bmcaddress.Interfaces {
		return bmcaddress.Interfaces{Boot: boot, Firmware: "redfish", RAID: "redfish", FastInspect: "redfish"}
	}
	idrac := func(boot string) bmcaddress.Interfaces {
		return bmcaddress.Interfaces{
			BIOS: "idrac-redfish", Boot: boot, Firmware: "redfish", Management: "idrac-redfish", Power: "idrac-redfish",
			RAID: "idrac-redfish", Vendor: "idrac-redfish", FastInspect: "redfish",
		}
	}
	ipmi := bmcaddress.Interfaces{Boot: "ipxe", RAID: "no-raid"}
	network := bmcaddress.Capabilities{
		NeedsProvisioningNetwork: true, SecureBoot: true, HardwareRAID: true, FastInspection: true, Firmware: true, Events: true, DataImage: true,
	}
	media := network
	media.NeedsProvisioningNetwork, media.ISOPreprovisioningImage = false, true
	tests := map[string]bmcaddress.Family{
		"ipmi":                 {Driver: "ipmi", Interfaces: ipmi, Capabilities: bmcaddress.Capabilities{NeedsProvisioningNetwork: true}},
		"libvirt":              {Driver: "ipmi", Interfaces: ipmi, Capabilities: bmcaddress.Capabilities{NeedsProvisioningNetwork: true, NeedsMAC: true}},
		"redfish":              {Driver: "redfish", Interfaces: redfish("ipxe"), Capabilities: network},
		"ilo5-redfish":         {Driver: "redfish", Interfaces: redfish("ipxe"), Capabilities: network},
		"idrac-redfish":        {Driver: "idrac", Interfaces: idrac("ipxe"), Capabilities: network},
		"redfish-virtualmedia": {Driver: "redfish", Interfaces: redfish("redfish-virtual-media"), Capabilities: media},
		"ilo5-virtualmedia":    {Driver: "redfish", Interfaces: redfish("redfish-virtual-media"), Capabilities: media},
		"idrac-virtualmedia":   {Driver: "idrac", Interfaces: idrac("idrac-redfish-virtual-media"), Capabilities: media},
		"redfish-uefihttp":     {Driver: "redfish", Interfaces: redfish("redfish-https"), Capabilities: media},
	}
	for base, want := range tests {
		for _, suffix := range suffixes(want) {
			t.Run(base+suffix, func(t *testing.T) {
				t.Parallel()
				checkFamily(t, parse(t, base+suffix+"://192.0.2.1", false), want)
			})
		}
	}
}

// suffixes are those that a type may have.
func suffixes(family bmcaddress.Family) []string {
	if family.Driver == "ipmi" {
		return []string{""}
	}
	return []string{"", "+http", "+https"}
}

func checkFamily(t *testing.T, a bmcaddress.Address, want bmcaddress.Family) {
	t.Helper()
	if diff := cmp.Diff(want, a.Family(), cmpopts.IgnoreUnexported(bmcaddress.Family{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(want.Capabilities, a.Capabilities()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got, want := a.IsRedfish(), want.Driver != "ipmi"; got != want {
		t.Errorf("IsRedfish() = %t, want %t", got, want)
	}
}

func TestDriverInfo(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		address    string
		skipVerify bool
		want       bmcaddress.DriverInfo
	}{
		"IPMI with everything left out": {
			address: "192.0.2.1",
			want: bmcaddress.DriverInfo{
				"ipmi_address": "192.0.2.1", "ipmi_port": "623", "ipmi_username": "u", "ipmi_password": "p", "ipmi_priv_level": "ADMINISTRATOR",
			},
		},
		"IPMI with everything given": {
			address: "ipmi://[2001:db8::10]:6230?privilegelevel=OPERATOR&privilegelevel=USER", skipVerify: true,
			want: bmcaddress.DriverInfo{
				"ipmi_address": "2001:db8::10", "ipmi_port": "6230", "ipmi_username": "u", "ipmi_password": "p",
				"ipmi_priv_level": "OPERATOR", "ipmi_verify_ca": false,
			},
		},
		"Redfish with everything left out": {
			address: "redfish://192.0.2.1",
			want:    bmcaddress.DriverInfo{"redfish_address": "https://192.0.2.1", "redfish_username": "u", "redfish_password": "p"},
		},
		"Redfish with everything given": {
			address: "idrac-virtualmedia+http://[2001:db8::10]:8000/redfish/v1/Systems/System.Embedded.1", skipVerify: true,
			want: bmcaddress.DriverInfo{
				"redfish_address": "http://[2001:db8::10]:8000", "redfish_username": "u", "redfish_password": "p",
				"redfish_system_id": "/redfish/v1/Systems/System.Embedded.1", "redfish_verify_ca": false,
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, parse(t, tt.address, tt.skipVerify).DriverInfo("u", "p")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestDriverInfoHidesThePassword(t *testing.T) {
	t.Parallel()
	info := parse(t, "redfish://192.0.2.1", false).DriverInfo("admin", "hunter2")
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("made", "info", info)
	for _, text := range []string{fmt.Sprint(info), fmt.Sprintf("%+v", info), fmt.Sprintf("%#v", info), log.String()} {
		if strings.Contains(text, "hunter2") || !strings.Contains(text, "redfish_password") {
			t.Errorf("printed as %s", text)
		}
	}
}

func TestRedfishClientAddress(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ base, port string }{
		"redfish://192.0.2.1/redfish/v1/Systems/1": {base: "https://192.0.2.1", port: "443"},
		"redfish+http://192.0.2.1":                 {base: "http://192.0.2.1", port: "80"},
		"redfish-virtualmedia+https://h:8443":      {base: "https://h:8443", port: "8443"},
		"redfish://[2001:db8::10]:8443":            {base: "https://[2001:db8::10]:8443", port: "8443"},
		"redfish://[fe80::1%25eth0]":               {base: "https://[fe80::1%25eth0]", port: "443"},
		"ipmi://192.0.2.1":                         {port: "623"},
		"libvirt://192.0.2.1:6230":                 {port: "6230"},
	}
	for address, want := range tests {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			a := parse(t, address, false)
			if got := a.BaseURL(); got != want.base {
				t.Errorf("BaseURL() = %q, want %q", got, want.base)
			}
			if got := a.PortOrDefault(); got != want.port {
				t.Errorf("PortOrDefault() = %q, want %q", got, want.port)
			}
		})
	}
}

func TestHostIsLiteral(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"192.0.2.1": true, "ipmi://[2001:db8::10]": true, "ipmi://[fe80::1%25eth0]": true, "bmc.example.com": false, "redfish://": false,
	} {
		if got := parse(t, address, false).HostIsLiteral(); got != want {
			t.Errorf("%s: HostIsLiteral() = %t, want %t", address, got, want)
		}
	}
}
