package bmc_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

// actions are what the BMC was told and did, without what it refused.
func actions(h *bmcsim.Host) []string {
	var out []string
	for _, c := range h.Commands() {
		if c.Status < 400 {
			out = append(out, c.Action)
		}
	}
	return out
}

func TestLiveImageBootsOnEveryVendor(t *testing.T) {
	// With a session open. That a BMC wants If-Match is found out by its refusal, once.
	ceilings := map[string]struct{ first, again int }{
		bmcsim.Dell: {4, 4}, bmcsim.HPE: {4, 4}, bmcsim.Supermicro: {5, 4}, bmcsim.OpenBMC: {6, 5},
	}
	for _, profile := range bmcsim.Profiles() {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, profile, bmc.Config{})
			b := l.open(t)
			_, err := b.Check(t.Context())
			must(t, err)
			bootImage(t, l, b, ceilings[profile].first)
			if v := l.host.View(); v.Running.Kind != bmcsim.RunsISO || v.Running.Image != iso || v.Boots != 1 {
				t.Errorf("the machine runs %+v after %d boots", v.Running, v.Boots)
			}
			st, err := b.State(t.Context())
			must(t, err)
			if st.Boot.Device != bmc.None {
				t.Errorf("the override is still there: %+v", st.Boot)
			}
			if diff := cmp.Diff([]string{"InsertMedia", "SetBoot", "Reset"}, actions(l.host)); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
			must(t, b.SetPower(t.Context(), bmc.TurnOff))
			must(t, b.EjectMedia(t.Context()))
			must(t, b.EjectMedia(t.Context())) // nothing to do
			if v := l.host.View(); len(v.Media) != 0 {
				t.Errorf("still inserted: %v", v.Media)
			}
			bootImage(t, l, b, ceilings[profile].again)
		})
	}
}

// bootImage boots the image from the virtual CD, for at most so many requests.
func bootImage(t *testing.T, l *lab, b *bmc.BMC, ceiling int) {
	t.Helper()
	n, kinds := l.cost(func() {
		must(t, b.InsertMedia(t.Context(), iso))
		must(t, b.SetBootOnce(t.Context(), bmc.Cd, bmc.UEFI))
		must(t, b.SetPower(t.Context(), bmc.TurnOn))
	})
	if n > ceiling {
		t.Errorf("inserting, boot device and power cost %d requests, want at most %d: %v", n, ceiling, kinds)
	}
}

func TestInsertMediaIsIdempotentAndReplaces(t *testing.T) {
	for _, profile := range bmcsim.Profiles() {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, profile, bmc.Config{})
			b := l.open(t)
			must(t, b.InsertMedia(t.Context(), iso))
			must(t, b.InsertMedia(t.Context(), iso))
			if diff := cmp.Diff([]string{"InsertMedia"}, actions(l.host)); diff != "" {
				t.Errorf("commands for the same image twice (-want +got):\n%s", diff)
			}
			must(t, b.InsertMedia(t.Context(), iso+"?v=2"))
			drives, err := b.Drives(t.Context())
			must(t, err)
			var images []string
			for _, d := range drives {
				if d.Inserted {
					images = append(images, d.Image)
				}
			}
			if diff := cmp.Diff([]string{iso + "?v=2"}, images); diff != "" {
				t.Errorf("inserted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusedMediaSaysWhatTheBMCSays(t *testing.T) {
	l := newLab(t, bmcsim.Dell, bmc.Config{})
	l.host.SetFaults(bmcsim.Faults{RefuseMedia: true})
	err := l.open(t).InsertMedia(t.Context(), "http://user:canary-7@images.example/live.iso")
	if e := (*bmc.Error)(nil); err == nil || strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "is refused") {
		t.Errorf("got %v, %v", err, e)
	}
	if got := actions(l.host); len(got) != 0 {
		t.Errorf("the BMC did %v", got)
	}
}

func TestCredentialsInTheImageAddressWork(t *testing.T) {
	const address = "http://user:canary-7@images.example/live.iso"
	l := newLab(t, bmcsim.HPE, bmc.Config{})
	b := l.open(t)
	must(t, b.InsertMedia(t.Context(), address))
	must(t, b.InsertMedia(t.Context(), address))
	if got := actions(l.host); len(got) != 1 {
		t.Errorf("commands: %v", got)
	}
	drives, err := b.Drives(t.Context())
	must(t, err)
	for _, d := range drives {
		if strings.Contains(d.Image, "canary") {
			t.Errorf("a drive shows %q", d.Image)
		}
	}
}
