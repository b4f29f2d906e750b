package backendtest

import (
	"testing"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Conform runs the suite.
func Conform(t *testing.T, lab func(t *testing.T) Lab) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Lab){
		"a host lives from enrolment to removal":                 life,
		"what is so already takes no write":                      idempotent,
		"power goes on, off and on again":                        power,
		"a host that is deployed stays on and untouched":         steady,
		"an unreachable BMC is the host's problem, and it heals": unreachable,
		"another image replaces the first":                       replace,
		"firmware is read, and changed as it is wished":          firmware,
		"data images come and go between two boots":              dataImages,
		"subscriptions are made once, and ended":                 subscriptions,
	} {
		t.Run(name, func(t *testing.T) { test(t, lab(t)) })
	}
}

func enrolled(h lifecycle.Host) func(lifecycle.Result) lifecycle.Fact {
	return func(r lifecycle.Result) lifecycle.Fact {
		return lifecycle.Enrolled{Node: r.Node, Address: h.Intent.Spec.BMC.Address, Profile: lifecycle.Profile(h), Credentials: lifecycle.Credentials(h.Intent)}
	}
}

func fact(f lifecycle.Fact) func(lifecycle.Result) lifecycle.Fact {
	return func(lifecycle.Result) lifecycle.Fact { return f }
}

// available takes a new host to where it may be used.
func available(t *testing.T, l Lab) lifecycle.Host {
	t.Helper()
	h := l.NewHost(t)
	h = l.must(t, h, event.Enroll, enrolled(h))
	if h.Registration.Node == "" {
		t.Error("an enrolled host has no identity")
	}
	h = l.must(t, h, event.Inspect, func(r lifecycle.Result) lifecycle.Fact {
		l.checkHardware(t, r.Hardware)
		return lifecycle.Inspected{Digest: "d", Source: l.Backend.Name()}
	})
	return l.must(t, h, event.Prepare, fact(lifecycle.ReadyForImage{RAID: lifecycle.TargetRAID(h)}))
}

func (l Lab) checkHardware(t *testing.T, d *v1alpha1.HardwareDetails) {
	t.Helper()
	if d == nil {
		t.Fatal("inspection found nothing")
	}
	if d.CPU.Count < 1 || d.CPU.Arch == "" || d.RAMMebibytes < 1 || len(d.NIC) == 0 || (len(d.Storage) == 0 && !l.Sparse) || d.SystemVendor.Manufacturer == "" {
		t.Errorf("inspection left out the most of it: %+v", d)
	}
	for _, n := range d.NIC {
		if n.MAC == "" || n.SpeedGbps < 0 {
			t.Errorf("network interface %+v", n)
		}
	}
	for _, s := range d.Storage {
		if s.Name == "" || s.SizeBytes <= 0 {
			t.Errorf("disk %+v", s)
		}
	}
}

// deployed takes an available host to one with the lab's image.
func deployed(t *testing.T, l Lab, h lifecycle.Host) lifecycle.Host {
	t.Helper()
	image := l.Image
	h.Intent.Spec.Online, h.Intent.Spec.Image = true, &image
	h = l.must(t, h, event.Deploy, fact(lifecycle.Provisioned{}))
	return l.must(t, h, event.PowerOn, fact(lifecycle.Switched{Kind: event.PowerOn, On: true}))
}

func life(t *testing.T, l Lab) {
	h := deployed(t, l, available(t, l))
	if m := l.Machine(t, h); !m.On || m.Image != l.Image.URL {
		t.Fatalf("after deployment: %+v, want it on with %s", m, l.Image.URL)
	}
	h.Intent.Spec.Image = nil
	h = l.must(t, h, event.Undeploy, fact(lifecycle.Deprovisioned{}))
	if m := l.Machine(t, h); m.Image != "" {
		t.Errorf("after undeployment: %+v, want it empty", m)
	}
	h.Intent.DeletedAt = l.Now()
	h = l.must(t, h, event.PowerOff, fact(lifecycle.Switched{Kind: event.PowerOff}))
	if m := l.Machine(t, h); m.On {
		t.Error("after power-off the machine is on")
	}
	l.must(t, h, event.Remove, fact(lifecycle.Removed{}))
}

// idempotent: once an operation has ended, another look finds nothing to write.
func idempotent(t *testing.T, l Lab) {
	h := deployed(t, l, available(t, l))
	before := l.Machine(t, h)
	for _, k := range []event.Kind{event.Enroll, event.PowerOn} {
		o, err := l.Backend.Look(t.Context(), k, h)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := o.(lifecycle.Finished); !ok {
			t.Errorf("%s of a host that is there already: %#v", k, o)
		}
	}
	if after := l.Machine(t, h); after != before {
		t.Errorf("looking changed the machine from %+v to %+v", before, after)
	}
}

func power(t *testing.T, l Lab) {
	h := available(t, l)
	for _, want := range []bool{true, false, true} {
		k := event.PowerOff
		if want {
			k = event.PowerOn
		}
		h.Intent.Spec.Online = want
		h = l.must(t, h, k, fact(lifecycle.Switched{Kind: k, On: want}))
		if m := l.Machine(t, h); m.On != want {
			t.Fatalf("after %s the machine is on: %v", k, m.On)
		}
		s, err := l.Backend.Power(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		if s.On == nil || *s.On != want || s.Fault != "" {
			t.Errorf("after %s the backend says %+v", k, s)
		}
	}
}

func steady(t *testing.T, l Lab) {
	h := deployed(t, l, available(t, l))
	before := l.Machine(t, h)
	h = l.must(t, h, event.Enroll, enrolled(h))
	if after := l.Machine(t, h); after != before {
		t.Errorf("registering a running host again changed its machine from %+v to %+v", before, after)
	}
}

func unreachable(t *testing.T, l Lab) {
	if l.Break == nil {
		t.Log("this lab cannot cut off a BMC") // the lab says so by its nil, and its own suite covers it
		return
	}
	h := l.NewHost(t)
	mend := l.Break(t, h)
	h, _, problem, err := l.Drive(t.Context(), h, event.Enroll)
	if err != nil {
		t.Fatal(err)
	}
	if problem == nil || problem.Type != v1alpha1.RegistrationError || problem.Message == "" {
		t.Fatalf("problem %+v", problem)
	}
	mend()
	l.must(t, h, event.Enroll, enrolled(h))
}

func replace(t *testing.T, l Lab) {
	h := deployed(t, l, available(t, l))
	boots := l.Machine(t, h).Boots
	h = l.must(t, h, event.Undeploy, fact(lifecycle.Deprovisioned{}))
	h = deployed(t, l, h)
	if m := l.Machine(t, h); !m.On || m.Image != l.Image.URL || m.Boots <= boots {
		t.Errorf("after another deployment: %+v, it had booted %d times before", m, boots)
	}
}

// firmware: a backend that reads firmware changes it in preparing and in servicing.
func firmware(t *testing.T, l Lab) {
	h := available(t, l)
	f, err := l.Backend.Firmware(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	if f == nil {
		t.Log("this backend reads no firmware") // and so nobody has it change any
		return
	}
	wish := another(t, f)
	h.Intent.Firmware = &event.FirmwareWish{ID: "r1", Settings: []event.SettingChange{wish}, SettingsInUse: true}
	h = l.must(t, h, event.Prepare, fact(lifecycle.ReadyForImage{RAID: lifecycle.TargetRAID(h)}))
	changed(t, l, h, wish)
	h = deployed(t, l, h)
	wish.From, wish.To = wish.To, wish.From
	h.Intent.Firmware = &event.FirmwareWish{ID: "r2", Settings: []event.SettingChange{wish}, SettingsInUse: true}
	if l.NoService {
		l.refuses(t, h, event.Service)
		return
	}
	h = l.must(t, h, event.Service, fact(lifecycle.Serviced{}))
	changed(t, l, h, wish)
	if m := l.Machine(t, h); m.Image != l.Image.URL {
		t.Errorf("after servicing: %+v, want it with %s", m, l.Image.URL)
	}
}

// another is a setting with another value that it can take.
func another(t *testing.T, f *event.Firmware) event.SettingChange {
	t.Helper()
	for name, s := range f.Schema {
		for _, v := range s.AllowableValues {
			if have := f.Settings[name]; v != have && (s.ReadOnly == nil || !*s.ReadOnly) {
				return event.SettingChange{Name: name, From: have, To: v}
			}
		}
	}
	t.Fatalf("no setting can take another value: %+v", f)
	return event.SettingChange{}
}

func changed(t *testing.T, l Lab, h lifecycle.Host, c event.SettingChange) {
	t.Helper()
	f, err := l.Backend.Firmware(t.Context(), h)
	if err != nil || f == nil {
		t.Fatalf("firmware %+v, error %v", f, err)
	}
	if f.Settings[c.Name] != c.To {
		t.Errorf("%s is %q, want %q", c.Name, f.Settings[c.Name], c.To)
	}
}

// refuses: what a backend cannot do it says, with a way out.
func (l Lab) refuses(t *testing.T, h lifecycle.Host, k event.Kind) {
	t.Helper()
	_, _, problem, err := l.Drive(t.Context(), h, k)
	if err != nil || problem == nil || problem.Class != event.ClassUnsupported || problem.Next == "" {
		t.Errorf("a backend that cannot %s: problem %+v, error %v", k, problem, err)
	}
}

// dataImages: one is put in, seen to be there, replaced, taken out, and taken
// out once more. A backend that cannot says so, with a way out.
func dataImages(t *testing.T, l Lab) {
	h := deployed(t, l, available(t, l))
	h = l.must(t, h, event.PowerOff, fact(lifecycle.Switched{Kind: event.PowerOff}))
	if len(l.DataImages) == 0 {
		h.Intent.DataImage = &event.DataImageWish{URL: l.Image.URL}
		l.refuses(t, h, event.Media)
		return
	}
	for _, url := range append(l.DataImages, l.DataImages[len(l.DataImages)-1], "", "") {
		h.Intent.DataImage = nil
		if url != "" {
			h.Intent.DataImage = &event.DataImageWish{URL: url}
		}
		h = l.must(t, h, event.Media, fact(lifecycle.MediaSet{URL: url}))
		if m := l.Machine(t, h); m.Media != (url != "") || m.On {
			t.Errorf("with the data image %q wanted: %+v", url, m)
		}
	}
}

// subscriptions: two of the same kind are made, found again if that was forgotten,
// and ended one by one; ending what is not there is no trouble.
func subscriptions(t *testing.T, l Lab) {
	h := available(t, l)
	wish := func(uid string) event.SubscriptionWish {
		return event.SubscriptionWish{UID: uid, Name: uid, Destination: "https://192.0.2.90/events", Context: "rack 1"}
	}
	h.Intent.Subscriptions = []event.SubscriptionWish{wish("a"), wish("b")}
	if l.Subscribed == nil {
		l.refuses(t, h, event.Subscribe)
		return
	}
	next := func(h lifecycle.Host) lifecycle.Host {
		turn, _ := lifecycle.NextSubscription(h)
		return l.must(t, h, event.Subscribe, func(r lifecycle.Result) lifecycle.Fact {
			return lifecycle.SubscriptionSet{UID: turn.UID, ID: r.Subscription}
		})
	}
	count := func(want int) {
		t.Helper()
		if got := l.Subscribed(t, h); len(got) != want {
			t.Errorf("%d subscriptions at the BMC, want %d: %q", len(got), want, got)
		}
	}
	forgetful := h // it made both and knows of none
	h = next(next(h))
	count(2)
	ids := map[string]bool{}
	for _, s := range h.Power.Subscriptions {
		ids[s.ID] = true
	}
	if len(ids) != 2 || ids[""] {
		t.Errorf("the subscriptions are known as %v", ids)
	}
	next(next(forgetful))
	count(2)
	h.Intent.Subscriptions = h.Intent.Subscriptions[:1]
	before := h
	h = next(h)
	count(1)
	next(before) // once more, since that was forgotten
	count(1)
	h.Intent.Subscriptions = nil
	h = next(h)
	count(0)
	if len(h.Power.Subscriptions) != 0 {
		t.Errorf("what is known is left: %+v", h.Power.Subscriptions)
	}
}
