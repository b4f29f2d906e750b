package bmcsim_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

func snapshot(t *testing.T, s *bmcsim.Sim) []byte {
	t.Helper()
	b, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	return b
}

func restored(t *testing.T, cfg bmcsim.Config, data []byte) *bmcsim.Sim {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s, err := bmcsim.Restore(cfg, data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestRestoredRackIsAsItWas(t *testing.T) {
	s := rack(t, bmcsim.Config{Hosts: 4, Seed: "a rack"})
	for i, h := range s.Hosts() {
		c := asOwner(t, s, h)
		insert(c, h, drive(h))
		if i%2 == 0 {
			c.reset(http.StatusNoContent, h.SystemPath(), "On")
		}
	}
	last := s.Hosts()[3]
	last.SetCredentials("root", "changed")
	last.SetHealth("Warning")
	last.SetFaults(bmcsim.Faults{Latency: time.Millisecond, RefuseMedia: true})
	before := s.Views()
	log := s.Hosts()[0].Commands()
	data := snapshot(t, s)

	resumed := make(chan bool, 4)
	r := restored(t, bmcsim.Config{Boot: func(_ context.Context, b *bmcsim.Boot) { resumed <- b.Resumed }}, data)
	if diff := cmp.Diff(before, r.Views()); diff != "" {
		t.Errorf("the rack changed (-was +is):\n%s", diff)
	}
	if diff := cmp.Diff(log, r.Hosts()[0].Commands()); diff != "" {
		t.Errorf("the command log changed (-was +is):\n%s", diff)
	}
	for range 2 { // the two that run
		if !<-resumed {
			t.Error("a machine that ran on was told to boot")
		}
	}
	if user, pass := r.Hosts()[3].Credentials(); user != "root" || pass != "changed" {
		t.Error("the changed credentials are lost")
	}
	h, err := r.Add(bmcsim.HostSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if h.Name() != "sim-5" {
		t.Errorf("the next host is %s, want sim-5", h.Name())
	}
}

func TestRestoredMachinesGoOnWithWhatTheyWereDoing(t *testing.T) {
	d := bmcsim.DefaultDelays()
	whole := d.PowerOn + d.PowerOff + d.Shutdown + d.SelfTest + d.Boot
	tests := map[string]struct {
		before string
		kind   string
		after  time.Duration
		want   string
		boots  int
	}{
		"powering on":                      {"", "On", d.PowerOn / 2, "live-iso", 1},
		"in the self-test":                 {"", "On", d.PowerOn + d.SelfTest/2, "live-iso", 1},
		"booting":                          {"", "On", d.PowerOn + d.SelfTest + d.Boot/2, "live-iso", 1},
		"powering off":                     {"On", "ForceOff", d.PowerOff / 2, "off", 1},
		"shutting down":                    {"On", "GracefulShutdown", d.Shutdown / 2, "off", 1},
		"restarting":                       {"On", "ForceRestart", d.PowerOff / 2, "live-iso", 2},
		"in the off part of a power cycle": {"On", "PowerCycle", d.PowerOff / 2, "live-iso", 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := rack(t, bmcsim.Config{Hosts: 1, Delays: d, Profiles: []string{bmcsim.Dell}})
				h := s.Hosts()[0]
				c := asOwner(t, s, h)
				insert(c, h, drive(h))
				if tc.before != "" {
					c.reset(http.StatusNoContent, h.SystemPath(), tc.before)
					time.Sleep(whole)
					synctest.Wait()
				}
				c.must(http.StatusNoContent, http.MethodPatch, h.SystemPath(), bootOnce("Cd"))
				c.reset(http.StatusNoContent, h.SystemPath(), tc.kind)
				time.Sleep(tc.after)
				synctest.Wait()
				r := restored(t, bmcsim.Config{Delays: d}, snapshot(t, s))
				time.Sleep(2 * whole)
				synctest.Wait()
				if v := r.Hosts()[0].View(); v.Running.Kind != tc.want || v.Boots != tc.boots {
					t.Errorf("runs %q after %d boots, want %q after %d", v.Running.Kind, v.Boots, tc.want, tc.boots)
				}
			})
		})
	}
}

func TestRevisionGrowsOnlyWithChanges(t *testing.T) {
	s := rack(t, bmcsim.Config{Hosts: 1, Profiles: []string{bmcsim.Dell}})
	h := s.Hosts()[0]
	c := asOwner(t, s, h)
	r0 := s.Revision()
	c.must(http.StatusOK, http.MethodGet, h.SystemPath(), nil)
	if s.Revision() != r0 {
		t.Error("reading changed the rack")
	}
	c.reset(http.StatusNoContent, h.SystemPath(), "On")
	if s.Revision() == r0 {
		t.Error("a reset did not change the rack")
	}
}

func TestDamagedSnapshotsAreRefused(t *testing.T) {
	for name, data := range map[string]string{
		"no JSON":          "nonsense",
		"another version":  `{"version": 99}`,
		"an unknown shape": `{"version": 1, "hosts": [{"name": "a", "profile": "toaster"}]}`,
		"missing drives":   `{"version": 1, "hosts": [{"name": "a", "profile": "dell"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := bmcsim.Restore(bmcsim.Config{Now: time.Now}, []byte(data)); err == nil || !strings.HasPrefix(err.Error(), "bmcsim: ") {
				t.Errorf("got error %v", err)
			}
		})
	}
}
