package admission_test

import (
	"testing"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
)

func TestValidateRAID(t *testing.T) {
	t.Parallel()
	type (
		hw = v1alpha1.HardwareRAIDVolume
		sw = v1alpha1.SoftwareRAIDVolume
	)
	hardware := func(v ...hw) *host { return newHost(raid(v1alpha1.RAIDConfig{HardwareRAIDVolumes: v})) }
	software := func(v ...sw) *host { return newHost(raid(v1alpha1.RAIDConfig{SoftwareRAIDVolumes: v})) }
	hinted := func(h *host, hint v1alpha1.RootDeviceHints) *host {
		hints(hint)(h)
		return h
	}
	root := sw{Level: "1", RootVolume: true}
	both := v1alpha1.RAIDConfig{HardwareRAIDVolumes: []hw{{Level: "1"}}, SoftwareRAIDVolumes: []sw{{Level: "1"}}}
	none := v1alpha1.RAIDConfig{HardwareRAIDVolumes: []hw{}, SoftwareRAIDVolumes: []sw{{Level: "1"}}}
	tests := map[string]struct {
		good, bad *host
		want      finding
	}{
		"volumes of both kinds": {
			good: newHost(raid(none)),
			bad:  newHost(raid(both)),
			want: finding{forbidden, "spec.raid", "hardwareRAIDVolumes and softwareRAIDVolumes can not be set at the same time"},
		},
		"disks of no controller": {
			good: hardware(hw{Level: "1", Controller: "c", PhysicalDisks: []string{"a", "b"}}),
			bad:  hardware(hw{Level: "1"}, hw{Level: "1", PhysicalDisks: []string{"a", "b"}}),
			want: finding{
				required, "spec.raid.hardwareRAIDVolumes[1].controller",
				"'physicalDisks' specified without 'controller' in hardware RAID volume 1",
			},
		},
		"two numbers of disks": {
			good: hardware(hw{Level: "1", Controller: "c", NumberOfPhysicalDisks: new(2), PhysicalDisks: []string{"a", "b"}}),
			bad:  hardware(hw{Level: "1", Controller: "c", NumberOfPhysicalDisks: new(3), PhysicalDisks: []string{"a", "b"}}),
			want: finding{
				invalid, "spec.raid.hardwareRAIDVolumes[0].numberOfPhysicalDisks",
				"the 'numberOfPhysicalDisks'[3] and number of 'physicalDisks'[2] is not same for volume 0",
			},
		},
		"two root volumes": {
			good: software(root, sw{Level: "0"}),
			bad:  software(root, root),
			want: finding{forbidden, "spec.raid.softwareRAIDVolumes", "softwareRAIDVolumes[*].rootVolume can only be set once"},
		},
		"a root volume and a root disk": {
			good: hinted(software(root), v1alpha1.RootDeviceHints{}),
			bad:  hinted(software(root), v1alpha1.RootDeviceHints{Model: "x"}),
			want: finding{
				forbidden, "spec.raid.softwareRAIDVolumes",
				"softwareRAIDVolumes[*].rootVolume and rootDeviceHints can not be set at the same time",
			},
		},
		"a root volume that can not boot": {
			good: software(sw{Level: "0"}, root),
			bad:  software(sw{Level: "1"}, sw{Level: "0", RootVolume: true}),
			want: finding{
				invalid, "spec.raid.softwareRAIDVolumes[1].level",
				"softwareRAIDVolumes[1] with rootVolume set must use RAID level 1",
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, admission.ValidateHost(tt.good), nil)
			check(t, admission.ValidateHost(tt.bad), &tt.want)
		})
	}
}

func TestValidateRootDeviceHints(t *testing.T) {
	t.Parallel()
	const (
		notDev  = "device name of root device hint must be a /dev/ path, not "
		notPath = "device name of root device hint must be path in /dev/ or /dev/disk/by-path/, not "
	)
	refuse := func(detail string) *finding { return &finding{invalid, "spec.rootDeviceHints.deviceName", detail} }
	tests := map[string]struct {
		hints v1alpha1.RootDeviceHints
		want  *finding
	}{
		"no hints":                {},
		"a size of nothing":       {hints: v1alpha1.RootDeviceHints{MinSizeGigabytes: 0}},
		"several hints":           {hints: v1alpha1.RootDeviceHints{WWN: "0x5500000000000001", MinSizeGigabytes: 100}},
		"a name":                  {hints: v1alpha1.RootDeviceHints{DeviceName: "/dev/sda"}},
		"a place on the bus":      {hints: v1alpha1.RootDeviceHints{DeviceName: "/dev/disk/by-path/pci-0000:01:00.0-scsi-0:2:0:0"}},
		"an ID":                   {hints: v1alpha1.RootDeviceHints{DeviceName: "/dev/disk/by-id/x"}, want: refuse(notPath + `"/dev/disk/by-id/x"`)},
		"a name without its path": {hints: v1alpha1.RootDeviceHints{DeviceName: "sda"}, want: refuse(notDev + `"sda"`)},
		"a path without a name":   {hints: v1alpha1.RootDeviceHints{DeviceName: "/dev/"}, want: refuse(notDev + `"/dev/"`)},
		"by-path without a name":  {hints: v1alpha1.RootDeviceHints{DeviceName: "/dev/disk/by-path/"}, want: refuse("the name of the device is missing")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, admission.ValidateHost(newHost(hints(tt.hints))), tt.want)
		})
	}
}
