package conform

import (
	"net/http"
	"slices"
	"strings"

	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

func burnStep() obj { return obj{"interface": "deploy", "step": "burnin_cpu"} }

func (c *session) updateStep(component, file string) obj {
	return obj{"interface": "firmware", "step": "update", "args": obj{"settings": []obj{{"component": component, "url": c.Files + file}}}}
}

func (c *session) serve(u string, steps ...obj) {
	c.Helper()
	c.verb(u, "service", obj{"service_steps": steps})
}

func servicing(c *session) {
	m := c.Machine(c)
	u := c.deployed(m, "a")
	if !c.since(r29) {
		c.denied(http.StatusBadRequest, "Unexpected arguments: service_steps", u, "service", obj{"service_steps": []obj{burnStep()}})
		c.denied(http.StatusBadRequest, "can not be performed", u, "service", nil)
		return
	}
	c.denied(http.StatusBadRequest, `"service_steps" is required`, u, "service", obj{"service_steps": []obj{}})
	before := m.Look(c)
	if c.since(r39) {
		c.serve(u, biosStep(Setting, "Enabled"))
		c.fields(c.until(u, "active"), obj{"power_state": "power on", "maintenance": false, "target_provision_state": nil})
		if v := m.Look(c); v.Setting != "Enabled" || v.Runs != ironictest.RunsDisk || v.Boots == before.Boots {
			c.Errorf("after servicing the machine is %+v", v)
		}
		c.serve(u, burnStep())
		c.until(u, "active")
	} else { // it boots the agent, and does not let it in without fast track
		c.serve(u, burnStep())
		c.when(u, "wait for its agent", func(n obj) bool { return n["provision_state"] == "service wait" && n["reservation"] == nil })
		c.verb(u, "abort", nil)
		c.until(u, "service failed")
		c.denied(http.StatusBadRequest, "can not be performed", u, "abort", nil)
		return
	}
	after := m.Look(c)
	if !after.On || after.Runs != ironictest.RunsDisk || after.Erases != before.Erases || after.Writes != before.Writes || after.Disk != before.Disk {
		c.Errorf("after servicing the machine is %+v, was %+v", after, before)
	}
}

func failedServicing(c *session) {
	if !c.since(r29) {
		return // servicing says that it lacks
	}
	m := c.Machine(c)
	u := c.deployed(m, "a")
	if c.since(r39) {
		c.failedServiceSteps(m, u)
	}
	// an agent that does not come
	m.Fault(c, Fault{NoBoot: true})
	c.serve(u, burnStep())
	c.when(u, "wait for its agent", func(n obj) bool { return n["provision_state"] == "service wait" && n["reservation"] == nil })
	c.refused(http.StatusConflict, "Can not delete node", http.MethodDelete, "/v1/nodes/"+u, nil)
	m.Fault(c, Fault{})
	c.verb(u, "deleted", nil) // it undeploys
	c.fields(c.until(u, "available"), obj{"instance_info": obj{}})
}

// failedServiceSteps are steps that fail at the BMC and in the agent, and the ways
// out of it.
func (c *session) failedServiceSteps(m Machine, u string) {
	c.Helper()
	c.serve(u, biosStep("NoSuch", "x"))
	c.fields(c.until(u, "service failed"), obj{"maintenance": true, "fault": "service failure"})
	c.said(u, "NoSuch")
	c.denied(http.StatusConflict, "while it is in maintenance mode", u, "abort", nil)
	c.denied(http.StatusBadRequest, "can not be performed", u, "manage", nil)
	c.denied(http.StatusBadRequest, "because it's in maintenance mode", u, "service", obj{"service_steps": []obj{burnStep()}})
	c.unmaintained(u)
	c.verb(u, "abort", nil)
	c.fields(c.until(u, "active"), obj{"maintenance": false, "fault": nil})
	m.Fault(c, Fault{FailService: "burnin_cpu"})
	c.serve(u, burnStep())
	c.until(u, "service failed")
	c.said(u, "burnin_cpu failed on node "+u)
	m.Fault(c, Fault{})
	if c.get(u)["maintenance"] == true {
		c.unmaintained(u)
	}
	c.serve(u, burnStep())
	c.until(u, "active")
	if v := m.Look(c); !v.On || v.Runs != ironictest.RunsDisk || v.Disk == "" {
		c.Errorf("after all the machine is %+v", v)
	}
}

func firmware(c *session) {
	m := c.Machine(c)
	if !c.since(r29) {
		u := c.managed(m, "a", nil)
		r := c.ask(http.MethodGet, "/v1/nodes/"+u+"/firmware", nil)
		if r.status == http.StatusOK {
			c.Errorf("there is firmware: %v", r.body)
		}
		c.denied(http.StatusBadRequest, "'firmware' is not one of", u, "clean", obj{"clean_steps": []obj{c.updateStep("bios", BIOS2)}})
		c.fields(c.get(u), obj{"provision_state": "manageable"})
		return
	}
	u := c.managed(m, "a", obj{"firmware_interface": "redfish"})
	c.components(u, m)
	c.clean(u, c.updateStep("bios", BIOS2))
	c.until(u, "manageable")
	if v := m.Look(c); v.Firmware["bios"] != "2.0.0" {
		c.Errorf("the firmware is %v", v.Firmware)
	}
	row := c.component(u, "bios")
	c.fields(row, obj{"current_version": "2.0.0", "last_version_flashed": "2.0.0"})
	m.Fault(c, Fault{FailUpdate: true})
	c.clean(u, c.updateStep("bios", "/bios-3.0.0.bin"))
	c.fields(c.until(u, "clean failed"), obj{"maintenance": true, "fault": "clean failure"})
	c.said(u, "irmware")
	if v := m.Look(c); v.Firmware["bios"] != "2.0.0" {
		c.Errorf("after a failed update the firmware is %v", v.Firmware)
	}
}

// components looks at the firmware of a node.
func (c *session) components(u string, m Machine) {
	c.Helper()
	for _, name := range []string{"bios", "bmc"} {
		row := c.component(u, name)
		c.fields(row, obj{"current_version": m.Look(c).Firmware[name], "last_version_flashed": nil})
	}
	rows, _ := c.want(http.StatusOK, http.MethodGet, "/v1/nodes/"+u+"/firmware", nil)["firmware"].([]any)
	cards := 0
	for _, x := range rows {
		row, _ := x.(obj)
		if name, _ := row["component"].(string); strings.HasPrefix(name, "nic:") {
			cards++
		}
	}
	if (cards > 0) != c.since(r39) {
		c.Errorf("%d network cards have firmware; they are known from 39 on", cards)
	}
}

func (c *session) component(u, name string) obj {
	c.Helper()
	rows, _ := c.want(http.StatusOK, http.MethodGet, "/v1/nodes/"+u+"/firmware", nil)["firmware"].([]any)
	for _, x := range rows {
		if row, _ := x.(obj); row["component"] == name {
			return row
		}
	}
	c.Fatalf("no component %s in %v", name, rows)
	return nil
}

func raidSteps(create bool) []obj {
	steps := []obj{{"interface": "raid", "step": "delete_configuration"}}
	if create {
		steps = append(steps, obj{"interface": "raid", "step": "create_configuration"})
	}
	return steps
}

func bmcRAID(c *session) {
	m := c.Machine(c)
	u := c.managed(m, "a", nil)
	path := "/v1/nodes/" + u + "/states/raid"
	c.refused(http.StatusNotFound, "does not support raid", http.MethodPut, path, obj{"logical_disks": []obj{{"size_gb": 100, "raid_level": "1"}}})
	c.patch(u, "/raid_interface", "redfish")
	c.refused(http.StatusBadRequest, "", http.MethodPut, path, obj{"logical_disks": []obj{{"size_gb": 100}}})
	c.want(http.StatusNoContent, http.MethodPut, path, obj{"logical_disks": []obj{{"size_gb": "MAX", "raid_level": "1"}}})
	c.clean(u, raidSteps(true)...)
	c.fields(c.until(u, "clean failed"), obj{"maintenance": true, "fault": "clean failure"})
	c.said(u, "'physical_disks' is missing from logical_disk while 'size_gb'='MAX' was requested")
	c.unmaintained(u)
	c.verb(u, "manage", nil)
	c.until(u, "manageable")

	c.want(http.StatusNoContent, http.MethodPut, path, obj{"logical_disks": []obj{{"size_gb": 200, "raid_level": "1", "volume_name": "root", "is_root_volume": true}}})
	c.clean(u, raidSteps(true)...)
	n := c.until(u, "manageable")
	have, _ := n["raid_config"].(obj)
	disks, _ := have["logical_disks"].([]any)
	if len(disks) != 1 || m.Look(c).Volumes != 1 {
		c.Fatalf("raid_config is %v, the machine %+v; want one volume", have, m.Look(c))
	}
	disk, _ := disks[0].(obj)
	c.fields(disk, obj{"raid_level": "1", "size_gb": 200})
	if target, _ := n["target_raid_config"].(obj); target["logical_disks"] == nil {
		c.Errorf("target_raid_config is %v: it should stay", target)
	}
	c.clean(u, raidSteps(false)...)
	n = c.until(u, "manageable")
	have, _ = n["raid_config"].(obj)
	if disks, _ := have["logical_disks"].([]any); len(disks) != 0 || m.Look(c).Volumes != 0 {
		c.Errorf("raid_config is %v, the machine %+v; want no volume", have, m.Look(c))
	}
}

func softwareRAID(c *session) {
	m := c.Machine(c)
	u := c.managed(m, "a", nil)
	c.patch(u, "/raid_interface", "agent")
	c.want(http.StatusNoContent, http.MethodPut, "/v1/nodes/"+u+"/states/raid", obj{"logical_disks": []obj{{"size_gb": "MAX", "raid_level": "1", "controller": "software", "is_root_volume": true}}})
	c.clean(u, raidSteps(false)[0], eraseStep(), raidSteps(true)[1])
	n := c.until(u, "manageable")
	have, _ := n["raid_config"].(obj)
	disks, _ := have["logical_disks"].([]any)
	if len(disks) != 1 {
		c.Fatalf("raid_config is %v", have)
	}
	disk, _ := disks[0].(obj)
	c.fields(disk, obj{"raid_level": "1", "size_gb": "MAX", "controller": "software"})
	if v := m.Look(c); v.Erases != 1 {
		c.Errorf("the machine is %+v", v)
	}
}

func virtualMedia(c *session) {
	m := c.Machine(c)
	u := c.managed(m, "a", nil)
	path := "/v1/nodes/" + u + "/vmedia"
	if !c.since(r29) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r := c.ask(method, path, obj{"device_type": "cdrom", "image_url": c.Files + DataISO})
			if r.status != http.StatusNotFound && r.status != http.StatusBadRequest {
				c.Errorf("%s vmedia: %d", method, r.status)
			}
		}
		return
	}
	c.drives(path, false)
	c.attach(path, obj{"device_type": "cdrom", "image_url": c.Files + DataISO})
	c.when(u, "be unlocked", func(n obj) bool { return n["reservation"] == nil && m.Look(c).CD })
	shown := c.drives(path, true)
	if shown == c.Files+DataISO || !strings.HasPrefix(shown, "http") {
		c.Errorf("the drive shows %q: it should be Ironic's own address", shown)
	}
	c.attach(path, obj{"device_type": "cdrom", "image_url": c.Files + LiveISO}) // it takes the other one's place
	c.when(u, "be unlocked", func(n obj) bool { return n["reservation"] == nil })
	c.drives(path, true)
	c.detach(path, "?device_types=cdrom")
	c.when(u, "be unlocked", func(n obj) bool { return n["reservation"] == nil && !m.Look(c).CD })
	c.drives(path, false)
	c.detach(path, "") // nothing is in: no error
	c.attach(path, obj{"device_type": "cdrom", "image_url": c.Files + DataISO, "image_download_source": "http"})
	c.when(u, "be unlocked", func(n obj) bool { return n["reservation"] == nil && m.Look(c).CD })
	if shown := c.drives(path, true); shown == c.Files+DataISO {
		c.Errorf("the drive shows %q: Ironic does not take the wish for the address itself to its conductor", shown)
	}
	c.detach(path, "")
	c.when(u, "be unlocked", func(n obj) bool { return n["reservation"] == nil && !m.Look(c).CD })
	// a failure is told later, by the last error or the history
	c.attach(path, obj{"device_type": "cdrom", "image_url": c.Files + Missing})
	c.when(u, "say what is wrong", func(n obj) bool {
		text, _ := n["last_error"].(string)
		return strings.Contains(text, "Could not attach device cdrom") || strings.Contains(strings.Join(c.history(u), "\n"), "Could not attach device cdrom")
	})
	c.refused(http.StatusBadRequest, "vmedia", http.MethodPost, path, obj{"device_type": "tape", "image_url": c.Files + DataISO})
	c.refused(http.StatusBadRequest, "vmedia", http.MethodPost, path, obj{"device_type": "cdrom"})
	m.Fault(c, Fault{Down: true})
	c.refused(http.StatusInternalServerError, "Redfish connection failed", http.MethodGet, path, nil)
}

func (c *session) attach(path string, body obj) {
	c.Helper()
	if r := c.unlocked(http.MethodPost, path, body); r.status != http.StatusNoContent {
		c.Fatalf("attach %v: %d %s", body, r.status, r.text())
	}
}

func (c *session) detach(path, query string) {
	c.Helper()
	if r := c.unlocked(http.MethodDelete, path+query, nil); r.status != http.StatusNoContent {
		c.Fatalf("detach %s: %d %s", query, r.status, r.text())
	}
}

// drives looks at the virtual drives, and gives the address in the one that has an
// image.
func (c *session) drives(path string, inserted bool) string {
	c.Helper()
	r := c.unlocked(http.MethodGet, path, nil)
	all, _ := r.body.([]any)
	if r.status != http.StatusOK || len(all) == 0 {
		c.Fatalf("drives: %d %v", r.status, r.body)
	}
	found := ""
	for _, x := range all {
		row, _ := x.(obj)
		if row["inserted"] == true {
			found, _ = row["image"].(string)
		}
		if row["media_types"] == nil {
			c.Errorf("a drive is %v", row)
		}
	}
	if (found != "") != inserted {
		c.Errorf("the drives are %v, want an image: %v", all, inserted)
	}
	return found
}

// named reports whether a member of a collection has that name.
func named(member any, id string) bool {
	m, _ := member.(obj)
	at, _ := m["@odata.id"].(string)
	return strings.HasSuffix(strings.TrimSuffix(at, "/"), "/"+id)
}

func subscriptions(c *session) {
	m := c.Machine(c)
	u := c.managed(m, "a", nil)
	path := "/v1/nodes/" + u + "/vendor_passthru?method="
	c.refused(http.StatusBadRequest, "", http.MethodPost, path+"create_subscription", obj{})
	s := c.want(http.StatusOK, http.MethodPost, path+"create_subscription", obj{"Destination": "https://receiver.test/hook", "Context": "c", "HttpHeaders": []obj{{"X-Token": "t"}}})
	id, _ := s["Id"].(string)
	if id == "" || s["Destination"] != "https://receiver.test/hook" {
		c.Fatalf("the subscription is %v", s)
	}
	r := c.ask(http.MethodGet, path+"get_all_subscriptions", nil)
	all, _ := r.body.(obj)
	members, _ := all["Members"].([]any)
	if r.status != http.StatusOK || !slices.ContainsFunc(members, func(m any) bool { return named(m, id) }) {
		c.Errorf("all subscriptions: %d %v, want member %s", r.status, r.body, id)
	}
	if one := c.want(http.StatusOK, http.MethodGet, path+"get_subscription", obj{"id": id}); one["Destination"] != s["Destination"] || one["Context"] != "c" {
		c.Errorf("the subscription is %v", one)
	}
	if r := c.ask(http.MethodDelete, path+"delete_subscription", obj{"id": id}); r.status/100 != 2 {
		c.Errorf("delete: %d %s", r.status, r.text())
	}
	c.refused(http.StatusNotFound, "not found", http.MethodDelete, path+"delete_subscription", obj{"id": id})
}
