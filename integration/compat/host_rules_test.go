package compat_test

import (
	"strings"
	"testing"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

const sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// The rules on hosts, by their numbers in docs/compatibility.md.
func TestHostRules(t *testing.T) {
	k, _ := guarded(t)
	for _, rules := range []map[string]rule{addressRules(), driverRules(), diskRules(), imageRules(), annotationRules(), otherRules()} {
		try(t, k, rules)
	}
}

func addressRules() map[string]rule {
	return map[string]rule{
		"B1 the address is of a known type": {
			good: newHost(bmc("ipmi://192.0.2.10")), bad: newHost(bmc("ilo4://192.0.2.10")),
			want: refusal{"spec.bmc.address", "Unknown BMC type 'ilo4' for address ilo4://192.0.2.10"},
		},
		"B16 the address has the name of a host": {
			good: newHost(bmc("redfish://bmc-1.example/x")), bad: newHost(bmc("redfish://bad_host/x")),
			want: refusal{"spec.bmc.address", "failed to parse BMC address information: BMC address hostname/IP : [bad_host] is invalid"},
		},
		"B11 a driver that needs the MAC address": {
			good: newHost(bmc("libvirt://192.0.2.10:6230/")), bad: newHost(bmc("libvirt://192.0.2.10:6230/"), bootMAC("")),
			want: refusal{"spec.bootMACAddress", "BMC driver libvirt requires a BootMACAddress value"},
		},
		"B11 inspection is disabled": {
			good: newHost(bootMAC("")), bad: newHost(bootMAC(""), inspection("disabled")),
			want: refusal{"spec.bootMACAddress", "BMC driver redfish-virtualmedia+https requires a BootMACAddress value"},
		},
		"B12 the MAC address parses": { // the pattern of the definition takes six pairs anywhere in the text
			good: newHost(bootMAC("00:00:5E:00:53:0A")), bad: newHost(bootMAC("00:00:5e:00:53:01:02")),
			want: refusal{"spec.bootMACAddress", "address 00:00:5e:00:53:01:02: invalid MAC address"},
		},
		"B14 the name has usual characters": {
			good: newHost(named("rack-1.host-a")), bad: newHost(named("rack~host")),
			want: refusal{"metadata.name", "must consist of lower case alphanumeric characters, '-' or '.'"},
		},
		"B15 the name is no UUID": {
			good: newHost(named("f81d4fae-7dec-11d0-a765")), bad: newHost(named("f81d4fae-7dec-11d0-a765-00a0c91e6bf6")),
			want: refusal{"metadata.name", "BareMetalHost resource name cannot be a UUID"},
		},
		"B15 the name is no UUID without hyphens": {
			good: newHost(named("f81d4fae7dec11d0a76500a0c91e6bf")), bad: newHost(named("f81d4fae7dec11d0a76500a0c91e6bf6")),
			want: refusal{"metadata.name", "BareMetalHost resource name cannot be a UUID"},
		},
	}
}

func driverRules() map[string]rule {
	volumes := raid(v1alpha1.RAIDConfig{HardwareRAIDVolumes: []v1alpha1.HardwareRAIDVolume{{Level: "1"}}})
	secure := func(h *host) { h.Spec.BootMode = v1alpha1.UEFISecureBoot }
	return map[string]rule{
		"B10 hardware RAID": {
			good: newHost(volumes), bad: newHost(bmc("ipmi://192.0.2.10"), volumes),
			want: refusal{"spec.raid.hardwareRAIDVolumes", "BMC driver ipmi does not support configuring RAID"},
		},
		"B13 secure boot": {
			good: newHost(secure), bad: newHost(bmc("ipmi://192.0.2.10"), secure),
			want: refusal{"spec.bootMode", "BMC driver ipmi does not support secure boot"},
		},
		"B30 fast inspection": {
			good: newHost(inspection("fast")), bad: newHost(bmc("ipmi://192.0.2.10"), inspection("fast")),
			want: refusal{"spec.inspectionMode", "BMC driver ipmi does not support fast (out-of-band) inspection"},
		},
	}
}

func diskRules() map[string]rule {
	type (
		hw = v1alpha1.HardwareRAIDVolume
		sw = v1alpha1.SoftwareRAIDVolume
	)
	hardware := func(v ...hw) *host { return newHost(raid(v1alpha1.RAIDConfig{HardwareRAIDVolumes: v})) }
	software := func(v ...sw) *host { return newHost(raid(v1alpha1.RAIDConfig{SoftwareRAIDVolumes: v})) }
	rootAnd := func(h v1alpha1.RootDeviceHints) *host {
		return newHost(raid(v1alpha1.RAIDConfig{SoftwareRAIDVolumes: []sw{{Level: "1", RootVolume: true}}}), hints(h))
	}
	disks := []string{"a", "b"}
	return map[string]rule{
		"B4 volumes of one kind": {
			good: newHost(raid(v1alpha1.RAIDConfig{HardwareRAIDVolumes: []hw{}, SoftwareRAIDVolumes: []sw{{Level: "1"}}})),
			bad:  newHost(raid(v1alpha1.RAIDConfig{HardwareRAIDVolumes: []hw{{Level: "1"}}, SoftwareRAIDVolumes: []sw{{Level: "1"}}})),
			want: refusal{"spec.raid", "hardwareRAIDVolumes and softwareRAIDVolumes can not be set at the same time"},
		},
		"B5 disks of a controller": {
			good: hardware(hw{Level: "1", Controller: "c", PhysicalDisks: disks}), bad: hardware(hw{Level: "1", PhysicalDisks: disks}),
			want: refusal{"spec.raid.hardwareRAIDVolumes[0].controller", "'physicalDisks' specified without 'controller' in hardware RAID volume 0"},
		},
		"B6 one number of disks": {
			good: hardware(hw{Level: "1", Controller: "c", NumberOfPhysicalDisks: new(2), PhysicalDisks: disks}),
			bad:  hardware(hw{Level: "1", Controller: "c", NumberOfPhysicalDisks: new(3), PhysicalDisks: disks}),
			want: refusal{"spec.raid.hardwareRAIDVolumes[0].numberOfPhysicalDisks", "the 'numberOfPhysicalDisks'[3] and number of 'physicalDisks'[2] is not same for volume 0"},
		},
		"B7 one root volume": {
			good: software(sw{Level: "1", RootVolume: true}, sw{Level: "1"}), bad: software(sw{Level: "1", RootVolume: true}, sw{Level: "1", RootVolume: true}),
			want: refusal{"spec.raid.softwareRAIDVolumes", "softwareRAIDVolumes[*].rootVolume can only be set once"},
		},
		"B8 a root volume or a root disk": {
			good: rootAnd(v1alpha1.RootDeviceHints{}), bad: rootAnd(v1alpha1.RootDeviceHints{Model: "x"}),
			want: refusal{"spec.raid.softwareRAIDVolumes", "softwareRAIDVolumes[*].rootVolume and rootDeviceHints can not be set at the same time"},
		},
		"B9 a root volume is a mirror": {
			good: software(sw{Level: "0"}, sw{Level: "1", RootVolume: true}), bad: software(sw{Level: "1"}, sw{Level: "0", RootVolume: true}),
			want: refusal{"spec.raid.softwareRAIDVolumes[1].level", "softwareRAIDVolumes[1] with rootVolume set must use RAID level 1"},
		},
		"B17 a device is in /dev": {
			good: newHost(hints(v1alpha1.RootDeviceHints{DeviceName: "/dev/sda"})), bad: newHost(hints(v1alpha1.RootDeviceHints{DeviceName: "sda"})),
			want: refusal{"spec.rootDeviceHints.deviceName", "device name of root device hint must be a /dev/ path"},
		},
		"B18 a device is directly in /dev or on the bus": {
			good: newHost(hints(v1alpha1.RootDeviceHints{DeviceName: "/dev/disk/by-path/pci-0000:01:00.0"})),
			bad:  newHost(hints(v1alpha1.RootDeviceHints{DeviceName: "/dev/disk/by-id/x"})),
			want: refusal{"spec.rootDeviceHints.deviceName", "device name of root device hint must be path in /dev/ or /dev/disk/by-path/"},
		},
	}
}

func imageRules() map[string]rule {
	const disk, oci = "http://192.0.2.80/os", "oci://reg.example/os"
	iso := new(v1alpha1.DiskFormatLiveISO)
	return map[string]rule{
		"B19 the image's URL is one": {
			good: newHost(image(v1alpha1.Image{URL: "https://[2001:db8::80]/os", Checksum: sum})), bad: newHost(image(v1alpha1.Image{URL: "192.0.2.80", Checksum: sum})),
			want: refusal{"spec.image.url", `image URL 192.0.2.80 is invalid: parse "192.0.2.80": invalid URI for request`},
		},
		"B19 the image can be fetched": {
			good: newHost(image(v1alpha1.Image{URL: "ftp://192.0.2.80/os", Checksum: sum})), bad: newHost(image(v1alpha1.Image{URL: "file:///os", Checksum: sum})),
			want: refusal{"spec.image.url", `image URL file:///os is invalid: invalid scheme in URL, "file" not allowed`},
		},
		"B20 a disk image has a checksum": {
			good: newHost(image(v1alpha1.Image{URL: disk, DiskFormat: iso})), bad: newHost(image(v1alpha1.Image{URL: disk})),
			want: refusal{"spec.image.checksum", "checksum is required for normal images"},
		},
		"B20 a registry's image has none": {
			good: newHost(image(v1alpha1.Image{URL: oci})), bad: newHost(image(v1alpha1.Image{URL: oci, Checksum: sum})),
			want: refusal{"spec.image.checksum", "spec.image.checksum must be empty for OCI images (oci:// images have embedded checksums)"},
		},
		"B20 a checksum is of a known type": {
			good: newHost(image(v1alpha1.Image{URL: disk, Checksum: sum, ChecksumType: "auto"})), bad: newHost(image(v1alpha1.Image{URL: disk, Checksum: sum, ChecksumType: "crc32"})),
			want: refusal{"spec.image.checksumType", `Unsupported value: "crc32"`},
		},
	}
}

func annotationRules() map[string]rule {
	const status, reboot, inspect, hardware = "baremetalhost.metal3.io/status", "reboot.metal3.io", "inspect.metal3.io", "inspect.metal3.io/hardwaredetails"
	at := func(key string) string { return "metadata.annotations[" + key + "]" }
	return map[string]rule{
		"B21 the status annotation is a status": {
			good: newHost(annotated(status, `{"operationalStatus":"OK","provisioning":{"state":"available"}}`)), bad: newHost(annotated(status, `{"good":"morning"}`)),
			want: refusal{at(status), `error decoding status annotation: json: unknown field "good"`},
		},
		"B22 its operational status is known": {
			good: newHost(annotated(status, `{"operationalStatus":"servicing"}`)), bad: newHost(annotated(status, `{"operationalStatus":"tired"}`)),
			want: refusal{at(status), "invalid operationalStatus 'tired' in the baremetalhost.metal3.io/status annotation"},
		},
		"B23 its error type is known": {
			good: newHost(annotated(status, `{"errorType":"power management error"}`)), bad: newHost(annotated(status, `{"errorType":"no luck"}`)),
			want: refusal{at(status), "invalid errorType 'no luck' in the baremetalhost.metal3.io/status annotation"},
		},
		"B24 a reboot annotation is JSON": {
			good: newHost(annotated(reboot, "", reboot+"/me", `{"mode":"hard"}`)), bad: newHost(annotated(reboot, "now")),
			want: refusal{at(reboot), "failed to unmarshal the data from the reboot.metal3.io annotation"},
		},
		"B24 a reboot annotation has a known mode": {
			good: newHost(annotated(reboot, `{"mode":"soft"}`)), bad: newHost(annotated(reboot+"/me", `{"mode":"warm"}`)),
			want: refusal{at(reboot + "/me"), `invalid mode in the reboot.metal3.io annotation, allowed are "hard", "soft" or ""`},
		},
		"B25 an inspect annotation is empty or disabled": {
			good: newHost(annotated(inspect, "")), bad: newHost(annotated(inspect, "again")),
			want: refusal{at(inspect), `invalid value for the inspect.metal3.io annotation, allowed are "disabled" or ""`},
		},
		"B26 given hardware is not inspected": {
			good: newHost(inspection("disabled"), annotated(hardware, `{"hostname":"a"}`)), bad: newHost(annotated(hardware, `{"hostname":"a"}`)),
			want: refusal{at(hardware), "when hardware details are provided, inspection must be disabled (either via inspect.metal3.io annotation or inspectionMode field)"},
		},
		"B27 given hardware is hardware": {
			good: newHost(annotated(inspect, "disabled", hardware, `{"ramMebibytes":1}`)), bad: newHost(annotated(inspect, "disabled", hardware, `{"ram":1}`)),
			want: refusal{at(hardware), `error decoding the inspect.metal3.io/hardwaredetails annotation: json: unknown field "ram"`},
		},
		"B28 annotation and field agree": {
			good: newHost(inspection("disabled"), annotated(inspect, "disabled")), bad: newHost(inspection("agent"), annotated(inspect, "disabled")),
			want: refusal{at(inspect), "inspect.metal3.io annotation and inspectionMode field have contradicting values"},
		},
	}
}

func otherRules() map[string]rule {
	secret := func(set func(*host)) *host { return newHost(set) }
	return map[string]rule{
		"B2 no firmware": {
			good: newHost(), bad: newHost(func(h *host) { h.Spec.Firmware = &v1alpha1.FirmwareConfig{} }),
			want: refusal{"spec.firmware", "the Firmware field is no longer supported, use HostFirmwareSettings resource instead"},
		},
		"B3 userData of the namespace": {
			good: secret(func(h *host) { h.Spec.UserData = here() }), bad: secret(func(h *host) { h.Spec.UserData = elsewhere() }),
			want: refusal{"spec.userData.namespace", "userData: cross-namespace Secret references are not allowed"},
		},
		"B3 networkData of the namespace": {
			good: secret(func(h *host) { h.Spec.NetworkData = here() }), bad: secret(func(h *host) { h.Spec.NetworkData = elsewhere() }),
			want: refusal{"spec.networkData.namespace", "networkData: cross-namespace Secret references are not allowed"},
		},
		"B3 metaData of the namespace": {
			good: secret(func(h *host) { h.Spec.MetaData = here() }), bad: secret(func(h *host) { h.Spec.MetaData = elsewhere() }),
			want: refusal{"spec.metaData.namespace", "metaData: cross-namespace Secret references are not allowed"},
		},
		"B29 an inspection mode is known": {
			good: newHost(inspection("agent")), bad: newHost(inspection("sometimes")),
			want: refusal{"spec.inspectionMode", `Unsupported value: "sometimes"`},
		},
		"B31 what is never switched off is on": {
			good: newHost(func(h *host) { h.Spec.DisablePowerOff = true }),
			bad:  newHost(func(h *host) { h.Spec.DisablePowerOff, h.Spec.Online = true, false }),
			want: refusal{"spec.disablePowerOff", "node can't simultaneously have online set to false and have power off disabled"},
		},
		"B32 an interface chooses a NIC": {
			good: newHost(nics(v1alpha1.NetworkInterface{Name: "eth0"})), bad: newHost(nics(v1alpha1.NetworkInterface{})),
			want: refusal{"spec.networkInterfaces[0]", "must specify either name or macAddress"},
		},
		"B33 an interface chooses once": {
			good: newHost(nics(v1alpha1.NetworkInterface{MACAddress: "00:00:5e:00:53:02"})),
			bad:  newHost(nics(v1alpha1.NetworkInterface{Name: "eth0", MACAddress: "00:00:5e:00:53:02"})),
			want: refusal{"spec.networkInterfaces[0]", "name and macAddress are mutually exclusive"},
		},
		"B34 two interfaces choose two NICs": {
			good: newHost(nics(v1alpha1.NetworkInterface{MACAddress: "00:00:5e:00:53:0a"}, v1alpha1.NetworkInterface{MACAddress: "00:00:5e:00:53:0b"})),
			bad:  newHost(nics(v1alpha1.NetworkInterface{MACAddress: "00:00:5e:00:53:0a"}, v1alpha1.NetworkInterface{MACAddress: "00:00:5E:00:53:0A"})),
			want: refusal{"spec.networkInterfaces[1]", `networkInterfaces[1]: duplicate interface selector for "00:00:5e:00:53:0a"`},
		},
		"B35 namespace and name fit a node's name": {
			good: newHost(named(strings.Repeat("a", 200))), bad: newHost(named(strings.Repeat("a", 250))),
			want: refusal{"metadata.name", "may not be more than"},
		},
	}
}

func TestHostUpdateRules(t *testing.T) {
	k, _ := guarded(t)
	in := func(state v1alpha1.ProvisioningState, s v1alpha1.OperationalStatus) func(*host) {
		return func(h *host) { h.Status.Provisioning.State, h.Status.OperationalStatus = state, s }
	}
	label := func(h *host) { h.Labels = map[string]string{"rack": "7"} }
	const address = "BMC address can not be changed if the BMH is not in the Registering state, or if the BMH is not detached"
	external := func(h *host) { h.Spec.ExternallyProvisioned = true }
	tryUpdate(t, k, map[string]update[*host]{
		"U1 the address stays": {
			stored: newHost(in("available", "OK")), good: label, bad: bmc("ipmi://192.0.2.11"),
			want: refusal{"spec.bmc.address", address},
		},
		"U1 the address stays there": {
			stored: newHost(in("provisioned", "OK")), good: label, bad: bmc(""), want: refusal{"spec.bmc.address", address},
		},
		"U1 the address changes while registering": {
			stored: newHost(in("registering", "error")), good: bmc("ipmi://192.0.2.11"), bad: bmc("ilo4://x"),
			want: refusal{"spec.bmc.address", "Unknown BMC type"},
		},
		"U1 the address changes while detached": {
			stored: newHost(in("provisioned", "detached")), good: bmc("ipmi://192.0.2.11"), bad: bmc("ilo4://x"),
			want: refusal{"spec.bmc.address", "Unknown BMC type"},
		},
		"U2 the MAC address stays": {
			stored: newHost(), good: bootMAC("00:00:5E:00:53:01"), bad: bootMAC("00:00:5e:00:53:02"),
			want: refusal{"spec.bootMACAddress", "bootMACAddress can not be changed once it is set"},
		},
		"U2 the MAC address stays there": {
			stored: newHost(), good: label, bad: bootMAC(""), want: refusal{"spec.bootMACAddress", "bootMACAddress can not be changed once it is set"},
		},
		"U2 a first MAC address": {
			stored: newHost(bootMAC("")), good: bootMAC("00:00:5e:00:53:02"), bad: bootMAC("00:00"), want: refusal{"spec.bootMACAddress", "should match"},
		},
		"U3 externally provisioned from available": {
			stored: newHost(in("available", "OK")), good: external, bad: inspection("x"), want: refusal{"spec.inspectionMode", "Unsupported value"},
		},
		"U3 not from provisioned": {
			stored: newHost(in("provisioned", "OK")), good: label, bad: external,
			want: refusal{"spec.externallyProvisioned", "externallyProvisioned can only be enabled when in Available state"},
		},
		"U3 no longer externally provisioned at any time": {
			stored: newHost(external, in("externally provisioned", "OK")), good: func(h *host) { h.Spec.ExternallyProvisioned = false },
			bad: inspection("x"), want: refusal{"spec.inspectionMode", "Unsupported value"},
		},
	})
}
