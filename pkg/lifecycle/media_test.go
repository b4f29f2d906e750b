package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

const disc, other = "http://192.0.2.2/a.iso", "http://192.0.2.2/b.iso"

// inUse is a provisioned host, off and about to boot, with changes.
func inUse(changes ...func(*lifecycle.Host)) lifecycle.Host {
	off := false
	h := lifecycle.Host{UID: "u"}.WithNewest(event.SectionIntent, lifecycle.Meta{Seq: 1, Rev: 1})
	h.Intent.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish://192.0.2.1", CredentialsName: "s"}
	h.Intent.Spec.Online, h.Intent.Spec.Image = true, &v1alpha1.Image{URL: "http://192.0.2.2/os"}
	h.Intent.Credentials = event.SecretRef{Namespace: "lab", Name: "s", Version: "7"}
	h.Registration = event.Registration{Registered: true, Node: "n", Address: h.Intent.Spec.BMC.Address, Good: lifecycle.Credentials(h.Intent)}
	h.Inspection.Done = true
	h.Provisioning = event.Provisioning{Phase: event.Deployed, Image: *h.Intent.Spec.Image, Node: "n"}
	h.Power.On, h.Power.SeenAt = &off, epoch
	for _, c := range changes {
		c(&h)
	}
	return h
}

func wants(url string) func(*lifecycle.Host) {
	return func(h *lifecycle.Host) { h.Intent.DataImage = &event.DataImageWish{URL: url} }
}

func holds(url string) func(*lifecycle.Host) {
	return func(h *lifecycle.Host) { h.Provisioning.Media.URL = url }
}

func triedFor(url string, off time.Time) func(*lifecycle.Host) {
	return func(h *lifecycle.Host) {
		m := &h.Provisioning.Media
		m.Tried, m.TriedAt, m.Off = url, off.Add(time.Second), off
	}
}

func gone(h *lifecycle.Host)      { h.Intent.DeletedAt = epoch }
func running(h *lifecycle.Host)   { on := true; h.Power.On = &on }
func withdrawn(h *lifecycle.Host) { h.Intent.Spec.Image = nil }
func foreignDisk(h *lifecycle.Host) {
	h.Provisioning = event.Provisioning{Phase: event.External, Node: "n"}
	h.Intent.Spec.Image, h.Intent.Spec.ExternallyProvisioned = nil, true
}

func TestMediaDue(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		host lifecycle.Host
		want bool
		url  string
	}{
		"nothing is asked for":                                  {inUse(), false, ""},
		"an image is asked for":                                 {inUse(wants(disc)), true, disc},
		"also where the disk is somebody else's":                {inUse(foreignDisk, wants(disc)), true, disc},
		"it is in the drive already, as far as is known":        {inUse(wants(disc), holds(disc)), true, disc},
		"it was seen to in this time off":                       {inUse(wants(disc), holds(disc), triedFor(disc, epoch)), false, disc},
		"it failed in this time off":                            {inUse(wants(disc), triedFor(disc, epoch)), false, disc},
		"it failed the last time":                               {inUse(wants(disc), triedFor(disc, epoch.Add(-time.Hour))), true, disc},
		"another one is asked for meanwhile":                    {inUse(wants(other), holds(disc), triedFor(disc, epoch)), true, other},
		"it is no longer asked for":                             {inUse(holds(disc)), true, ""},
		"it is not known what is in the drive":                  {inUse(func(h *lifecycle.Host) { h.Provisioning.Media.Unsure = true }), true, ""},
		"the host runs":                                         {inUse(wants(disc), running), false, disc},
		"its power is not known":                                {inUse(wants(disc), func(h *lifecycle.Host) { h.Power.On = nil }), false, disc},
		"nobody can power it on":                                {inUse(wants(disc), func(h *lifecycle.Host) { h.Power.Fault = "no answer" }), false, disc},
		"it stays off":                                          {inUse(wants(disc), func(h *lifecycle.Host) { h.Intent.Spec.Online = false }), false, disc},
		"it is kept off by a phased reboot":                     {inUse(wants(disc), func(h *lifecycle.Host) { h.Intent.Reboots = []event.RebootRequest{{Key: "k", ID: "r1/k"}} }), false, disc},
		"it is paused":                                          {inUse(wants(disc), func(h *lifecycle.Host) { h.Intent.Paused = true }), false, disc},
		"it is detached":                                        {inUse(wants(disc), func(h *lifecycle.Host) { h.Intent.Detached = &event.DetachRequest{} }), false, disc},
		"the backend lost it":                                   {inUse(wants(disc), func(h *lifecycle.Host) { h.Registration.Lost = true }), false, disc},
		"other work on it backs off":                            {inUse(wants(disc), func(h *lifecycle.Host) { h.Provisioning.Problem = &event.Problem{} }), false, disc},
		"it is not in use":                                      {inUse(wants(disc), func(h *lifecycle.Host) { h.Provisioning.Phase = event.Prepared }), false, ""},
		"it is deleted with the image in the drive":             {inUse(wants(disc), holds(disc), running, gone), true, ""},
		"it is deleted and the drive was never used":            {inUse(wants(disc), running, gone), false, ""},
		"it is deleted and the drive could not be emptied":      {inUse(holds(disc), gone, func(h *lifecycle.Host) { h.Provisioning.Media.GivenUp = true }), false, ""},
		"it is deleted while detached":                          {inUse(holds(disc), gone, func(h *lifecycle.Host) { h.Intent.Detached = &event.DetachRequest{} }), false, ""},
		"somebody else's disk, deleted with an image":           {inUse(foreignDisk, wants(disc), holds(disc), running, gone), true, ""},
		"its own image goes while a data image is in the drive": {inUse(wants(disc), holds(disc), running, withdrawn), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := lifecycle.MediaDue(tt.host); got != tt.want {
				t.Errorf("due %v, want %v", got, tt.want)
			}
			if got := lifecycle.WantedMedia(tt.host); got != tt.url {
				t.Errorf("wants %q, want %q", got, tt.url)
			}
		})
	}
}

// A try in vain is noted, is no problem of the host, and does not keep it off.
func TestMediaFailureKeepsNoHostOff(t *testing.T) {
	t.Parallel()
	h := inUse(wants(disc), holds(other))
	if k := lifecycle.BeforeBoot(h); k != event.Media {
		t.Fatalf("before its boot: %q", k)
	}
	h = record(h, lifecycle.Started{Kind: event.Media, Step: "detach"})
	problem := lifecycle.NewProblem(v1alpha1.ProvisioningError, event.ClassMedia, "no drive")
	h = record(h, lifecycle.Failed{Kind: event.Media, Problem: problem})
	if k := lifecycle.BeforeBoot(h); k != "" {
		t.Errorf("after the failure it is kept off by %q", k)
	}
	if lifecycle.Problem(h) != nil || h.Provisioning.Failures != 0 {
		t.Errorf("the host has a problem: %+v", h.Provisioning.Work)
	}
	problem.At, problem.Kind = epoch, event.Media
	want := event.VirtualCD{Unsure: true, Tried: disc, TriedAt: epoch, Off: epoch, Failures: 1, Problem: &problem}
	if diff := cmp.Diff(want, h.Provisioning.Media); diff != "" {
		t.Error(diff)
	}
	h.Power.SeenAt = epoch.Add(time.Hour)
	if !lifecycle.MediaDue(h) {
		t.Error("it is not tried again the next time that it is off")
	}
}

// What is given up on the way out is told when the host goes.
func TestMediaLeftBehindIsTold(t *testing.T) {
	t.Parallel()
	h := inUse(wants(disc), holds(disc), gone)
	problem := lifecycle.NewProblem(v1alpha1.ProvisioningError, event.ClassMedia, "no answer")
	h = record(h, lifecycle.Failed{Kind: event.Media, Problem: problem})
	if lifecycle.MediaDue(h) || !h.Provisioning.Media.GivenUp {
		t.Fatalf("it is tried again: %+v", h.Provisioning.Media)
	}
	after := record(h, lifecycle.Removed{})
	news := lifecycle.Announce(h, after, event.SectionRegistration, "remove.succeeded")
	if len(news) != 1 || news[0].Reason != "DeletedIncompletely" {
		t.Errorf("told %+v", news)
	}
}
