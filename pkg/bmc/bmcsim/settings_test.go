package bmcsim_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

func TestFirmwareSettingsWaitForABoot(t *testing.T) {
	for _, tc := range []struct {
		profile, name string
		value         any
	}{
		{bmcsim.Dell, "SriovGlobalEnable", "Enabled"},
		{bmcsim.HPE, "MinProcIdlePower", 3.0},
		{bmcsim.Supermicro, "QuietBoot", false},
		{bmcsim.OpenBMC, "SMTControl", "Enabled"},
	} {
		t.Run(tc.profile, func(t *testing.T) {
			t.Parallel()
			s := rack(t, bmcsim.Config{Hosts: 1, Profiles: []string{tc.profile}})
			h := s.Hosts()[0]
			c := asOwner(t, s, h)
			bios := h.SystemPath() + "/Bios"
			before := c.must(http.StatusOK, http.MethodGet, bios, nil)
			pending := linkOf(before.dig("@Redfish.Settings", "SettingsObject"))
			c.must(http.StatusNoContent, http.MethodPatch, pending, map[string]any{"Attributes": map[string]any{tc.name: tc.value}})
			if got := c.must(http.StatusOK, http.MethodGet, bios, nil).dig("Attributes", tc.name); got == tc.value {
				t.Error("the setting is in force before the boot")
			}
			c.reset(http.StatusNoContent, h.SystemPath(), "On")
			if got := c.must(http.StatusOK, http.MethodGet, bios, nil).dig("Attributes", tc.name); got != tc.value {
				t.Errorf("after the boot: %v, want %v", got, tc.value)
			}
			c.must(http.StatusNoContent, http.MethodPost, bios+"/Actions/Bios.ResetBios", nil)
			c.reset(http.StatusNoContent, h.SystemPath(), "ForceRestart")
			if got, want := c.must(http.StatusOK, http.MethodGet, bios, nil).dig("Attributes", tc.name), before.dig("Attributes", tc.name); got != want {
				t.Errorf("after the reset to defaults: %v, want %v", got, want)
			}
		})
	}
}

func TestPasswordsOfTheFirmwareStayOutOfTheLog(t *testing.T) {
	s := rack(t, bmcsim.Config{Hosts: 1, Profiles: []string{bmcsim.HPE}})
	h := s.Hosts()[0]
	c := asOwner(t, s, h)
	c.must(http.StatusNoContent, http.MethodPatch, h.SystemPath()+"/Bios/settings", map[string]any{"Attributes": map[string]any{"AdminPassword": "canary"}})
	c.must(http.StatusNoContent, http.MethodPost, drive(h)+"/Actions/VirtualMedia.InsertMedia", map[string]any{"Image": "http://u:canary@images.example/x.iso"})
	for _, x := range h.Commands() {
		for _, v := range x.Args {
			if strings.Contains(v, "canary") {
				t.Errorf("%s logs %q", x.Action, v)
			}
		}
	}
}

func TestSecureBoot(t *testing.T) {
	s := rack(t, bmcsim.Config{Hosts: 1})
	h := s.Hosts()[0]
	c := asOwner(t, s, h)
	c.must(http.StatusBadRequest, http.MethodPatch, h.SystemPath()+"/SecureBoot", map[string]any{})
	c.must(http.StatusNoContent, http.MethodPatch, h.SystemPath()+"/SecureBoot", map[string]bool{"SecureBootEnable": true})
	if !h.View().SecureBoot {
		t.Error("secure boot is not on")
	}
}

func TestFirmwareUpdateIsATask(t *testing.T) {
	tests := map[string]struct {
		file   string
		faults bmcsim.Faults
		boot   bool
		state  string
		nic    string
		bios   string
	}{
		"a card's firmware is there when the task is done": {file: "nic-99.1.bin", state: "Completed", nic: "99.1"},
		"a BIOS waits for a boot":                          {file: "bios-9.9.bin", state: "Starting"},
		"and is there after it":                            {file: "bios-9.9.bin", boot: true, state: "Completed", bios: "9.9"},
		"a task may fail":                                  {file: "nic-99.1.bin", faults: bmcsim.Faults{FailTasks: true}, state: "Exception"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := rack(t, bmcsim.Config{Hosts: 1, Delays: bmcsim.Delays{Task: time.Second}})
				h := s.Hosts()[0]
				h.SetFaults(tc.faults)
				before := h.View()
				if got := update(asOwner(t, s, h), h, tc.file, tc.boot); got != tc.state {
					t.Errorf("task state %v, want %s", got, tc.state)
				}
				v := h.View()
				if want := orElse(tc.nic, before.NIC); v.NIC != want {
					t.Errorf("NIC firmware %q, want %q", v.NIC, want)
				}
				if want := orElse(tc.bios, before.BIOS); v.BIOS != want {
					t.Errorf("BIOS %q, want %q", v.BIOS, want)
				}
			})
		})
	}
}

// update puts firmware on a host, boots it if it is told to, and gives the state
// of the task when its time is over.
func update(c *caller, h *bmcsim.Host, file string, boot bool) any {
	c.t.Helper()
	r := c.must(http.StatusAccepted, http.MethodPost, "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate", map[string]string{"ImageURI": "http://images.example/" + file})
	if boot {
		c.reset(http.StatusNoContent, h.SystemPath(), "On")
	}
	monitor := r.header.Get("Location")
	if got := c.must(http.StatusAccepted, http.MethodGet, monitor, nil); got.header.Get("Retry-After") == "" {
		c.t.Error("no Retry-After while the task goes on")
	}
	time.Sleep(time.Second)
	synctest.Wait()
	return c.do(http.MethodGet, monitor, nil).dig("TaskState")
}

func orElse(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

func TestVolumesChangeAtTheNextBoot(t *testing.T) {
	s := rack(t, bmcsim.Config{Hosts: 1, Profiles: []string{bmcsim.Dell}})
	h := s.Hosts()[0]
	c := asOwner(t, s, h)
	storage := h.SystemPath() + "/Storage/RAID.SL.3-1"
	count := func() int {
		members, _ := c.must(http.StatusOK, http.MethodGet, storage+"/Volumes", nil).dig("Members").([]any)
		return len(members)
	}
	c.must(http.StatusBadRequest, http.MethodPost, storage+"/Volumes", map[string]any{"RAIDType": "RAID1"})
	drives := []map[string]string{{"@odata.id": storage + "/Drives/Disk.Bay.0:Enclosure.Internal.0-1:RAID.SL.3-1"}}
	c.must(http.StatusAccepted, http.MethodPost, storage+"/Volumes", map[string]any{"RAIDType": "RAID1", "Name": "root", "Links": map[string]any{"Drives": drives}})
	if count() != 0 {
		t.Error("the volume is there before the boot")
	}
	c.reset(http.StatusNoContent, h.SystemPath(), "On")
	members, _ := c.must(http.StatusOK, http.MethodGet, storage+"/Volumes", nil).dig("Members").([]any)
	if len(members) != 1 {
		t.Fatalf("%d volumes after the boot, want 1", len(members))
	}
	c.must(http.StatusAccepted, http.MethodDelete, linkOf(members[0]), nil)
	c.reset(http.StatusNoContent, h.SystemPath(), "ForceRestart")
	if count() != 0 {
		t.Error("the volume is still there")
	}
}

func TestImagesAreFetchedOnlyOnDemand(t *testing.T) {
	var asked int
	images := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/there.iso" {
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(images.Close)
	tests := map[string]struct {
		client *http.Client
		file   string
		status int
		asked  bool
	}{
		"never without a client":       {nil, "/nowhere.iso", 204, false},
		"what is there is inserted":    {images.Client(), "/there.iso", 204, true},
		"what is not there is refused": {images.Client(), "/nowhere.iso", 400, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			asked = 0
			s := rack(t, bmcsim.Config{Hosts: 1, Profiles: []string{bmcsim.Supermicro}, Images: tc.client})
			h := s.Hosts()[0]
			asOwner(t, s, h).must(tc.status, http.MethodPost, drive(h)+"/Actions/VirtualMedia.InsertMedia", map[string]string{"Image": images.URL + tc.file})
			if (asked > 0) != tc.asked {
				t.Errorf("the image server was asked %d times", asked)
			}
		})
	}
}
