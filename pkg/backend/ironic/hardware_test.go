package ironic

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic"
)

func inventory(t *testing.T, hardware, plugins string) ironic.Inventory {
	t.Helper()
	var inv ironic.Inventory
	for text, to := range map[string]any{hardware: &inv.Hardware, plugins: &inv.Extra} {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			t.Fatal(err)
		}
	}
	return inv
}

// What an agent tells, with all that goes with it.
func TestHardwareDetails(t *testing.T) {
	inv := inventory(t, `{
		"hostname": "ramdisk", "bmc_address": "192.0.2.10",
		"system_vendor": {"manufacturer": "ACME", "product_name": "Box 9", "serial_number": "S1", "firmware": {"vendor": "ACME BIOS", "version": "1.2", "build_date": "01/02/2026"}},
		"cpu": {"architecture": "x86_64", "model_name": "CPU 5", "count": 16, "frequency": "2399.6000", "flags": ["vmx", "aes", "fpu"]},
		"memory": {"physical_mb": 65536, "total": 67000000000},
		"interfaces": [
			{"name": "eth0", "mac_address": "00:00:5e:00:53:01", "ipv4_address": "192.0.2.20", "ipv6_address": "2001:db8::20", "vendor": "0x8086", "product": "0x1572", "speed_mbps": 25000, "pci_address": "0000:01:00.0"},
			{"name": "eth1", "mac_address": "00:00:5e:00:53:02", "ipv4_address": null, "ipv6_address": "fe80::1%eth1", "vendor": null, "product": "0x1572"},
			{"name": "eth2", "mac_address": "00:00:5e:00:53:03"}],
		"disks": [
			{"name": "/dev/sda", "by_path": "/dev/disk/by-path/pci-1", "size": 1000204886016, "rotational": true, "model": "M", "vendor": "V", "serial": "D1", "wwn": "0x5", "wwn_with_extension": "0x56", "wwn_vendor_extension": "0x6", "hctl": "0:0:0:0"},
			{"name": "/dev/nvme0n1", "size": 960197124096, "rotational": false},
			{"name": "/dev/sdb", "size": 1, "rotational": false}]}`, `{
		"all_interfaces": {"eth0": {"pxe_enabled": true, "name": "eth0"}, "eth1": {"pxe_enabled": false}},
		"parsed_lldp": {"eth0": {"switch_chassis_id": "11:22:33:aa:bb:cc", "switch_port_id": "Ethernet1/1", "switch_system_name": "leaf1",
			"switch_port_vlans": [{"id": 101, "name": "vlan101"}, {"id": 9000, "name": "none"}], "switch_port_untagged_vlan_id": 104}, "eth1": {}}}`)
	eth0 := v1alpha1.NIC{
		Name: "eth0", Model: "0x8086 0x1572", MAC: "00:00:5e:00:53:01", IP: "192.0.2.20", SpeedGbps: 25, PXE: true, PCIAddress: "0000:01:00.0",
		VLANs: []v1alpha1.VLAN{{ID: 101, Name: "vlan101"}}, VLANID: 104,
		LLDP: &v1alpha1.LLDP{SwitchID: "11:22:33:aa:bb:cc", PortID: "Ethernet1/1", SwitchSystemName: "leaf1"},
	}
	eth0v6 := eth0
	eth0v6.IP = "2001:db8::20"
	want := &v1alpha1.HardwareDetails{
		Hostname:     "ramdisk",
		SystemVendor: v1alpha1.HardwareSystemVendor{Manufacturer: "ACME", ProductName: "Box 9", SerialNumber: "S1"},
		Firmware:     v1alpha1.Firmware{BIOS: v1alpha1.BIOS{Vendor: "ACME BIOS", Version: "1.2", Date: "01/02/2026"}},
		RAMMebibytes: 65536,
		CPU:          v1alpha1.CPU{Arch: "x86_64", Model: "CPU 5", Count: 16, ClockMegahertz: 2400, Flags: []string{"aes", "fpu", "vmx"}},
		NIC: []v1alpha1.NIC{
			eth0, eth0v6,
			{Name: "eth1", Model: "0x1572", MAC: "00:00:5e:00:53:02", IP: "fe80::1"},
			{Name: "eth2", MAC: "00:00:5e:00:53:03"},
		},
		Storage: []v1alpha1.Storage{
			{
				Name: "/dev/disk/by-path/pci-1", AlternateNames: []string{"/dev/sda", "/dev/disk/by-path/pci-1"}, Rotational: true, Type: v1alpha1.HDD, SizeBytes: 1000204886016,
				Model: "M", Vendor: "V", SerialNumber: "D1", WWN: "0x5", WWNWithExtension: "0x56", WWNVendorExtension: "0x6", HCTL: "0:0:0:0",
			},
			{Name: "/dev/nvme0n1", AlternateNames: []string{"/dev/nvme0n1"}, Type: v1alpha1.NVME, SizeBytes: 960197124096},
			{Name: "/dev/sdb", AlternateNames: []string{"/dev/sdb"}, Type: v1alpha1.SSD, SizeBytes: 1},
		},
	}
	if diff := cmp.Diff(want, hardwareDetails(inv)); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
}

// What a BMC tells is thinner, and nothing is made up for what it leaves out.
func TestHardwareDetailsOfBMC(t *testing.T) {
	inv := inventory(t, `{"cpu": {"architecture": "x86_64", "count": 8, "frequency": 2100, "flags": null}, "memory": {"physical_mb": 4096}, "system_vendor": {"manufacturer": "ACME"},
		"interfaces": [{"mac_address": "00:00:5e:00:53:01"}], "disks": [{"name": "Disk.0", "size": 5, "model": null}]}`, `{}`)
	want := &v1alpha1.HardwareDetails{
		SystemVendor: v1alpha1.HardwareSystemVendor{Manufacturer: "ACME"}, RAMMebibytes: 4096,
		CPU:     v1alpha1.CPU{Arch: "x86_64", Count: 8, ClockMegahertz: 2100},
		NIC:     []v1alpha1.NIC{{MAC: "00:00:5e:00:53:01"}},
		Storage: []v1alpha1.Storage{{Name: "Disk.0", AlternateNames: []string{"Disk.0"}, SizeBytes: 5}},
	}
	if diff := cmp.Diff(want, hardwareDetails(inv)); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
}

// B17: a speed is told where it is known.
func TestB17Speed(t *testing.T) {
	tests := map[string]struct {
		link, extra string
		want        int
	}{
		"25 Gbit/s":                        {`"speed_mbps": 25000`, ``, 25},
		"0":                                {`"speed_mbps": 0`, ``, 0},
		"no speed":                         {`"name": "eth0"`, ``, 0},
		"a negative one":                   {`"speed_mbps": -1`, ``, 0},
		"only in the extra data":           {`"name": "eth0"`, `10Gbit/s`, 10},
		"in Mbit/s in the extra data":      {`"name": "eth0"`, `1000Mbit/s`, 1},
		"below 1":                          {`"speed_mbps": 100`, ``, 0},
		"below 1 in the extra data":        {`"speed_mbps": 0`, `100Mbit/s`, 0},
		"something else in the extra data": {`"name": "eth0"`, `fast`, 0},
		"0, and known in the extra data":   {`"speed_mbps": 0`, `40Gbit/s`, 40},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inv := inventory(t, `{"interfaces": [{"name": "eth0", `+tc.link+`}]}`, `{"extra": {"network": {"eth0": {"speed": "`+tc.extra+`"}}}}`)
			if got := hardwareDetails(inv).NIC[0].SpeedGbps; got != tc.want {
				t.Errorf("%d Gbit/s, want %d", got, tc.want)
			}
		})
	}
}

// B18: memory is taken from the best source that has it.
func TestB18Memory(t *testing.T) {
	tests := map[string]struct {
		memory, extra string
		want          int
	}{
		"what the BIOS says":        {`{"physical_mb": 65536, "total": 1}`, `{}`, 65536},
		"what the tools say":        {`{"physical_mb": 0, "total": 4120039424}`, `{"memory_mb": 0, "extra": {"memory": {"total": {"size": 4294967296}}}}`, 4096},
		"what can be used, rounded": {`{"physical_mb": 0, "total": 4120039424}`, `{"memory_mb": 0}`, 3929},
		"what a hook says":          {`{}`, `{"memory_mb": 2048}`, 2048},
		"nothing":                   {`{"physical_mb": null}`, `{}`, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := hardwareDetails(inventory(t, `{"memory": `+tc.memory+`}`, tc.extra)).RAMMebibytes; got != tc.want {
				t.Errorf("%d MiB, want %d", got, tc.want)
			}
		})
	}
}

// B20: the name of a disk, given back as a hint, selects that disk.
func TestB20Hints(t *testing.T) {
	yes := true
	tests := map[string]struct {
		hints *v1alpha1.RootDeviceHints
		want  map[string]any
	}{
		"none":    {nil, nil},
		"empty":   {&v1alpha1.RootDeviceHints{}, nil},
		"no size": {&v1alpha1.RootDeviceHints{MinSizeGigabytes: 0}, nil},
		"a name":  {&v1alpha1.RootDeviceHints{DeviceName: "/dev/sda"}, map[string]any{"name": "s== /dev/sda"}},
		"a path":  {&v1alpha1.RootDeviceHints{DeviceName: "/dev/disk/by-path/pci-1"}, map[string]any{"by_path": "s== /dev/disk/by-path/pci-1"}},
		"several": {&v1alpha1.RootDeviceHints{WWN: "0x55", MinSizeGigabytes: 100}, map[string]any{"wwn": "s== 0x55", "size": ">= 100"}},
		"all of them": {
			&v1alpha1.RootDeviceHints{HCTL: "0:0:0:0", Model: "M", Vendor: "V", SerialNumber: "S", WWNWithExtension: "a", WWNVendorExtension: "b", Rotational: &yes},
			map[string]any{"hctl": "s== 0:0:0:0", "model": "<in> M", "vendor": "<in> V", "serial": "s== S", "wwn_with_extension": "s== a", "wwn_vendor_extension": "s== b", "rotational": "true"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, hintMap(tc.hints)); diff != "" {
				t.Errorf("hints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCapabilities(t *testing.T) {
	tests := map[string]struct {
		present string
		mode    v1alpha1.BootMode
		want    string
		differ  bool
	}{
		"none yet":                  {"", v1alpha1.UEFI, "boot_mode:uefi", true},
		"secure boot":               {"", v1alpha1.UEFISecureBoot, "boot_mode:uefi,secure_boot:true", true},
		"legacy":                    {"boot_mode:uefi", v1alpha1.Legacy, "boot_mode:bios", true},
		"others are kept":           {"a:b,boot_mode:bios,secure_boot:true", v1alpha1.UEFI, "a:b,boot_mode:uefi", true},
		"the order does not matter": {"boot_mode:uefi,a:b", v1alpha1.UEFI, "a:b,boot_mode:uefi", false},
		"nor do spaces":             {" boot_mode:uefi , a:b ,", v1alpha1.UEFI, "a:b,boot_mode:uefi", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, differ := capabilities(tc.present, tc.mode)
			if differ != tc.differ || (differ && got != tc.want) {
				t.Errorf("%q, differs %v: want %q, %v", got, differ, tc.want, tc.differ)
			}
		})
	}
}

func TestClassify(t *testing.T) {
	for text, want := range map[string]string{
		"HTTP GET http://bmc/redfish/v1/Systems/1 returned code 401. Base.1.8.NoValidSession: There is no valid session":                         "Credentials",
		"Redfish connection failed for node U: Unable to connect to http://127.0.0.1:1/redfish/v1/. Error: HTTPConnectionPool(...): Max retries": "Unreachable",
		"Failed to establish a new connection: [Errno -2] Name or service not known":                                                             "Address",
		"Resource http://bmc/redfish/v1/Systems/9999 not found":                                                                                  "Address",
		"Missing the following Redfish properties in node U driver_info: ['redfish_address']":                                                    "Address",
		"SSLError(SSLCertVerificationError('certificate verify failed'))":                                                                        "TLS",
		"Failed to prepare to deploy: Validation of image href http://x failed, reason: Got HTTP code 404":                                       "Image",
		"Timeout reached while cleaning the node":                                                                                                "Timeout",
		"something else": "Hardware",
	} {
		if got := classify(text, "Hardware"); string(got) != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
