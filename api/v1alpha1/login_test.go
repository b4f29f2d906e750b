package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

func TestWithoutLogin(t *testing.T) {
	tests := map[string]string{
		"redfish://192.0.2.10/redfish/v1/Systems/1":                    "redfish://192.0.2.10/redfish/v1/Systems/1",
		"redfish://admin:s3cret@192.0.2.10/redfish/v1/Systems/1":       "redfish://192.0.2.10/redfish/v1/Systems/1",
		"redfish+https://s3cret@[2001:db8::10]:8443/redfish/v1":        "redfish+https://[2001:db8::10]:8443/redfish/v1",
		"ipmi://[2001:db8::10]:6230":                                   "ipmi://[2001:db8::10]:6230",
		"ipmi://2001:db8::10":                                          "ipmi://2001:db8::10",
		"ipmi://[fe80::1%25eth0]":                                      "ipmi://[fe80::1%25eth0]",
		"admin:s3cret@192.0.2.10":                                      "192.0.2.10",
		"192.0.2.10:623":                                               "192.0.2.10:623",
		"redfish://admin:s3/cret@192.0.2.10/redfish/v1":                "redfish://192.0.2.10/redfish/v1",
		"redfish://admin:s3@cret@192.0.2.10":                           "redfish://192.0.2.10",
		"redfish://192.0.2.10:8443/redfish/v1/Systems/a@b":             "redfish://192.0.2.10:8443/redfish/v1/Systems/a@b",
		"redfish://192.0.2.10/redfish/v1/Systems/a@b":                  "redfish://192.0.2.10/redfish/v1/Systems/a@b",
		"redfish-virtualmedia+https://a:s3cret@bmc.example:443/x?y=z@": "redfish-virtualmedia+https://bmc.example:443/x?y=z@",
		"https://u:s3cret@images.example:8443/os.qcow2?x=a@b":          "https://images.example:8443/os.qcow2?x=a@b",
		"oci://registry.example:5000/os@sha256:0123":                   "oci://registry.example:5000/os@sha256:0123",
		"0123456789abcdef0123456789abcdef":                             "0123456789abcdef0123456789abcdef",
		"":                                                             "",
	}
	for in, want := range tests {
		if v1alpha1.HoldsLogin(in) != (in != want) {
			t.Errorf("HoldsLogin(%q) is %v", in, in == want)
		}
		got := v1alpha1.WithoutLogin(in)
		if got != want || strings.Contains(got, "s3") {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestWithoutLogins(t *testing.T) {
	const text = "validate href 'http://u:s3cret@192.0.2.80/os' and \"https://s3cret@h/x\": ask a@b.example"
	const want = "validate href 'http://192.0.2.80/os' and \"https://h/x\": ask a@b.example"
	if got := v1alpha1.WithoutLogins(text); got != want {
		t.Errorf("%q becomes %q, want %q", text, got, want)
	}
}
