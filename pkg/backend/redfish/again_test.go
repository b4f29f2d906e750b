package redfish_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Whoever makes a write may be killed at any of its parts, and another makes the
// write again: what was done by then is not done once more.
func TestAWriteThatIsMadeAgainLeavesAloneWhatIsSo(t *testing.T) {
	for _, profile := range bmcsim.Profiles() {
		t.Run(profile, func(t *testing.T) {
			r := newRack(t, profile)
			h := r.newHost(t)
			image := r.lab().Image
			h.Intent.Spec.Image = &image

			machine := r.hosts[h.UID]
			machine.SetFaults(bmcsim.Faults{RefusePower: true})
			h = r.writes(t, h, event.Deploy, "boot", false)
			machine.SetFaults(bmcsim.Faults{})
			r.writes(t, h, event.Deploy, "boot", true)
			want := []string{"InsertMedia", "SetBoot Cd", "Reset"}
			if diff := cmp.Diff(want, did(machine)); diff != "" {
				t.Errorf("booting, and once more (-want +got):\n%s", diff)
			}

			h = r.newHost(t)
			h.Intent.Spec.Image = &image
			machine = r.hosts[h.UID]
			machine.SetFaults(bmcsim.Faults{RefusePower: true})
			h = r.writes(t, h, event.Deploy, "boot", false)
			h.Provisioning.Op = nil
			h = r.writes(t, h, event.Undeploy, "eject", true)
			r.writes(t, h, event.Undeploy, "eject", true)
			want = []string{"InsertMedia", "SetBoot Cd", "EjectMedia", "SetBoot None"}
			if diff := cmp.Diff(want, did(machine)); diff != "" {
				t.Errorf("ejecting, and once more (-want +got):\n%s", diff)
			}
		})
	}
}

// writes claims a write and makes it; ok is whether that is to succeed.
func (r *rack) writes(t *testing.T, h lifecycle.Host, k event.Kind, name string, ok bool) lifecycle.Host {
	t.Helper()
	var claim lifecycle.Fact = lifecycle.Started{Kind: k, Step: name}
	if h.Doing(k) {
		claim = lifecycle.Claimed{Kind: k, Step: name}
	}
	h = lifecycle.Apply(h, claim, r.now())
	if err := r.backend.Do(t.Context(), h, lifecycle.Write{Kind: k, Name: name}); (err == nil) != ok {
		t.Fatalf("write %s: %v", name, err)
	}
	return h
}

// did are the commands that a machine took.
func did(machine *bmcsim.Host) []string {
	var list []string
	for _, c := range machine.Commands() {
		if c.Status < 400 {
			list = append(list, strings.TrimSpace(c.Action+" "+c.Args["BootSourceOverrideTarget"]))
		}
	}
	return list
}
