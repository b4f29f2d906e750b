package ironic_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	backend "github.com/metalbus/metalbus/pkg/backend/ironic"
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

// firmware wishes come from outside of this package.
type firmware struct{ wish backend.FirmwareWish }

func (f *firmware) of(lifecycle.Host) backend.FirmwareWish { return f.wish }

func firmwareLab(t *testing.T, release ironictest.Release) (*lab, *firmware) {
	t.Helper()
	f := &firmware{}
	return newLab(t, ironictest.Config{Release: release}, func(_ *backend.Settings, b *backend.Beside) { b.Firmware = f.of }), f
}

// B25, B26: only the settings that differ are set, numbers as numbers, and none
// twice.
func TestFirmwareSettings(t *testing.T) {
	l, f := firmwareLab(t, ironictest.Ironic39)
	h := inspected(l)
	had := l.machine(h).View().Settings
	f.wish.Settings = v1alpha1.DesiredSettingsMap{"ProcVirtualization": intstr.FromString("Disabled"), "NumaNodes": intstr.FromInt32(2)}
	h = l.prepare(h)
	got := l.machine(h).View().Settings
	if got["ProcVirtualization"] != "Disabled" || got["NumaNodes"] != "2" {
		t.Errorf("settings %v, they were %v", got, had)
	}
	before := l.cleanings()
	h = l.prepare(h)
	if l.cleanings() != before {
		t.Error("settings that are so already were set again")
	}
	f.wish.Settings["NumaNodes"] = intstr.FromString("2")
	l.prepare(h)
	if l.cleanings() != before {
		t.Error(`"2" is taken for something else than 2`)
	}
}

// A host in use gets its firmware without being deprovisioned, and a change that
// fails can be called off (B28).
func TestService(t *testing.T) {
	for _, release := range []ironictest.Release{ironictest.Ironic39} {
		l, f := firmwareLab(t, release)
		h := l.deploy(l.available(l.host()))
		image := l.machine(h).View().Disk
		f.wish.Updates = []v1alpha1.FirmwareUpdate{{Component: "bmc", URL: "http://192.0.2.80/bmc-2.0.0.bin"}}
		h, _ = l.must(h, event.Service)
		if v := l.machine(h).View(); v.Firmware["bmc"] != "2.0.0" || v.Disk.Writes != image.Writes || v.Disk.Erases != image.Erases {
			t.Errorf("firmware %v, disk %+v", v.Firmware, v.Disk)
		}
		h = l.record(h, lifecycle.Aborted{Kind: event.Service})
		l.machine(h).SetFaults(ironictest.Faults{FailUpdate: true})
		f.wish.Updates[0].URL = "http://192.0.2.80/bmc-3.0.0.bin"
		h, p := l.fails(h, event.Service)
		if p.Type != v1alpha1.ServicingError {
			t.Errorf("problem %+v", p)
		}
		f.wish = backend.FirmwareWish{}
		h, _ = l.must(h, event.Service)
		if n := l.node(h); n["provision_state"] != "active" || n["maintenance"] != false {
			t.Errorf("node in state %v, maintenance %v", n["provision_state"], n["maintenance"])
		}
		if v := l.machine(h).View(); v.Disk.Writes != image.Writes {
			t.Error("the disk was written to")
		}
	}
}

func TestServiceOfOldIronics(t *testing.T) {
	l, f := firmwareLab(t, ironictest.Ironic21)
	h := l.enroll(l.host())
	h = l.deploy(l.record(h, lifecycle.Inspected{Digest: "d"}))
	f.wish.Updates = []v1alpha1.FirmwareUpdate{{Component: "bmc", URL: "http://192.0.2.80/bmc-2.0.0.bin"}}
	_, p := l.fails(h, event.Service)
	if p.Class != event.ClassUnsupported || !strings.Contains(p.Message, "1.87") || !strings.Contains(p.Message, "1.82") {
		t.Errorf("problem %+v, want the version needed and the one found", p)
	}
}
