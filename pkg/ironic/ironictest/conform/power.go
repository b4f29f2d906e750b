package conform

import (
	"net/http"
	"strings"
)

// switchTo asks for power and waits for it.
func (c *session) switchTo(u, target, want string) {
	c.Helper()
	body := obj{"target": target}
	if strings.HasPrefix(target, "soft") {
		body["timeout"] = 60
	}
	if r := c.unlocked(http.MethodPut, "/v1/nodes/"+u+"/states/power", body); r.status != http.StatusAccepted {
		c.Fatalf("%s: %d %s", target, r.status, r.text())
	}
	c.when(u, "be "+want+" after "+target, func(n obj) bool {
		return n["target_power_state"] == nil && n["reservation"] == nil && n["power_state"] == want
	})
}

func power(c *session) {
	m := c.Machine(c)
	u := c.deployed(m, "a")
	path := "/v1/nodes/" + u + "/states/power"
	boots := m.Look(c).Boots
	for _, x := range []struct {
		target, want string
		on           bool
		boots        int
	}{
		{"power on", "power on", true, 0}, // it is on: nothing happens
		{"rebooting", "power on", true, 1},
		{"soft power off", "power off", false, 1},
		{"power on", "power on", true, 2},
		{"power off", "power off", false, 2},
		{"power off", "power off", false, 2},
		{"power on", "power on", true, 3},
	} {
		c.switchTo(u, x.target, x.want)
		if v := m.Look(c); v.On != x.on || v.Boots-boots != x.boots {
			c.Errorf("after %s the machine is %+v, booted %d times; want %d", x.target, v, v.Boots-boots, x.boots)
		}
	}
	c.refused(http.StatusBadRequest, "can not be performed", http.MethodPut, path, obj{"target": "no-such"})
	c.refused(http.StatusBadRequest, "", http.MethodPut, path, obj{"target": "power off", "timeout": 0})
	c.refused(http.StatusBadRequest, "", http.MethodPut, path, obj{})
	m.Fault(c, Fault{RefusePower: true})
	if r := c.unlocked(http.MethodPut, path, obj{"target": "power off"}); r.status != http.StatusAccepted {
		c.Fatalf("power off: %d %s", r.status, r.text())
	}
	c.when(u, "give up", func(n obj) bool { return n["target_power_state"] == nil && n["reservation"] == nil })
	c.said(u, "Failed to change power state to 'power off'")
	c.fields(c.get(u), obj{"provision_state": "active", "maintenance": false, "fault": nil})
	if v := m.Look(c); !v.On {
		c.Errorf("a refused power off worked: %+v", v)
	}
}

func disabledPowerOff(c *session) {
	m := c.Machine(c)
	u := c.managed(m, "a", nil)
	if !c.since(r29) {
		c.refused(http.StatusBadRequest, "Cannot patch /disable_power_off", http.MethodPatch, "/v1/nodes/"+u, changes("/disable_power_off", true))
		return
	}
	c.patch(u, "/disable_power_off", true)
	path := "/v1/nodes/" + u + "/states/power"
	c.switchTo(u, "power on", "power on")
	c.refused(http.StatusConflict, "Failed to set node power state to power off.", http.MethodPut, path, obj{"target": "power off"})
	c.refused(http.StatusConflict, "Failed to set node power state to soft power off.", http.MethodPut, path, obj{"target": "soft power off"})
	c.switchTo(u, "rebooting", "power on")
	c.verb(u, "provide", nil)
	c.until(u, "clean failed") // over virtual media it begins with the power off
	c.said(u, "Failed to set node power state to power off")
	if v := m.Look(c); !v.On {
		c.Errorf("the machine is %+v", v)
	}
}

func lostBMC(c *session) {
	m := c.Machine(c)
	u := c.deployed(m, "a")
	before := m.Look(c)
	m.Change(c, Change{Password: "another"})
	n := c.when(u, "be given up", func(n obj) bool { return n["maintenance"] == true })
	c.fields(n, obj{"fault": "power failure", "provision_state": "active", "power_state": nil})
	if reason, _ := n["maintenance_reason"].(string); !strings.Contains(reason, "max retries exceeded for node "+u) || !strings.Contains(reason, "401") {
		c.Errorf("the reason is %q", reason)
	}
	c.said(u, "max retries exceeded for node "+u)
	// clearing it by hand lasts until the next sync
	c.unmaintained(u)
	c.when(u, "be given up again", func(n obj) bool { return n["maintenance"] == true && n["fault"] == "power failure" })
	// it recovers by itself
	c.patch(u, "/driver_info/redfish_password", "another")
	n = c.when(u, "recover", func(n obj) bool { return n["maintenance"] == false })
	c.fields(n, obj{"fault": nil, "provision_state": "active"})
	c.when(u, "know its power", func(n obj) bool { return n["power_state"] == "power on" })
	if after := m.Look(c); after.Changes != before.Changes || !after.On {
		c.Errorf("the machine is %+v, was %+v", after, before)
	}
	// what a person has put into maintenance stays there, and is not looked at
	c.maintained(u, "mine")
	m.Change(c, Change{Power: "off"})
	beside := c.Machine(c)
	other := c.managed(beside, "beside", nil)
	for _, power := range []string{"on", "off"} { // two syncs go by
		beside.Change(c, Change{Power: power})
		c.when(other, "see the power "+power, func(n obj) bool { return n["power_state"] == "power "+power })
	}
	c.fields(c.get(u), obj{"maintenance": true, "maintenance_reason": "mine", "fault": nil, "power_state": "power on"})
}

func foreignPower(c *session) {
	m := c.Machine(c)
	u := c.deployed(m, "a")
	m.Change(c, Change{Power: "off"})
	c.fields(c.when(u, "see the power off", func(n obj) bool { return n["power_state"] == "power off" }), obj{"provision_state": "active", "maintenance": false, "fault": nil})
	m.Change(c, Change{Power: "on"})
	c.when(u, "see the power on", func(n obj) bool { return n["power_state"] == "power on" })
	if !c.since(r39) {
		if _, shown := c.get(u)["health"]; shown {
			c.Errorf("the node shows its health")
		}
		return
	}
	c.when(u, "see the health", func(n obj) bool { return n["health"] == "OK" })
	m.Change(c, Change{Health: "Critical"})
	c.when(u, "see the bad health", func(n obj) bool { return n["health"] == "Critical" })
	c.said(u, "health")
}

func lockedNode(c *session) {
	m := c.Machine(c)
	u := c.managed(m, "a", nil)
	path := "/v1/nodes/" + u
	m.Fault(c, Fault{Slow: true})
	if r := c.unlocked(http.MethodPut, path+"/states/power", obj{"target": "power on"}); r.status != http.StatusAccepted {
		c.Fatalf("power on: %d %s", r.status, r.text())
	}
	n := c.when(u, "be locked", func(n obj) bool { return n["reservation"] != nil })
	c.fields(n, obj{"target_power_state": "power on", "provision_state": "manageable"})
	words := "Node " + u + " is locked by host "
	c.refused(http.StatusConflict, words, http.MethodPut, path+"/states/power", obj{"target": "power off"})
	c.refused(http.StatusConflict, words, http.MethodPut, path+"/states/provision", obj{"target": "provide"})
	c.refused(http.StatusConflict, words, http.MethodPatch, path, changes("/extra/a", 1))
	c.refused(http.StatusConflict, words, http.MethodDelete, path, nil)
	c.refused(http.StatusConflict, words, http.MethodPut, path+"/maintenance", obj{"reason": "mine"})
	c.refused(http.StatusConflict, words, http.MethodDelete, path+"/maintenance", nil)
	m.Fault(c, Fault{})
	c.when(u, "be unlocked and on", func(n obj) bool { return n["reservation"] == nil && n["power_state"] == "power on" })
}

// bootDevice asks for the boot device, which is the one request that has Ironic log in
// at the BMC with what it knows now.
func bootDevice(c *session) {
	m := c.Machine(c)
	u := c.managed(m, "a", nil)
	path := "/v1/nodes/" + u + "/management/boot_device"
	r := c.unlocked(http.MethodGet, path, nil)
	if r.status != http.StatusOK || r.obj()["boot_device"] == "" {
		c.Errorf("boot device: %d %v", r.status, r.body)
	}
	m.Change(c, Change{Password: "another"})
	if r := c.unlocked(http.MethodGet, path, nil); r.status != http.StatusInternalServerError || !strings.Contains(r.text(), "401") {
		c.Errorf("with a wrong password: %d %q", r.status, r.text())
	}
	c.patch(u, "/driver_info/redfish_password", "another")
	if r := c.unlocked(http.MethodGet, path, nil); r.status != http.StatusOK {
		c.Errorf("with the right one again: %d %q", r.status, r.text())
	}
	m.Fault(c, Fault{Down: true})
	if r := c.unlocked(http.MethodGet, path, nil); r.status != http.StatusInternalServerError || !strings.Contains(r.text(), "Redfish connection failed") {
		c.Errorf("without an answer: %d %q", r.status, r.text())
	}
}
