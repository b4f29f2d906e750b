package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func flash(component, version string) v1alpha1.FirmwareUpdate {
	return v1alpha1.FirmwareUpdate{Component: component, URL: "http://192.0.2.80/" + component + "-" + version}
}

func turbo(id string) event.FirmwareWish {
	return event.FirmwareWish{ID: id, Settings: []event.SettingChange{{Name: "Turbo", From: "Enabled", To: "Disabled"}}}
}

// firmwareHost is a host with its disk in a phase, online and off, and a wish.
func firmwareHost(p event.PhaseOfDisk, w *event.FirmwareWish) lifecycle.Host {
	h := lifecycle.Host{UID: "u"}.WithNewest(event.SectionIntent, lifecycle.Meta{Seq: 1, Rev: 1})
	h.Intent.Spec = v1alpha1.BareMetalHostSpec{Online: true, BMC: v1alpha1.BMCDetails{Address: "redfish://192.0.2.1"}, Image: &v1alpha1.Image{URL: "i"}}
	h.Intent.Firmware = w
	h.Registration.Registered, h.Inspection.Done = true, true
	h.Provisioning.Phase, h.Provisioning.Image = p, v1alpha1.Image{URL: "i"}
	off := false
	h.Power.On, h.Power.SeenAt = &off, epoch
	return h
}

// short is what is left to change, in short.
func short(h lifecycle.Host) string {
	var list []string
	c := lifecycle.FirmwareChanges(h)
	for _, s := range c.Settings {
		list = append(list, s.Name+"="+s.To)
	}
	for _, u := range c.Updates {
		list = append(list, u.URL[strings.LastIndex(u.URL, "/")+1:])
	}
	return strings.Join(list, " ")
}

// What was handed over is not handed over again, however it ended but in failure;
// what is wished meanwhile is.
func TestFirmwareIsHandedOverOnce(t *testing.T) {
	both := turbo("r1")
	both.Updates = []v1alpha1.FirmwareUpdate{flash("bios", "2"), flash("bmc", "2")}
	wish := func(w *event.FirmwareWish) lifecycle.Fact {
		i := firmwareHost(event.Prepared, w).Intent
		return lifecycle.Wish{Fact: event.Changed, Intent: i}
	}
	started, done := lifecycle.Started{Kind: event.Prepare}, lifecycle.ReadyForImage{}
	failed := lifecycle.Failed{Kind: event.Prepare, Problem: lifecycle.NewProblem(v1alpha1.PreparationError, event.ClassHardware, "no")}
	again, next, older := turbo("r9"), both, both
	next.Updates = []v1alpha1.FirmwareUpdate{flash("bios", "3"), flash("bmc", "2")}
	older.Installed, older.Updates = []v1alpha1.FirmwareUpdate{flash("bmc", "1")}, []v1alpha1.FirmwareUpdate{flash("bios", "2")}
	for name, tt := range map[string]struct {
		facts []lifecycle.Fact
		want  string
	}{
		"all of it at first":                       {nil, "Turbo=Disabled bios-2 bmc-2"},
		"nothing is done by being begun":           {[]lifecycle.Fact{started}, "Turbo=Disabled bios-2 bmc-2"},
		"nothing is left once it is done":          {[]lifecycle.Fact{started, done}, ""},
		"all of it after a failure":                {[]lifecycle.Fact{started, failed}, "Turbo=Disabled bios-2 bmc-2"},
		"and after it was given up":                {[]lifecycle.Fact{started, lifecycle.Aborted{Kind: event.Prepare}}, "Turbo=Disabled bios-2 bmc-2"},
		"a wish that came meanwhile is open":       {[]lifecycle.Fact{started, wish(&again), done}, "Turbo=Disabled"},
		"what a machine does not heed stays done":  {[]lifecycle.Fact{started, done, wish(&both)}, ""},
		"a wish that is made again is a new one":   {[]lifecycle.Fact{started, done, wish(nil), wish(&again)}, "Turbo=Disabled"},
		"an update of one component leaves others": {[]lifecycle.Fact{started, done, wish(&next)}, "bios-3"},
		"an update that failed undoes the one before": {
			[]lifecycle.Fact{started, done, wish(&next), started, failed, wish(&both)}, "bios-2",
		},
		"what an object calls installed is": {[]lifecycle.Fact{wish(&older), started, done, wish(&event.FirmwareWish{Updates: []v1alpha1.FirmwareUpdate{flash("bmc", "1")}})}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := firmwareHost(event.Prepared, &both)
			for _, f := range tt.facts {
				h = record(h, f)
			}
			if got := short(h); got != tt.want {
				t.Errorf("left to change: %q, want %q (done %+v)", got, tt.want, h.Provisioning.Firmware)
			}
			if h.Provisioning.Phase == event.Prepared && lifecycle.Unsettled(h) != (tt.want != "") {
				t.Errorf("unsettled is %v", lifecycle.Unsettled(h))
			}
		})
	}
}

func TestBeforeBoot(t *testing.T) {
	inUse := turbo("r1")
	inUse.SettingsInUse = true
	updates := event.FirmwareWish{ID: "r1", Settings: inUse.Settings, Updates: []v1alpha1.FirmwareUpdate{flash("bmc", "2")}, UpdatesInUse: true}
	with := func(w event.FirmwareWish, changes ...func(*lifecycle.Host)) lifecycle.Host {
		h := firmwareHost(event.Deployed, &w)
		for _, c := range changes {
			c(&h)
		}
		return h
	}
	broken := func(h *lifecycle.Host) {
		h.Provisioning.Problem = &event.Problem{Type: v1alpha1.ServicingError, Kind: event.Service}
		h.Intent.Firmware = nil
	}
	for name, tt := range map[string]struct {
		host lifecycle.Host
		want event.Kind
		left string
	}{
		"its user lets it be done":              {with(inUse), event.Service, "Turbo=Disabled"},
		"only what its user lets be done":       {with(updates), event.Service, "bmc-2"},
		"not without its user's word":           {with(turbo("r1")), "", ""},
		"not while it runs":                     {with(inUse, func(h *lifecycle.Host) { h.Power.On = new(true) }), "", "Turbo=Disabled"},
		"not while nobody knows":                {with(inUse, func(h *lifecycle.Host) { h.Power.On = nil }), "", "Turbo=Disabled"},
		"not by what was seen before it ran":    {with(inUse, func(h *lifecycle.Host) { h.Provisioning.InUseSince = epoch.Add(time.Second) }), "", "Turbo=Disabled"},
		"not while it is to be off":             {with(inUse, func(h *lifecycle.Host) { h.Intent.Spec.Online = false }), "", "Turbo=Disabled"},
		"not while it is paused":                {with(inUse, func(h *lifecycle.Host) { h.Intent.Paused = true }), "", "Turbo=Disabled"},
		"not while it is to be detached":        {with(inUse, func(h *lifecycle.Host) { h.Intent.Detached = &event.DetachRequest{} }), "", "Turbo=Disabled"},
		"not if its image is to go":             {with(inUse, func(h *lifecycle.Host) { h.Intent.Spec.Image = nil }), "", "Turbo=Disabled"},
		"not twice":                             {with(inUse, func(h *lifecycle.Host) { h.Provisioning.Firmware = &event.FirmwareDone{Wish: "r1"} }), "", ""},
		"what failed is brought to an end":      {with(inUse, broken), event.Service, ""},
		"also while it runs, or is to be off":   {with(inUse, broken, func(h *lifecycle.Host) { h.Power.On, h.Intent.Spec.Online = new(true), false }), event.Service, ""},
		"somebody else's machine":               {with(inUse, func(h *lifecycle.Host) { h.Provisioning.Phase, h.Intent.Spec.Image = event.External, nil }), event.Service, "Turbo=Disabled"},
		"what is available is prepared instead": {with(inUse, func(h *lifecycle.Host) { h.Provisioning.Phase = event.Prepared }), "", "Turbo=Disabled"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lifecycle.BeforeBoot(tt.host); got != tt.want {
				t.Errorf("before it boots: %q, want %q", got, tt.want)
			}
			if got := short(tt.host); got != tt.left {
				t.Errorf("left to change: %q, want %q", got, tt.left)
			}
		})
	}
}

// The newest reading counts, and one that failed is tried again, later.
func TestFirmwareReading(t *testing.T) {
	h := firmwareHost(event.Prepared, nil)
	unread := func(now time.Time) string { return fmt.Sprint(lifecycle.Unread(h, now)) }
	if got := unread(epoch); got != "true 0s" {
		t.Errorf("never read: %s", got)
	}
	h.Registration.Firmware = event.FirmwareRead{Digest: "a", At: epoch}
	h = record(h, lifecycle.FirmwareSeen{Read: event.FirmwareRead{Digest: "a", At: epoch.Add(time.Minute), Problem: "500"}})
	if got := lifecycle.Firmware(h).Problem; got != "500" {
		t.Errorf("the newest reading says %q", got)
	}
	if got := unread(epoch.Add(2 * time.Minute)); got != "true 9m0s" {
		t.Errorf("a minute after it failed: %s", got)
	}
	h = record(h, lifecycle.Enrolled{Firmware: event.FirmwareRead{Digest: "b", At: epoch.Add(time.Hour)}})
	if got := lifecycle.Firmware(h).Digest; got != "b" {
		t.Errorf("after another registration it is %q", got)
	}
	if got := unread(epoch.Add(48 * time.Hour)); got != "false 0s" {
		t.Errorf("read: %s", got)
	}
}
