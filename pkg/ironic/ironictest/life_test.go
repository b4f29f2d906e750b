package ironictest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

func TestAWholeLife(t *testing.T) {
	c := start(t, ironictest.Config{})
	u, m := c.enrol("a")
	c.verb(u, "manage")
	c.until(u, "manageable")
	c.patch(u, "/inspect_interface", "agent")
	c.verb(u, "inspect")
	c.until(u, "manageable")
	inv := c.want(http.StatusOK, "GET", "/v1/nodes/"+u+"/inventory", nil)
	if inv["plugin_data"] == nil {
		t.Errorf("inventory %v", inv)
	}
	c.verb(u, "provide")
	c.until(u, "available")
	if v := m.View(); v.Disk.Erases != 1 || v.On {
		t.Errorf("cleaned: %+v", v)
	}
	c.patch(u, "/instance_info/image_source", "http://images/disk.raw", "/instance_info/image_checksum", "abc", "/instance_uuid", "11111111-2222-3333-4444-555555555555")
	c.verb(u, "active", obj{"configdrive": obj{"user_data": "x"}})
	n := c.until(u, "active")
	if v := m.View(); v.Disk.Image != "http://images/disk.raw" || !v.On || v.Runs != ironictest.RunsDisk || v.CD != "" || v.Disk.ConfigDrive == nil {
		t.Errorf("deployed: %+v", v)
	}
	if n["power_state"] != "power on" {
		t.Errorf("power_state %v", n["power_state"])
	}
	c.verb(u, "deleted")
	n = c.until(u, "available")
	if v := m.View(); v.Disk.Image != "" || v.On || v.Disk.Erases != 2 || n["instance_uuid"] != nil {
		t.Errorf("undeployed: %+v", v)
	}
	c.want(http.StatusNoContent, "DELETE", "/v1/nodes/"+u, nil)
	c.want(http.StatusNotFound, "GET", "/v1/nodes/"+u, nil)
}

func TestAdoptionAfterALostDatabaseTouchesNothing(t *testing.T) {
	c := start(t, ironictest.Config{})
	_, m := c.enrol("a")
	m.SetDisk("http://images/disk.raw")
	m.SetPower(true)
	c.i.Forget()
	before := m.Changes()
	u := c.node(m)
	c.verb(u, "manage")
	c.until(u, "manageable")
	c.verb(u, "adopt")
	if n := c.until(u, "active"); n["power_state"] != "power on" {
		t.Errorf("power_state %v", n["power_state"])
	}
	if got := m.Changes(); got != before {
		t.Errorf("the machine was changed: %v", m.Acts())
	}
}

func BenchmarkThousandsOfNodes(b *testing.B) {
	for b.Loop() {
		c := start(b, ironictest.Config{Delays: ironictest.Delays{BMC: time.Millisecond, Boot: 100 * time.Millisecond}})
		for range 5000 {
			u, _ := c.enrol("")
			c.verb(u, "manage")
		}
		for c.i.Nodes()["manageable"] < 5000 {
			time.Sleep(time.Millisecond)
		}
	}
}
