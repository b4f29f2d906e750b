package v1alpha1_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

func TestSchemeKnowsAllKinds(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{
		"BareMetalHost", "HardwareData", "PreprovisioningImage", "HostFirmwareSettings", "FirmwareSchema",
		"HostFirmwareComponents", "BMCEventSubscription", "DataImage", "HostUpdatePolicy", "HostClaim",
		"HostDeployPolicy", "BareMetalSwitch", "HostNetworkAttachment",
	} {
		for _, k := range []string{kind, kind + "List"} {
			if _, err := scheme.New(v1alpha1.GroupVersion.WithKind(k)); err != nil {
				t.Errorf("%s: %v", k, err)
			}
		}
	}
}

func TestNetworkInterfaceKey(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		nic   v1alpha1.NetworkInterface
		key   string
		valid bool
	}{
		"neither":                     {},
		"by name":                     {nic: v1alpha1.NetworkInterface{Name: "Eth0"}, key: "eth0", valid: true},
		"by MAC":                      {nic: v1alpha1.NetworkInterface{MACAddress: "00:00:5E:00:53:01"}, key: "00:00:5e:00:53:01", valid: true},
		"the MAC comes before a name": {nic: v1alpha1.NetworkInterface{Name: "eth0", MACAddress: "00:00:5e:00:53:01"}, key: "00:00:5e:00:53:01", valid: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.nic.Key(); got != tt.key {
				t.Errorf("Key() = %q, want %q", got, tt.key)
			}
			if got := tt.nic.IsValid(); got != tt.valid {
				t.Errorf("IsValid() = %t, want %t", got, tt.valid)
			}
		})
	}
}
