package lifecycle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// pick draws a number below n: a walk is driven by rapid, or by a seed.
type pick func(label string, n int) int

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// next draws a fact that might be recorded of a host, sensible or not.
func next(h lifecycle.Host, pick pick) lifecycle.Fact {
	kinds := event.Kinds()
	kind := kinds[pick("kind", len(kinds))]
	if op, _ := h.Op(); op != nil && pick("own", 2) == 0 {
		kind = op.Kind
	}
	problem := lifecycle.NewProblem(v1alpha1.ProvisioningError, event.ClassImage, "no")
	phases := []lifecycle.Fact{
		lifecycle.Started{Kind: kind, Step: "a"},
		lifecycle.Claimed{Kind: kind, Step: "b"},
		lifecycle.Accepted{Kind: kind},
		lifecycle.Resumed{Kind: kind},
		lifecycle.Aborted{Kind: kind},
		lifecycle.Failed{Kind: kind, Problem: problem},
		lifecycle.Begun{Kind: kind},
	}
	if pick("phase", 2) == 0 {
		return phases[pick("which", len(phases))]
	}
	facts := []lifecycle.Fact{
		lifecycle.Enrolled{Backend: "redfish", Node: fmt.Sprint(pick("node", 2)), Address: h.Intent.Spec.BMC.Address, Credentials: lifecycle.Credentials(h.Intent)},
		lifecycle.Rotated{Credentials: lifecycle.Credentials(h.Intent)},
		lifecycle.Adopted{},
		lifecycle.Lost{},
		lifecycle.Detached{},
		lifecycle.Removed{},
		lifecycle.Inspected{Digest: "d"},
		lifecycle.Supplied{Digest: "e"},
		lifecycle.Skipped{},
		lifecycle.ReadyForImage{RAID: lifecycle.TargetRAID(h)},
		lifecycle.Provisioned{},
		lifecycle.Deprovisioned{},
		lifecycle.Abandoned{},
		lifecycle.MediaSet{URL: lifecycle.WantedMedia(h)},
		lifecycle.EnteredExternal{},
		lifecycle.LeftExternal{},
		lifecycle.Queued{Kind: event.Deploy},
		lifecycle.Forgiven{},
		lifecycle.Observed{What: event.PowerChanged, On: new(pick("on", 2) == 1)},
		lifecycle.Switched{Kind: event.PowerOn, On: true},
		lifecycle.Switched{Kind: event.PowerOff},
		lifecycle.Switched{Kind: event.Reboot, On: true},
		lifecycle.LeftOn{},
		lifecycle.SubscriptionSet{UID: fmt.Sprint(pick("subscription", 2)), ID: []string{"", "1"}[pick("there", 2)]},
		lifecycle.Served{},
		lifecycle.Observed{What: event.FaultChanged, Fault: "f"},
		lifecycle.Observed{What: event.HealthChanged, Health: "OK"},
		lifecycle.Stalled{In: kind.Section(), Message: "no answer"},
		lifecycle.Recovered{In: kind.Section()},
		lifecycle.Queued{Kind: event.Inspect, Position: 2},
		lifecycle.Serviced{Read: &event.FirmwareRead{Digest: "f", At: epoch}},
		lifecycle.FirmwareSeen{Read: event.FirmwareRead{Problem: "no", At: epoch}},
	}
	return facts[pick("fact", len(facts))]
}

// wish draws a change of what is asked of a host.
func wish(h lifecycle.Host, pick pick) lifecycle.Fact {
	i, fact := h.Intent, event.Changed
	if !h.Exists() {
		i = event.Intent{Namespace: "lab", Name: "host-a", CreatedAt: epoch, Credentials: event.SecretRef{Name: "s", Namespace: "lab", Version: "1"}}
		i.Spec.Online = true
		if pick("managed", 3) > 0 {
			i.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish://192.0.2.1", CredentialsName: "s"}
		}
		i.Spec.ExternallyProvisioned = pick("external", 4) == 0
		return lifecycle.Wish{Fact: event.Created, Intent: i}
	}
	switch pick("wish", 18) {
	case 0:
		i.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish://192.0.2.1", CredentialsName: "s"}
	case 1:
		i.Spec.BMC = v1alpha1.BMCDetails{}
	case 2, 3:
		i.Spec.Image = &v1alpha1.Image{URL: fmt.Sprintf("http://192.0.2.2/%d.iso", pick("image", 2))}
	case 4:
		i.Spec.Image = nil
	case 5:
		i.Spec.Online = !i.Spec.Online
	case 6:
		i.Spec.ExternallyProvisioned = !i.Spec.ExternallyProvisioned
	case 7:
		i.InspectionDisabled = !i.InspectionDisabled
	case 8:
		i.InspectRequest, fact = fmt.Sprint(pick("request", 3)), event.InspectRequested
	case 9:
		i.Detached, fact = &event.DetachRequest{Delay: pick("delay", 2) == 1, Force: pick("force", 2) == 1}, event.DetachAsked
	case 10:
		i.Detached, fact = nil, event.AttachAsked
	case 11:
		i.Reboots, fact = []event.RebootRequest{{ID: fmt.Sprint(pick("reboot", 3)), Force: pick("force", 2) == 1}}, event.RebootRequested
	case 12:
		i.Paused, fact = !i.Paused, event.Paused
	case 13:
		i.Spec.RAID = &v1alpha1.RAIDConfig{HardwareRAIDVolumes: []v1alpha1.HardwareRAIDVolume{{Level: fmt.Sprint(pick("level", 2))}}}
	case 14:
		i.DataImage = nil
		if n := pick("media", 3); n > 0 {
			i.DataImage = &event.DataImageWish{URL: fmt.Sprintf("http://192.0.2.2/%d.iso", n)}
		}
	case 15:
		i.Subscriptions = nil
		for n := range pick("subscriptions", 3) {
			i.Subscriptions = append(i.Subscriptions, event.SubscriptionWish{UID: fmt.Sprint(n), Destination: "https://192.0.2.9/"})
		}
	case 16:
		i.Firmware = firmwareWish(pick)
	case 17:
		if pick("delete", 2) == 0 {
			i.DeletedAt, fact = epoch, event.Deleting
		}
	}
	return lifecycle.Wish{Fact: fact, Intent: i}
}

// firmwareWish draws what is wished of a host's firmware, often nothing.
func firmwareWish(pick pick) *event.FirmwareWish {
	if pick("firmware", 2) == 0 {
		return nil
	}
	w := &event.FirmwareWish{SettingsInUse: pick("in use", 2) == 1, UpdatesInUse: pick("in use", 2) == 1}
	if id := pick("wish id", 3); id > 0 {
		w.ID, w.Settings = fmt.Sprint("r", id), []event.SettingChange{{Name: "A", From: "1", To: fmt.Sprint(id)}}
	}
	if url := pick("update", 3); url > 0 {
		w.Updates = []v1alpha1.FirmwareUpdate{{Component: "bmc", URL: fmt.Sprint("http://192.0.2.2/", url)}}
	}
	return w
}

// walk takes a host through up to n facts, shows each that the table allows,
// and returns what has become of the host.
func walk(h lifecycle.Host, n int, pick pick, show func(before, after lifecycle.Host, f lifecycle.Fact)) lifecycle.Host {
	for range n {
		f := next(h, pick)
		if !h.Exists() || pick("who", 8) == 0 {
			f = wish(h, pick)
		}
		after := recordAt(h, f, epoch.Add(time.Duration(h.Rev)*time.Second))
		if lifecycle.Check(h, after, f) != nil {
			continue
		}
		show(h, after, f)
		h = after
	}
	return h
}

func record(h lifecycle.Host, f lifecycle.Fact) lifecycle.Host { return recordAt(h, f, epoch) }

func recordAt(h lifecycle.Host, f lifecycle.Fact, at time.Time) lifecycle.Host {
	after := lifecycle.Apply(h, f, at)
	return after.WithNewest(f.Section(), lifecycle.Meta{Seq: h.Head + 1, Rev: h.Rev + 1, Fact: f.Name(), At: at})
}

// A running machine is never given up because something else broke: out of
// provisioned and externally provisioned leads only what its user asked for.
func TestRunningMachinesStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) }
		walk(start(draw), 120, draw, func(before, after lifecycle.Host, f lifecycle.Fact) {
			if why := givenUp(before, after, f); why != "" {
				t.Fatal(why)
			}
		})
	})
}

// givenUp says how a running machine was given up without being asked to, "" if
// it was not.
func givenUp(before, after lifecycle.Host, f lifecycle.Fact) string {
	from, to := lifecycle.Stage(before), lifecycle.Stage(after)
	if !lifecycle.Used(from) || lifecycle.Used(to) || f.Section() == event.SectionIntent {
		return ""
	}
	if lifecycle.Unwanted(before) || !before.Intent.DeletedAt.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s.%s led from %q to %q and nobody had asked for it", f.Section(), f.Name(), from, to)
}

// start is where a walk begins: with nothing, or with a running machine of any
// kind that a host was found to come to.
func start(pick pick) lifecycle.Host {
	used := explored().used
	if i := pick("start", 4*len(used)); i < 3*len(used) {
		return used[i%len(used)]
	}
	return lifecycle.Host{}
}

// The walks see what they are about, and what they look for they would find.
func TestGivenUpMachinesAreNoticed(t *testing.T) {
	used := explored().used
	if len(used) < 20 {
		t.Fatalf("walks came to %d kinds of running machines only", len(used))
	}
	noticed := 0
	for _, h := range used {
		for _, f := range []lifecycle.Fact{lifecycle.Deprovisioned{}, lifecycle.Started{Kind: event.Undeploy}, lifecycle.Begun{Kind: event.Undeploy}} {
			after := record(h, f)
			if givenUp(h, after, f) == "" {
				continue
			}
			noticed++
			if lifecycle.Check(h, after, f) == nil {
				t.Errorf("the table allows %s of a host that is %q", f.Name(), lifecycle.Stage(h))
			}
		}
	}
	if noticed < len(used) {
		t.Errorf("%d faults were planted into running machines, and %d noticed", 3*len(used), noticed)
	}
}

// The same for what is done to the machine without a change of state.
func TestRunningMachinesAreNotSwitchedOff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) }
		walk(start(draw), 120, draw, func(before, _ lifecycle.Host, f lifecycle.Fact) {
			s, ok := f.(lifecycle.Started)
			if !ok || !lifecycle.Used(lifecycle.Stage(before)) {
				return
			}
			off := s.Kind == event.PowerOff || s.Kind == event.Reboot
			switch {
			case off && !lifecycle.WantsOff(before):
				t.Fatalf("%s of a running machine that is to be on", s.Kind)
			case s.Kind == event.Subscribe && len(before.Intent.Subscriptions)+len(before.Power.Subscriptions) == 0:
				t.Fatal("a subscription that nobody asked for")
			case s.Kind == event.Inspect || s.Kind == event.Prepare || s.Kind == event.Deploy:
				t.Fatalf("%s of a running machine", s.Kind)
			case s.Kind == event.Service && !mayBeServiced(before):
				t.Fatalf("the firmware of a running machine is changed and nobody had asked for it: %+v", before)
			}
		})
	})
}

// mayBeServiced: its user lets the firmware be changed and it was seen off, or that
// has failed and is brought to an end.
func mayBeServiced(h lifecycle.Host) bool {
	if p := h.Provisioning.Problem; p != nil && p.Kind == event.Service {
		return true
	}
	w, off := h.Intent.Firmware, h.Power.On != nil && !*h.Power.On
	return w != nil && (w.SettingsInUse || w.UpdatesInUse) && off && h.Intent.Spec.Online && !h.Intent.Paused
}

// The walks come to running machines whose firmware is to be changed, and go on
// from there, also to where their user wants the image gone meanwhile.
func TestFirmwareIsChangedInUse(t *testing.T) {
	var due []lifecycle.Host
	for _, h := range explored().used {
		if lifecycle.BeforeBoot(h) == event.Service {
			due = append(due, h)
		}
	}
	if len(due) < 3 {
		t.Fatalf("walks came to %d kinds of running machines whose firmware is to be changed", len(due))
	}
	random, began, undeployed := rand.New(rand.NewPCG(3, 4)), 0, 0
	draw := func(_ string, n int) int { return random.IntN(n) }
	for i := range 3000 {
		walk(due[i%len(due)], 40, draw, func(before, after lifecycle.Host, f lifecycle.Fact) {
			switch {
			case f.Name() == event.Service.Fact(event.Started):
				began++
			case f.Name() == event.Service.Fact(event.Aborted) && lifecycle.Unwanted(before) && lifecycle.Stage(before) == v1alpha1.StateProvisioned:
				undeployed++
			}
			if why := givenUp(before, after, f); why != "" {
				t.Fatal(why)
			}
		})
	}
	if began < 100 || undeployed < 20 {
		t.Errorf("firmware of machines in use was changed %d times, %d times its user wanted the image gone meanwhile", began, undeployed)
	}
}

// Nothing is put into a running machine, or taken out of it, that its user did
// not ask for, and only before it boots or goes.
func TestMediaTakeTheUsersWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) }
		walk(start(draw), 120, draw, func(before, _ lifecycle.Host, f lifecycle.Fact) {
			s, ok := f.(lifecycle.Started)
			if !ok || s.Kind != event.Media {
				return
			}
			cd, on := before.Provisioning.Media, before.Power.On
			switch {
			case before.Intent.DataImage == nil && cd.URL == "" && !cd.Unsure:
				t.Fatal("nobody asked for a data image, and none is there")
			case !lifecycle.Used(lifecycle.Stage(before)), lifecycle.Stage(before) == v1alpha1.StateProvisioned && lifecycle.Unwanted(before):
				if lifecycle.WantedMedia(before) != "" {
					t.Fatal("a host that goes is given a data image")
				}
			case on == nil || *on || !before.Intent.Spec.Online || before.Power.Fault != "":
				t.Fatal("the host is not about to boot")
			}
		})
	})
}

// The same for running machines of every kind, with and without a wish.
func TestMediaOfRunningMachines(t *testing.T) {
	allowed := 0
	for _, h := range explored().used {
		h.Provisioning.Media, h.Intent.DataImage = event.VirtualCD{}, nil
		begins := func(h lifecycle.Host) bool {
			f := lifecycle.Started{Kind: event.Media, Step: "attach"}
			return lifecycle.Check(h, record(h, f), f) == nil
		}
		if begins(h) {
			t.Errorf("a data image that nobody asked for: %+v", h)
		}
		h = freed(h)
		h.Intent.DataImage = &event.DataImageWish{URL: "http://192.0.2.2/1.iso"}
		h.Power.On = new(true)
		if begins(h) {
			t.Errorf("a data image while the machine runs: %+v", h)
		}
		since := h.Provisioning.InUseSince
		h.Power.On, h.Power.SeenAt = new(false), since.Add(-time.Second)
		if begins(h) && !since.IsZero() {
			t.Errorf("a data image though nobody has looked since the deployment: %+v", h)
		}
		h.Power.SeenAt = since.Add(time.Second)
		if begins(h) {
			allowed++
		}
	}
	if n := len(explored().used); allowed != n {
		t.Errorf("%d of %d machines that are about to boot could be given the data image that was asked for", allowed, n)
	}
}

// freed is a host in use with all that keeps work from it gone.
func freed(h lifecycle.Host) lifecycle.Host {
	h.Intent.Paused, h.Intent.Detached, h.Intent.Reboots, h.Intent.Invalid = false, nil, nil, nil
	h.Provisioning.Image = v1alpha1.Image{URL: "http://192.0.2.2/0.iso"}
	h.Intent.Spec.Online, h.Intent.Spec.Image = true, h.Provisioning.Image.DeepCopy()
	h.Registration = event.Registration{
		Registered: true, Node: "n", Adopted: "n", Address: h.Intent.Spec.BMC.Address, Good: lifecycle.Credentials(h.Intent), External: h.Registration.External,
	}
	h.Inspection.Work, h.Provisioning.Work, h.Power.Work, h.Power.Fault = event.Work{}, event.Work{}, event.Work{}, ""
	return h
}

func TestOneOperationAtATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) }
		walk(lifecycle.Host{}, 120, draw, func(_, after lifecycle.Host, f lifecycle.Fact) {
			var ops []string
			for _, s := range event.Sections() {
				if op := after.Work(s).Op; op != nil {
					ops = append(ops, op.ID)
				}
			}
			if len(ops) > 1 {
				t.Fatalf("after %s: operations %v", f.Name(), ops)
			}
		})
	})
}

// Every way that the table draws is one that a host can take, and hosts take
// no other.
func TestTableIsWhatHappens(t *testing.T) {
	seen := explored().seen
	for i, r := range lifecycle.Table() {
		if slices.Contains(r.Facts, event.Restored) || slices.Contains(r.Facts, event.Forgotten) {
			continue // told by the object, not by the host's own life
		}
		for _, from := range r.From {
			for _, to := range r.To {
				if from != to && !seen[way{i, from, to}] {
					t.Errorf("no host goes from %q to %q by %s (%s)", from, to, strings.Join(r.Facts, ", "), r.Why)
				}
			}
		}
	}
}

// exploration is what many walks came to.
type exploration struct {
	seen map[way]bool
	// used are running machines that nobody wants to give up, one of each kind.
	used []lifecycle.Host
}

var explored = sync.OnceValue(func() exploration { return explore(50000) })

// way is a change of state by a row of the table.
type way struct {
	row      int
	from, to v1alpha1.ProvisioningState
}

// explore takes many hosts on short walks and says which ways they went. The
// walks start from hosts of every kind that was reached so far, so that rare
// ones go as many ways as common ones.
func explore(rounds int) exploration {
	seen := map[way]bool{}
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(_ string, n int) int { return random.IntN(n) }
	note := func(before, after lifecycle.Host, f lifecycle.Fact) {
		from, to := lifecycle.Stage(before), lifecycle.Stage(after)
		for i, r := range lifecycle.Table() {
			if from != to && r.Section == f.Section() && slices.Contains(r.Facts, f.Name()) {
				seen[way{i, from, to}] = true
			}
		}
	}
	reached := map[string]lifecycle.Host{"": {}}
	keys := []string{""}
	for range rounds {
		h := walk(reached[keys[random.IntN(len(keys))]], 12, draw, note)
		k := kind(h)
		if _, known := reached[k]; !known {
			keys = append(keys, k)
		}
		reached[k] = h
	}
	e := exploration{seen: seen}
	for _, k := range keys {
		if h := reached[k]; lifecycle.Used(lifecycle.Stage(h)) && !lifecycle.Unwanted(h) && h.Intent.DeletedAt.IsZero() {
			e.used = append(e.used, h)
		}
	}
	return e
}

// kind tells hosts apart as far as their ways may differ.
func kind(h lifecycle.Host) string {
	op, _ := h.Op()
	var doing event.Kind
	if op != nil {
		doing = op.Kind
	}
	return fmt.Sprint(lifecycle.Stage(h), h.Provisioning.Phase, doing, lifecycle.Leaving(h), lifecycle.Apart(h), h.Power.OffForDelete, h.Intent.DeletedAt.IsZero(), h.Registration.Detached, lifecycle.BeforeBoot(h) == event.Service)
}
