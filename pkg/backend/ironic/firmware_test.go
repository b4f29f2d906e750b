package ironic_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func inspected(l *lab) lifecycle.Host {
	l.Helper()
	return l.does(l.enroll(l.host()), event.Inspect, lifecycle.Inspected{Digest: "d"})
}

// steps are the steps that were sent with a verb.
func (l *lab) cleanings() int {
	l.Helper()
	n := 0
	for _, r := range l.ironic.Requests() {
		if r.Method == "PUT" && strings.Contains(string(r.Body), `"target":"clean"`) {
			n++
		}
	}
	return n
}

// B29: RAID is touched only where its user asks for that.
func TestB29RAID(t *testing.T) {
	volume := v1alpha1.HardwareRAIDVolume{Level: "1", SizeGibibytes: new(100), Name: "v1"}
	raid := func(c *v1alpha1.RAIDConfig) func(*v1alpha1.BareMetalHostSpec) {
		return func(s *v1alpha1.BareMetalHostSpec) { s.RAID = c }
	}
	l := newLab(t, ironictest.Config{}, nil)
	h := inspected(l)
	for _, step := range []struct {
		name      string
		spec      func(*v1alpha1.BareMetalHostSpec)
		cleanings int
		volumes   int
	}{
		{"no RAID", raid(nil), 0, 0},
		{"an empty object", raid(&v1alpha1.RAIDConfig{}), 0, 0},
		{"an empty list deletes", raid(&v1alpha1.RAIDConfig{HardwareRAIDVolumes: []v1alpha1.HardwareRAIDVolume{}}), 1, 0},
		{"a volume", raid(&v1alpha1.RAIDConfig{HardwareRAIDVolumes: []v1alpha1.HardwareRAIDVolume{volume}}), 1, 1},
		{"the same again", raid(&v1alpha1.RAIDConfig{HardwareRAIDVolumes: []v1alpha1.HardwareRAIDVolume{volume}}), 0, 1},
		{"no wish leaves it", raid(nil), 0, 1},
		{"two volumes", raid(&v1alpha1.RAIDConfig{HardwareRAIDVolumes: []v1alpha1.HardwareRAIDVolume{volume, {Level: "0", SizeGibibytes: new(10)}}}), 1, 2},
	} {
		before := l.cleanings()
		step.spec(&h.Intent.Spec)
		h = l.prepare(h)
		if got := l.cleanings() - before; got != step.cleanings {
			t.Errorf("%s: %d cleanings, want %d", step.name, got, step.cleanings)
		}
		if got := len(l.machine(h).View().Volumes); got != step.volumes {
			t.Errorf("%s: %d volumes, want %d", step.name, got, step.volumes)
		}
	}
}

func TestSoftwareRAID(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := inspected(l)
	h.Intent.Spec.RAID = &v1alpha1.RAIDConfig{SoftwareRAIDVolumes: []v1alpha1.SoftwareRAIDVolume{
		{Level: "1", RootVolume: true, PhysicalDisks: []v1alpha1.RootDeviceHints{{DeviceName: "/dev/sda"}, {DeviceName: "/dev/sdb"}}},
	}}
	h = l.prepare(h)
	n := l.node(h)
	want := map[string]any{"logical_disks": []any{map[string]any{
		"raid_level": "1", "size_gb": "MAX", "controller": "software", "is_root_volume": true,
		"physical_disks": []any{map[string]any{"name": "s== /dev/sda"}, map[string]any{"name": "s== /dev/sdb"}},
	}}}
	if diff := cmp.Diff(want, n["target_raid_config"]); diff != "" {
		t.Errorf("target (-want +got):\n%s", diff)
	}
	if n["raid_interface"] != "agent" {
		t.Errorf("raid interface %v, want agent", n["raid_interface"])
	}
	if hints := lifecycle.Hints(h); hints != nil {
		t.Errorf("root device hints %+v beside a root volume", hints)
	}
}

func TestBadRAID(t *testing.T) {
	hw := func(v ...v1alpha1.HardwareRAIDVolume) *v1alpha1.RAIDConfig {
		return &v1alpha1.RAIDConfig{HardwareRAIDVolumes: v}
	}
	tests := map[string]struct {
		raid   *v1alpha1.RAIDConfig
		scheme string
		says   []string
	}{
		"all space, on Redfish": {hw(v1alpha1.HardwareRAIDVolume{Level: "1"}), "redfish-virtualmedia", []string{"spec.raid.hardwareRAIDVolumes[0].sizeGibibytes"}},
		"several things": {
			hw(v1alpha1.HardwareRAIDVolume{Level: "1", Name: "a", PhysicalDisks: []string{"d1"}}, v1alpha1.HardwareRAIDVolume{Level: "1", Name: "a", SizeGibibytes: new(1), Controller: "c", PhysicalDisks: []string{"d1"}, NumberOfPhysicalDisks: new(2)}),
			"redfish-virtualmedia",
			[]string{"[0].controller", `[1].name: the name "a" is used twice`, "[1].numberOfPhysicalDisks: is 2, and there are 1 physicalDisks"},
		},
		"hardware RAID over IPMI":  {hw(v1alpha1.HardwareRAIDVolume{Level: "1", SizeGibibytes: new(1)}), "ipmi", []string{"driver no-raid does not support RAID"}},
		"software RAID 0 at first": {&v1alpha1.RAIDConfig{SoftwareRAIDVolumes: []v1alpha1.SoftwareRAIDVolume{{Level: "0"}}}, "redfish-virtualmedia", []string{"must be RAID1"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, ironictest.Config{}, nil)
			h := inspected(l)
			before := l.machine(h).Changes()
			h.Intent.Spec.RAID = tc.raid
			if tc.scheme == "ipmi" {
				h.Intent.Spec.BMC.Address = "ipmi://192.0.2.10"
			}
			_, p := l.fails(h, event.Prepare)
			for _, s := range tc.says {
				if !strings.Contains(p.Message, s) {
					t.Errorf("problem %q, want it to say %q", p.Message, s)
				}
			}
			if after := l.machine(h).Changes(); after != before {
				t.Errorf("the machine was changed: %v", l.machine(h).Acts())
			}
		})
	}
}

// B03: a cleaning that fails is told at once; each retry takes the node out of
// maintenance and cleans it anew, and nothing of it stays after a success.
func TestB03CleaningFails(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := inspected(l)
	h.Intent.Spec.RAID = &v1alpha1.RAIDConfig{SoftwareRAIDVolumes: []v1alpha1.SoftwareRAIDVolume{{Level: "1"}}}
	l.machine(h).SetFaults(ironictest.Faults{FailClean: "create_configuration"})
	for i := range 3 {
		var p event.Problem
		if h, p = l.fails(h, event.Prepare); p.Type != v1alpha1.PreparationError || !strings.Contains(p.Message, "raid.create_configuration") {
			t.Fatalf("try %d: problem %+v", i, p)
		}
		l.ironic.SyncPower() // newer Ironics forget last_error then
	}
	l.machine(h).SetFaults(ironictest.Faults{})
	h = l.prepare(h)
	if n := l.node(h); n["maintenance"] != false || n["fault"] != nil {
		t.Errorf("maintenance %v, fault %v", n["maintenance"], n["fault"])
	}
}

// What Ironic has cleared from last_error is found in the history.
func TestErrorThatIsForgotten(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := inspected(l)
	h.Intent.Spec.RAID = &v1alpha1.RAIDConfig{SoftwareRAIDVolumes: []v1alpha1.SoftwareRAIDVolume{{Level: "1"}}}
	l.machine(h).SetFaults(ironictest.Faults{FailClean: "create_configuration"})
	h = l.through(h, event.Prepare, "clean")
	l.until(h, "clean failed")
	name := namespace + "~" + h.Intent.Name
	if err := l.ironic.Force(name, ironictest.State{Provision: "clean failed", Target: "manageable", Power: "power on", Maintenance: true, Fault: "clean failure"}); err != nil {
		t.Fatal(err)
	}
	b, ok := l.look(h, event.Prepare).(lifecycle.Broken)
	if !ok || !strings.Contains(b.Problem.Message, "raid.create_configuration") {
		t.Errorf("%#v, want what the history says", b)
	}
}

// wishes is the host with another wish for its firmware.
func wishes(h lifecycle.Host, w event.FirmwareWish) lifecycle.Host {
	h.Intent.Firmware = &w
	return h
}

// B25, B26: only the settings that are wished are set, numbers as numbers, and none
// twice.
func TestB25FirmwareSettings(t *testing.T) {
	l := newLab(t, ironictest.Config{Release: ironictest.Ironic39}, nil)
	h := inspected(l)
	had := l.machine(h).View().Settings
	h = wishes(h, event.FirmwareWish{ID: "r2", Settings: []event.SettingChange{
		{Name: "NumaNodes", From: "1", To: "2", Number: true}, {Name: "ProcVirtualization", From: "Enabled", To: "Disabled"},
	}})
	h = l.prepare(h)
	got := l.machine(h).View().Settings
	if got["ProcVirtualization"] != "Disabled" || got["NumaNodes"] != "2" {
		t.Errorf("settings %v, they were %v", got, had)
	}
	if n := l.requestsWith(`{"name":"NumaNodes","value":2}`); n != 1 {
		t.Errorf("a number was sent %d times as a number", n)
	}
	before := l.cleanings()
	h = l.prepare(h)
	if l.cleanings() != before {
		t.Error("a wish that was carried out was carried out again")
	}
	h.Intent.Firmware.ID = "r9"
	l.prepare(h)
	if l.cleanings() != before+1 {
		t.Error("a wish that was made again was not carried out")
	}
}

// requestsWith counts the requests with a text.
func (l *lab) requestsWith(text string) int {
	l.Helper()
	n := 0
	for _, r := range l.ironic.Requests() {
		if strings.Contains(string(r.Body), text) {
			n++
		}
	}
	return n
}

func updates(url string) event.FirmwareWish {
	return event.FirmwareWish{UpdatesInUse: true, Updates: []v1alpha1.FirmwareUpdate{{Component: "bmc", URL: url}}}
}

// A host in use gets its firmware without being deprovisioned, and a change that
// fails can be called off (B28).
func TestB28Service(t *testing.T) {
	l := newLab(t, ironictest.Config{Release: ironictest.Ironic39}, nil)
	h := l.deploy(l.available(l.host()))
	image := l.machine(h).View().Disk
	h = l.does(wishes(h, updates("http://192.0.2.80/bmc-2.0.0.bin")), event.Service, lifecycle.Serviced{})
	if v := l.machine(h).View(); v.Firmware["bmc"] != "2.0.0" || v.Disk.Writes != image.Writes || v.Disk.Erases != image.Erases {
		t.Errorf("firmware %v, disk %+v", v.Firmware, v.Disk)
	}
	l.machine(h).SetFaults(ironictest.Faults{FailUpdate: true})
	h, p := l.fails(wishes(h, updates("http://192.0.2.80/bmc-3.0.0.bin")), event.Service)
	if p.Type != v1alpha1.ServicingError {
		t.Errorf("problem %+v", p)
	}
	h.Intent.Firmware = nil
	h, _ = l.must(h, event.Service)
	if n := l.node(h); n["provision_state"] != "active" || n["maintenance"] != false {
		t.Errorf("node in state %v, maintenance %v", n["provision_state"], n["maintenance"])
	}
	if v := l.machine(h).View(); v.Disk.Writes != image.Writes {
		t.Error("the disk was written to")
	}
}

func TestServiceOfOldIronics(t *testing.T) {
	l := newLab(t, ironictest.Config{Release: ironictest.Ironic21}, nil)
	h := l.enroll(l.host())
	h = l.deploy(l.record(h, lifecycle.Inspected{Digest: "d"}))
	_, p := l.fails(wishes(h, updates("http://192.0.2.80/bmc-2.0.0.bin")), event.Service)
	if p.Class != event.ClassUnsupported || !strings.Contains(p.Message, "1.87") || !strings.Contains(p.Message, "1.82") {
		t.Errorf("problem %+v, want the version needed and the one found", p)
	}
}
