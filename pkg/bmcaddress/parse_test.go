package bmcaddress_test

import (
	"strings"
	"testing"

	"github.com/metalbus/metalbus/pkg/bmcaddress"
)

func TestParseLimitsLabels(t *testing.T) {
	t.Parallel()
	for length, good := range map[int]bool{1: true, 63: true, 64: false} {
		_, err := bmcaddress.Parse("ipmi://"+strings.Repeat("a", length)+".example.com", false)
		if (err == nil) != good {
			t.Errorf("a label of %d letters: %v", length, err)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		want bmcaddress.Address
		text string // the plainest form, if it differs from the input
	}{
		"192.168.1.1":      {want: bmcaddress.Address{Type: "ipmi", Host: "192.168.1.1"}, text: "ipmi://192.168.1.1"},
		"bmc.example.com":  {want: bmcaddress.Address{Type: "ipmi", Host: "bmc.example.com"}, text: "ipmi://bmc.example.com"},
		"192.168.1.1:6233": {want: bmcaddress.Address{Type: "ipmi", Host: "192.168.1.1", Port: "6233"}, text: "ipmi://192.168.1.1:6233"},
		"[fe80::1]:623":    {want: bmcaddress.Address{Type: "ipmi", Host: "fe80::1", Port: "623"}, text: "ipmi://[fe80::1]:623"},
		"ipmi:192.168.1.1:6233": {
			want: bmcaddress.Address{Type: "ipmi", Host: "192.168.1.1", Port: "6233"}, text: "ipmi://192.168.1.1:6233",
		},
		"IPMI://192.168.1.1": {want: bmcaddress.Address{Type: "ipmi", Host: "192.168.1.1"}, text: "ipmi://192.168.1.1"},
		"ipmi://192.168.1.1?privilegelevel=OPERATOR": {
			want: bmcaddress.Address{Type: "ipmi", Host: "192.168.1.1", RawQuery: "privilegelevel=OPERATOR"},
		},
		"libvirt://192.168.122.1:6230/": {want: bmcaddress.Address{Type: "libvirt", Host: "192.168.122.1", Port: "6230", Path: "/"}},
		"redfish:1.2.3.4/redfish/v1/Systems/1": {
			want: bmcaddress.Address{Type: "redfish", Host: "1.2.3.4", Path: "/redfish/v1/Systems/1"},
			text: "redfish://1.2.3.4/redfish/v1/Systems/1",
		},
		"redfish:///x": {want: bmcaddress.Address{Type: "redfish", Path: "/x"}},
		"redfish://":   {want: bmcaddress.Address{Type: "redfish"}},
		"redfish://admin:hunter2@192.0.2.1/x#part": {
			want: bmcaddress.Address{Type: "redfish", Host: "192.0.2.1", Path: "/x"}, text: "redfish://192.0.2.1/x",
		},
		"redfish+http://192.0.2.1:8000/redfish/v1/Systems/a%2Fb": {
			want: bmcaddress.Address{Type: "redfish+http", Host: "192.0.2.1", Port: "8000", Path: "/redfish/v1/Systems/a%2Fb"},
		},
		// IPv6
		"ipmi://[2001:db8::10]":      {want: bmcaddress.Address{Type: "ipmi", Host: "2001:db8::10"}},
		"ipmi://[2001:db8::10]:6230": {want: bmcaddress.Address{Type: "ipmi", Host: "2001:db8::10", Port: "6230"}},
		"redfish+https://[2001:db8::10]:8443/redfish/v1/Systems/1": {
			want: bmcaddress.Address{Type: "redfish+https", Host: "2001:db8::10", Port: "8443", Path: "/redfish/v1/Systems/1"},
		},
		"idrac-virtualmedia://[2001:db8::10]/redfish/v1/Systems/System.Embedded.1": {
			want: bmcaddress.Address{Type: "idrac-virtualmedia", Host: "2001:db8::10", Path: "/redfish/v1/Systems/System.Embedded.1"},
		},
		"ipmi://[fe80::1%25eth0]": {want: bmcaddress.Address{Type: "ipmi", Host: "fe80::1%eth0"}},
	}
	for address, tt := range tests {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			got, err := bmcaddress.Parse(address, false)
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("Parse() = %+v, want %+v", got, tt.want)
			}
			text := tt.text
			if text == "" {
				text = address
			}
			if got.String() != text {
				t.Errorf("String() = %q, want %q", got.String(), text)
			}
		})
	}
}

func TestParseKeepsSkipVerify(t *testing.T) {
	t.Parallel()
	got, err := bmcaddress.Parse("redfish://192.0.2.1", true)
	if err != nil || !got.SkipVerify {
		t.Errorf("Parse() = %+v, %v; want SkipVerify", got, err)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const (
		unparsed = "failed to parse BMC address information: "
		noHost   = unparsed + "BMC address hostname/IP : "
		bracket  = "; write an IPv6 address in brackets: ipmi://[2001:db8::10]"
	)
	tests := map[string]string{
		"":                        "missing BMC address",
		"bmc.example.com:623":     "Unknown BMC type 'bmc.example.com' for address bmc.example.com:623; for IPMI on a port other than 623 write ipmi:// before the name",
		"bmc:623":                 "Unknown BMC type 'bmc' for address bmc:623; for IPMI on a port other than 623 write ipmi:// before the name",
		"fe80::1":                 "Unknown BMC type 'fe80' for address fe80::1; write an IPv6 address in brackets: ipmi://[fe80::1]",
		"[fe80::1]":               unparsed + `parse "[fe80::1]": first path segment in URL cannot contain colon; write an IPv6 address in brackets: ipmi://[fe80::1]`,
		"2001:db8::10":            unparsed + `parse "2001:db8::10": first path segment in URL cannot contain colon` + bracket,
		"ipmi://2001:db8::10":     noHost + "[2001:db8:] is invalid" + bracket,
		"a b":                     unparsed + `parse "ipmi://a b": invalid character " " in host name`,
		"redfish://h%zz/x":        unparsed + `parse "redfish://h%zz/x": invalid URL escape "%zz"`,
		"redfish://bad_host/x":    noHost + "[bad_host] is invalid",
		"redfish://-bad/x":        noHost + "[-bad] is invalid",
		"bmc-.example.com":        noHost + "[bmc-.example.com] is invalid",
		"bmc..example.com":        noHost + "[bmc..example.com] is invalid",
		"ipmi://[fe80::1%25a%20]": noHost + "[fe80::1%a ] is invalid",
		"1.2.3.4:a":               noHost + "[1.2.3.4:a] is invalid",
		"redfish://u:hunter2@h_h": noHost + "[h_h] is invalid",
	}
	for address, want := range tests {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			if got, err := bmcaddress.Parse(address, false); err == nil {
				t.Errorf("accepted as %+v", got)
			} else if err.Error() != want {
				t.Errorf("got  %s\nwant %s", err, want)
			}
		})
	}
}

func TestParseRefusesUnknownTypes(t *testing.T) {
	t.Parallel()
	for address, scheme := range map[string]string{
		"ipmi+http://192.0.2.1":         "ipmi+http",
		"libvirt+https://192.0.2.1":     "libvirt+https",
		"redfish+ftp://192.0.2.1":       "redfish+ftp",
		"redfish+://192.0.2.1":          "redfish+",
		"irmc://192.0.2.1":              "irmc",
		"ilo4://192.0.2.1":              "ilo4",
		"ilo5://192.0.2.1":              "ilo5",
		"idrac://192.0.2.1":             "idrac",
		"ilo4-virtualmedia://192.0.2.1": "ilo4-virtualmedia",
		"http://192.0.2.1":              "http",
		"test://192.0.2.1":              "test",
		"//192.0.2.1/x":                 "",
	} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			_, err := bmcaddress.Parse(address, false)
			if want := "Unknown BMC type '" + scheme + "' for address " + address; err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %s…", err, want)
			}
		})
	}
}

// A login in the address is ignored, and no error quotes any of it.
func TestParseErrorsHideLogins(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"irmc://admin:hunter2@192.0.2.1",
		"irmc:admin:hunter2@192.0.2.1",
		"admin:hunter2@192.0.2.1",
		"redfish://admin:hun/hunter2@192.0.2.1",
		"redfish://admin:hunter2@[::1",
		"redfish://admin:hunter2@h h/x",
		"redfish://admin:hunter2@192.0.2.1/redfish/v1/Managers/1",
		"redfish://admin:%zzhunter2@192.0.2.1",
		"1admin:hunter2@192.0.2.1",
	} {
		_, err := bmcaddress.Parse(address, false)
		if err == nil || strings.Contains(err.Error(), "hun") {
			t.Errorf("Parse(%q): %v", address, err)
		}
	}
}

// One Redfish service may hold one system or several; without a path its only
// system is meant, and a slash at the end means nothing.
func TestSystemPath(t *testing.T) {
	t.Parallel()
	paths := map[string]string{
		"":                           "",
		"/":                          "",
		"/redfish/v1":                "",
		"/redfish/v1/":               "",
		"/redfish/v1/Systems/1":      "/redfish/v1/Systems/1",
		"/redfish/v1/Systems/1/":     "/redfish/v1/Systems/1",
		"/proxy/redfish/v1/Systems/": "/proxy/redfish/v1/Systems",
	}
	for _, scheme := range redfishTypes() {
		for path, want := range paths {
			t.Run(scheme+" "+path, func(t *testing.T) {
				t.Parallel()
				a := parse(t, scheme+"://192.0.2.10"+path, false)
				if got := a.SystemPath(); got != want {
					t.Errorf("SystemPath() = %q, want %q", got, want)
				}
				id, sent := a.DriverInfo("u", "p")["redfish_system_id"]
				if sent != (want != "") || sent && id != want {
					t.Errorf("redfish_system_id = %v, want %q", id, want)
				}
			})
		}
	}
}

// Managers and chassis can not be booted.
func TestParseRefusesWhatIsNoSystem(t *testing.T) {
	t.Parallel()
	for _, scheme := range redfishTypes() {
		for _, path := range []string{"/redfish/v1/Managers/1", "/redfish/v1/Managers", "/redfish/v1/chassis/1/"} {
			t.Run(scheme+" "+path, func(t *testing.T) {
				t.Parallel()
				_, err := bmcaddress.Parse(scheme+"://192.0.2.10"+path, false)
				if err == nil || !strings.Contains(err.Error(), "use a Systems path") || !strings.Contains(err.Error(), path) {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

func redfishTypes() []string {
	var types []string
	for _, base := range []string{
		"redfish", "ilo5-redfish", "idrac-redfish", "redfish-virtualmedia", "ilo5-virtualmedia",
		"idrac-virtualmedia", "redfish-uefihttp",
	} {
		types = append(types, base, base+"+http", base+"+https")
	}
	return types
}

// What was parsed and written out again means the same, whatever it was.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "192.168.1.1", "192.168.1.1:623", "bmc.example.com:623", "fe80::1", "[fe80::1]:623", "ipmi://[fe80::1%25eth0]:1",
		"ipmi://2001:db8::10", "ipmi:192.168.1.1:6233", "ipmi://h?privilegelevel=OPERATOR", "redfish:///x", "redfish://",
		"redfish+https://u:p@[2001:db8::10]:8443/redfish/v1/Systems/a%2Fb?q=%20#f", "idrac-virtualmedia://h/redfish/v1/", "//h", ":1", "[::]:",
		"redfish://h/a b", "redfish://h/%20 %", "redfish:////x", "ipmi://[::1%25%20a]", "ipmi://[::1%25\x95]", "ipmi://[::1%25a%5d]:5",
	} {
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, address string, skipVerify bool) {
		a, err := bmcaddress.Parse(address, skipVerify)
		if err != nil {
			return
		}
		again, err := bmcaddress.Parse(a.String(), skipVerify)
		if err != nil {
			t.Fatalf("%q became %q: %v", address, a.String(), err)
		}
		if again != a {
			t.Fatalf("%q: first %+v, then %+v", address, a, again)
		}
		_ = a.DriverInfo("u", "p")
		_ = a.PortOrDefault()
	})
}
