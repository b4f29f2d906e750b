package ironictest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

func TestEverythingDoneToAMachineIsTold(t *testing.T) {
	c := start(t, ironictest.Config{})
	u, m := c.enrol("a")
	c.verb(u, "manage")
	c.until(u, "manageable")
	if m.Changes() != 0 {
		t.Fatalf("verification did %v", m.Acts())
	}
	c.verb(u, "provide")
	c.until(u, "available")
	var did []string
	for _, a := range m.Acts() {
		did = append(did, a.What)
	}
	want := []string{
		ironictest.DidInsert, ironictest.DidSetBoot, ironictest.DidPowerOn, ironictest.DidErase, ironictest.DidPowerOff, ironictest.DidEject,
	}
	if diff := cmp.Diff(want, did); diff != "" {
		t.Errorf("cleaning did (-want +got):\n%s", diff)
	}
	if c.rack.Changes() != len(want) {
		t.Errorf("the rack counts %d changes, want %d", c.rack.Changes(), len(want))
	}
}

func TestMachinesAreFoundByAddressAndSystem(t *testing.T) {
	rack := ironictest.NewRack(time.Now)
	add := func(s ironictest.Spec) error { _, err := rack.Add(s); return err }
	for _, s := range []ironictest.Spec{
		{Name: "a", Address: "https://bmc.test", SystemID: "/redfish/v1/Systems/1"}, {Name: "b", Address: "https://bmc.test:443/", SystemID: "/redfish/v1/Systems/2"}, {Name: "c", Address: "ipmi://bmc.test"},
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	for name, s := range map[string]ironictest.Spec{
		"the same name": {Name: "a"}, "the same system": {Address: "https://BMC.test/", SystemID: "/redfish/v1/Systems/1/"}, "no host": {Address: "https://"},
	} {
		if add(s) == nil {
			t.Errorf("%s: added", name)
		}
	}
	c := start(t, ironictest.Config{Rack: rack})
	for address, want := range map[string]string{"https://bmc.test": "manageable", "bmc.test": "manageable", "https://bmc.test:8443": "enroll"} {
		n := c.want(http.StatusCreated, http.MethodPost, "/v1/nodes", obj{"driver": "redfish", "driver_info": obj{
			"redfish_address": address, "redfish_system_id": "/redfish/v1/Systems/2", "redfish_username": "admin", "redfish_password": "password",
		}})
		u, _ := n["uuid"].(string)
		c.verb(u, "manage")
		c.until(u, want)
	}
	if got := len(rack.Machines()); got != 3 || rack.Machine("b") == nil || rack.Machine("z") != nil {
		t.Errorf("%d machines", got)
	}
}

func TestIPMI(t *testing.T) {
	c := start(t, ironictest.Config{})
	m, err := c.rack.Add(ironictest.Spec{Name: "a", Address: "ipmi://192.0.2.7:6230"})
	if err != nil {
		t.Fatal(err)
	}
	create := func(password string) string {
		n := c.want(http.StatusCreated, http.MethodPost, "/v1/nodes", obj{"driver": "ipmi", "driver_info": obj{
			"ipmi_address": "192.0.2.7", "ipmi_port": 6230, "ipmi_username": "admin", "ipmi_password": password,
		}})
		u, _ := n["uuid"].(string)
		c.verb(u, "manage")
		return u
	}
	bad := create("wrong")
	n := c.until(bad, "enroll")
	if text, _ := n["last_error"].(string); !strings.Contains(text, "IPMI call failed: power status.") {
		t.Errorf("with a wrong password: %q", text)
	}
	u := create("password")
	c.until(u, "manageable")
	c.want(http.StatusCreated, http.MethodPost, "/v1/ports", obj{"node_uuid": u, "address": m.Spec().MACs[0]})
	c.verb(u, "provide")
	c.until(u, "available")
	if v := m.View(); v.Disk.Erases != 1 || v.On {
		t.Errorf("cleaned over the network: %+v", v)
	}
}

func TestAnAgentWithoutAPortIsNeverHeard(t *testing.T) {
	c := start(t, ironictest.Config{Delays: ironictest.Delays{Callback: 20 * time.Millisecond}})
	m, err := c.rack.Add(ironictest.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	s := m.Spec()
	n := c.want(http.StatusCreated, http.MethodPost, "/v1/nodes", obj{"driver": "redfish", "driver_info": obj{"redfish_address": s.Address, "redfish_username": s.Username, "redfish_password": s.Password}})
	u, _ := n["uuid"].(string)
	c.verb(u, "manage")
	c.until(u, "manageable")
	c.verb(u, "provide")
	n = c.until(u, "clean failed")
	if text, _ := n["last_error"].(string); !strings.Contains(text, "Timeout reached while cleaning the node") || n["maintenance"] != true {
		t.Errorf("the node is %v, last error %q", n["maintenance"], text)
	}
}

func TestPowerIsForcedWhereAnIronicDoesThat(t *testing.T) {
	for _, forces := range []bool{false, true} {
		c := start(t, ironictest.Config{ForcesPower: forces})
		u, m := c.enrol("a")
		c.verb(u, "manage")
		c.until(u, "manageable")
		m.SetPower(true)
		c.i.SyncPower()
		if on := m.View().On; on == forces {
			t.Errorf("forces %v: on %v", forces, on)
		}
	}
}

func TestFastTrackKeepsTheAgentUp(t *testing.T) {
	c := start(t, ironictest.Config{FastTrack: true})
	u, m := c.enrol("a")
	c.verb(u, "manage")
	c.until(u, "manageable")
	c.verb(u, "provide")
	c.until(u, "available")
	if v := m.View(); !v.On || v.Runs != ironictest.RunsAgent {
		t.Fatalf("after cleaning: %+v", v)
	}
	c.verb(u, "manage")
	c.until(u, "manageable")
	c.verb(u, "provide")
	c.until(u, "available")
	if v := m.View(); v.Boots != 1 || v.Disk.Erases != 2 {
		t.Errorf("cleaned again: %+v", v)
	}
}

func TestAdoptionFailsForWhatEverReason(t *testing.T) {
	c := start(t, ironictest.Config{})
	u, m := c.enrol("a")
	m.SetDisk("http://images/disk.raw")
	m.SetPower(true)
	m.SetFaults(ironictest.Faults{FailAdopt: "Validation of image href failed"})
	c.verb(u, "manage")
	c.until(u, "manageable")
	c.verb(u, "adopt")
	n := c.until(u, "adopt failed")
	if text, _ := n["last_error"].(string); !strings.Contains(text, "Validation of image href failed") {
		t.Errorf("last error %q", text)
	}
	m.SetFaults(ironictest.Faults{})
	c.verb(u, "adopt")
	c.until(u, "active")
	if m.Changes() != 0 {
		t.Errorf("adoption did %v", m.Acts())
	}
}
