package bmcsim_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

const image = "http://images.example/live.iso"

func bootOnce(target string) map[string]any {
	return map[string]any{"Boot": map[string]string{"BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": "Once"}}
}

// insert puts an image into the host's optical drive.
func insert(c *caller, h *bmcsim.Host, drive string) {
	c.t.Helper()
	c.must(http.StatusNoContent, http.MethodPost, drive+"/Actions/VirtualMedia.InsertMedia", map[string]any{"Image": image})
	if len(h.View().Media) != 1 {
		c.t.Fatalf("media after insert: %v", h.View().Media)
	}
}

func drive(h *bmcsim.Host) string {
	switch h.Profile() {
	case bmcsim.Dell:
		return h.SystemPath() + "/VirtualMedia/1"
	case bmcsim.HPE:
		return "/redfish/v1/Managers/" + h.ID() + "/VirtualMedia/2"
	case bmcsim.Supermicro:
		return "/redfish/v1/Managers/" + h.ID() + "/VirtualMedia/CD1"
	default:
		return "/redfish/v1/Managers/" + h.ID() + "/VirtualMedia/Slot_0"
	}
}

func TestMachineBootsALiveImageOnceInItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := bmcsim.DefaultDelays()
		s := rack(t, bmcsim.Config{Hosts: 1, Delays: d, Profiles: []string{bmcsim.Dell}})
		h := s.Hosts()[0]
		c := asOwner(t, s, h)
		insert(c, h, drive(h))
		c.must(http.StatusNoContent, http.MethodPatch, h.SystemPath(), bootOnce("Cd"))
		c.reset(http.StatusNoContent, h.SystemPath(), "On")

		look := func(power, runs string) {
			t.Helper()
			got := c.must(http.StatusOK, http.MethodGet, h.SystemPath(), nil).dig("PowerState")
			if v := h.View(); got != power || v.Running.Kind != runs {
				t.Fatalf("power %v, runs %q; want %s, %q", got, v.Running.Kind, power, runs)
			}
		}
		look("Off", bmcsim.RunsOff) // accepted is not done
		time.Sleep(d.PowerOn)
		synctest.Wait()
		look("On", bmcsim.RunsTest)
		time.Sleep(d.SelfTest)
		synctest.Wait()
		look("On", bmcsim.RunsBooting)
		time.Sleep(d.Boot)
		synctest.Wait()
		look("On", bmcsim.RunsISO)
		v := h.View()
		if v.Boots != 1 || v.Running.Image != image || v.BootTarget != "None" || v.BootOnce != "Disabled" {
			t.Fatalf("after the boot: %+v", v)
		}

		c.reset(http.StatusNoContent, h.SystemPath(), "GracefulShutdown")
		time.Sleep(d.Shutdown)
		synctest.Wait()
		look("On", bmcsim.RunsISO)
		time.Sleep(d.PowerOff)
		synctest.Wait()
		look("Off", bmcsim.RunsOff)

		var got []string
		for _, x := range h.Commands() {
			got = append(got, x.Method+" "+x.Action+" "+x.Args["ResetType"]+x.Args["BootSourceOverrideTarget"]+x.Args["Image"])
		}
		want := []string{"POST InsertMedia " + image, "PATCH SetBoot Cd", "POST Reset On", "POST Reset GracefulShutdown"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("command log (-want +got):\n%s", diff)
		}
	})
}

func TestResets(t *testing.T) {
	type want struct {
		status int
		power  string
		boots  int
	}
	const on, off = "On", "Off"
	tests := map[string]struct {
		profile string
		faults  bmcsim.Faults
		before  []string
		kind    string
		want    want
	}{
		"on switches on":                             {bmcsim.Dell, bmcsim.Faults{}, nil, "On", want{204, on, 1}},
		"on when on is a conflict for some":          {bmcsim.Dell, bmcsim.Faults{}, []string{"On"}, "On", want{409, on, 1}},
		"on when on is a bad request for others":     {bmcsim.HPE, bmcsim.Faults{}, []string{"On"}, "On", want{400, on, 1}},
		"on when on is nothing for the rest":         {bmcsim.Supermicro, bmcsim.Faults{}, []string{"On"}, "On", want{204, on, 1}},
		"force off switches off":                     {bmcsim.HPE, bmcsim.Faults{}, []string{"On"}, "ForceOff", want{204, off, 1}},
		"a restart boots again":                      {bmcsim.Dell, bmcsim.Faults{}, []string{"On"}, "ForceRestart", want{204, on, 2}},
		"a power cycle boots again":                  {bmcsim.Dell, bmcsim.Faults{}, []string{"On"}, "PowerCycle", want{204, on, 2}},
		"a graceful restart boots again":             {bmcsim.OpenBMC, bmcsim.Faults{}, []string{"On"}, "GracefulRestart", want{204, on, 2}},
		"nobody hears a shutdown if nothing runs":    {bmcsim.Dell, bmcsim.Faults{NoBoot: true}, []string{"On"}, "GracefulShutdown", want{204, on, 1}},
		"an operating system may ignore a shutdown":  {bmcsim.Dell, bmcsim.Faults{IgnoreShutdown: true}, []string{"On"}, "GracefulShutdown", want{204, on, 1}},
		"a BMC may refuse a shutdown":                {bmcsim.Dell, bmcsim.Faults{RefuseShutdown: true}, []string{"On"}, "GracefulShutdown", want{400, on, 1}},
		"a BMC may refuse any reset":                 {bmcsim.Dell, bmcsim.Faults{RefusePower: true}, nil, "On", want{400, off, 0}},
		"a BMC may accept and do nothing":            {bmcsim.Dell, bmcsim.Faults{IgnorePower: true}, nil, "On", want{204, off, 0}},
		"what the BMC does not list is refused":      {bmcsim.HPE, bmcsim.Faults{}, []string{"On"}, "PowerCycle", want{400, on, 1}},
		"a restart of a machine that is off refused": {bmcsim.Dell, bmcsim.Faults{}, nil, "ForceRestart", want{409, off, 0}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := rack(t, bmcsim.Config{Hosts: 1, Profiles: []string{tc.profile}})
			h := s.Hosts()[0]
			c := asOwner(t, s, h)
			insert(c, h, drive(h))
			if tc.faults.NoBoot || tc.faults.IgnoreShutdown {
				h.SetFaults(tc.faults)
			}
			for _, k := range tc.before {
				c.reset(http.StatusNoContent, h.SystemPath(), k)
			}
			h.SetFaults(tc.faults)
			c.reset(tc.want.status, h.SystemPath(), tc.kind)
			v := h.View()
			if got := (want{tc.want.status, v.Power, v.Boots}); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			log := h.Commands()
			if last := log[len(log)-1]; last.Status != tc.want.status {
				t.Errorf("logged status %d, want %d", last.Status, tc.want.status)
			}
		})
	}
}

func TestBootOrder(t *testing.T) {
	tests := map[string]struct {
		once  string
		media bool
		disk  string
		want  bmcsim.Running
	}{
		"nothing to boot":                      {"None", false, "", bmcsim.Running{Kind: bmcsim.RunsNothing}},
		"the disk before the virtual drive":    {"None", true, "os", bmcsim.Running{Kind: bmcsim.RunsDisk, Image: "os"}},
		"the virtual drive if told so":         {"Cd", true, "os", bmcsim.Running{Kind: bmcsim.RunsISO, Image: image}},
		"the virtual drive if there is no OS":  {"None", true, "", bmcsim.Running{Kind: bmcsim.RunsISO, Image: image}},
		"the disk if the drive is empty":       {"Cd", false, "os", bmcsim.Running{Kind: bmcsim.RunsDisk, Image: "os"}},
		"the network if told so":               {"Pxe", true, "os", bmcsim.Running{Kind: bmcsim.RunsNetwork}},
		"no boot while in the firmware's menu": {"BiosSetup", true, "os", bmcsim.Running{Kind: bmcsim.RunsNothing}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			written := make(chan struct{})
			s := rack(t, bmcsim.Config{Hosts: 1, Profiles: []string{bmcsim.Supermicro}, Boot: func(_ context.Context, b *bmcsim.Boot) {
				if b.Running.Kind == bmcsim.RunsNetwork && b.Host.View().Disk == "" && tc.disk != "" {
					b.WriteDisk(tc.disk)
					b.PowerOff()
					close(written)
				}
			}})
			h := s.Hosts()[0]
			c := asOwner(t, s, h)
			if tc.disk != "" {
				c.must(http.StatusNoContent, http.MethodPatch, h.SystemPath(), bootOnce("Pxe"))
				c.reset(http.StatusNoContent, h.SystemPath(), "On")
				<-written
			}
			if tc.media {
				insert(c, h, drive(h))
			}
			c.must(http.StatusNoContent, http.MethodPatch, h.SystemPath(), bootOnce(tc.once))
			c.reset(http.StatusNoContent, h.SystemPath(), "On")
			if got := h.View().Running; got != tc.want {
				t.Errorf("runs %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestBootFuncPlaysAnAgent(t *testing.T) {
	ended := make(chan error, 1)
	running := make(chan struct{})
	s := rack(t, bmcsim.Config{Hosts: 1, Profiles: []string{bmcsim.HPE}, Boot: func(ctx context.Context, b *bmcsim.Boot) {
		b.Becomes(bmcsim.Running{Kind: bmcsim.RunsAgent, Image: b.Running.Image})
		close(running)
		<-ctx.Done()
		b.WriteDisk("too late")
		ended <- ctx.Err()
	}})
	h := s.Hosts()[0]
	c := asOwner(t, s, h)
	insert(c, h, drive(h))
	c.reset(http.StatusNoContent, h.SystemPath(), "On")
	<-running
	if got := h.View().Running.Kind; got != bmcsim.RunsAgent {
		t.Errorf("runs %q, want the agent", got)
	}
	c.reset(http.StatusNoContent, h.SystemPath(), "ForceOff")
	if err := <-ended; err == nil {
		t.Error("the agent outlived the power")
	}
	if v := h.View(); v.Disk != "" || v.Power != "Off" {
		t.Errorf("a dead agent changed the machine: %+v", v)
	}
}
