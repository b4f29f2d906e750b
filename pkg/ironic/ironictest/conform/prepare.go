package conform

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

func verification(c *session) {
	m := c.Machine(c)
	u := c.create(m, "good", nil)
	c.verb(u, "manage", nil)
	c.fields(c.until(u, "manageable"), obj{"power_state": "power off", "target_provision_state": nil, "last_error": nil})
	if n := m.Look(c).Changes; n != 0 {
		c.Errorf("verification changed the machine %d times", n)
	}
	c.remove(u)

	wrong := map[string]struct {
		info  obj
		words string
	}{
		"password": {obj{"redfish_password": "wrong"}, "returned code 401"},
		"system":   {obj{"redfish_system_id": "/redfish/v1/Systems/no-such"}, "not found"},
		"address":  {obj{"redfish_address": DeadServer}, "Unable to connect to"},
		"nothing":  {obj{"redfish_address": ""}, "Missing the following Redfish properties in node"},
	}
	for name, x := range wrong {
		info := maps.Clone(m.Access().Info)
		maps.Copy(info, x.info)
		n := c.want(http.StatusCreated, http.MethodPost, "/v1/nodes", obj{"driver": "redfish", "name": c.base + name, "driver_info": info})
		u, _ := n["uuid"].(string)
		c.Cleanup(func() { c.forget(u) })
		c.verb(u, "manage", nil)
		n = c.when(u, "come back to enroll", func(n obj) bool { return n["provision_state"] == "enroll" && n["reservation"] == nil })
		c.fields(n, obj{"target_provision_state": nil, "maintenance": false, "fault": nil, "power_state": nil})
		if text, _ := n["last_error"].(string); !strings.Contains(text, x.words) { // enrolled nodes are not synced: it stays
			c.Errorf("wrong %s: last error %q, want %q", name, text, x.words)
		}
		c.remove(u)
	}
}

func agentInspection(c *session) {
	m := c.Machine(c)
	if !c.since(r29) {
		u := c.managed(m, "a", nil)
		c.refused(http.StatusBadRequest, "Could not find the following interface", http.MethodPatch, "/v1/nodes/"+u, changes("/inspect_interface", "agent"))
		return
	}
	u := c.managed(m, "a", nil)
	c.patch(u, "/inspect_interface", "agent")
	c.verb(u, "inspect", nil)
	seen := c.walk(u, "manageable")
	if !slices.Contains(seen, "inspecting") && !slices.Contains(seen, "inspect wait") {
		c.Errorf("the node went through %v", seen)
	}
	n := c.get(u)
	c.fields(n, obj{"power_state": "power off", "last_error": nil, "target_provision_state": nil})
	if n["inspection_finished_at"] == nil {
		c.Errorf("inspection_finished_at is not set")
	}
	c.inventory(u, m.Access().MACs)
	rows, _ := c.want(http.StatusOK, http.MethodGet, "/v1/ports?fields=address,pxe_enabled&node_uuid="+u, nil)["ports"].([]any)
	enabled := map[string]any{}
	for _, x := range rows {
		row, _ := x.(obj)
		address, _ := row["address"].(string)
		enabled[address] = row["pxe_enabled"]
	}
	for k, mac := range m.Access().MACs {
		if enabled[mac] != (k == 0) {
			c.Errorf("port %s: pxe_enabled %v", mac, enabled[mac])
		}
	}
	if v := m.Look(c); v.On || v.CD || v.Erases > 0 || v.Writes > 0 {
		c.Errorf("after its inspection the machine is %+v", v)
	}
}

// inventory looks at what an agent found.
func (c *session) inventory(u string, macs []string) {
	c.Helper()
	found := c.want(http.StatusOK, http.MethodGet, "/v1/nodes/"+u+"/inventory", nil)
	inventory, _ := found["inventory"].(obj)
	plugin, _ := found["plugin_data"].(obj)
	for _, part := range []string{"cpu", "memory", "disks", "interfaces", "system_vendor", "hostname", "boot"} {
		if inventory[part] == nil {
			c.Errorf("the inventory lacks %s", part)
		}
	}
	nics, _ := inventory["interfaces"].([]any)
	if len(nics) != len(macs) {
		c.Fatalf("the inventory has %d interfaces, want %d", len(nics), len(macs))
	}
	first, _ := nics[0].(obj)
	c.fields(first, obj{"mac_address": macs[0], "speed_mbps": 10000})
	name, _ := first["name"].(string)
	interfaces, _ := plugin["all_interfaces"].(obj)
	entry, _ := interfaces[name].(obj)
	c.fields(entry, obj{"pxe_enabled": true})
	heard, _ := plugin["parsed_lldp"].(obj)
	lldp, _ := heard[name].(obj)
	c.fields(lldp, obj{"switch_port_id": "Eth1/1", "switch_system_name": "switch-1", "switch_port_untagged_vlan_id": 10})
	if plugin["root_disk"] == nil {
		c.Errorf("plugin_data lacks the root disk: %v", plugin)
	}
}

// walk waits for a state and gives the states on the way there.
func (c *session) walk(u string, to ...string) []string {
	c.Helper()
	var seen []string
	c.when(u, "be "+strings.Join(to, " or "), func(n obj) bool {
		state, _ := n["provision_state"].(string)
		if len(seen) == 0 || seen[len(seen)-1] != state {
			seen = append(seen, state)
		}
		return n["reservation"] == nil && (slices.Contains(to, state) || strings.HasSuffix(state, "failed"))
	})
	if !slices.Contains(to, seen[len(seen)-1]) {
		c.Fatalf("the node went through %v, want %v at the end; history %v", seen, to, c.history(u))
	}
	return seen
}

func bmcInspection(c *session) {
	m := c.Machine(c)
	u := c.managed(m, "a", obj{"inspect_interface": "redfish"})
	c.verb(u, "inspect", nil)
	c.until(u, "manageable")
	r := c.ask(http.MethodGet, "/v1/nodes/"+u+"/inventory", nil)
	if !c.since(r29) {
		if r.status != http.StatusNotFound {
			c.Errorf("inventory: %d, want none", r.status)
		}
	} else {
		c.thinInventory(r)
	}
	if v := m.Look(c); v.On || v.Boots > 0 {
		c.Errorf("the inspection by the BMC booted the machine: %+v", v)
	}
	rows, _ := c.want(http.StatusOK, http.MethodGet, "/v1/ports?node_uuid="+u, nil)["ports"].([]any)
	if len(rows) < 2 {
		c.Errorf("the inspection left the ports %v", rows)
	}
}

// thinInventory is what an inspection by the BMC finds: no flags, frequencies as
// numbers, nothing of switches, and up to 29 no names of interfaces.
func (c *session) thinInventory(r reply) {
	c.Helper()
	if r.status != http.StatusOK {
		c.Fatalf("inventory: %d %s", r.status, r.text())
	}
	inventory, _ := r.obj()["inventory"].(obj)
	cpu, _ := inventory["cpu"].(obj)
	if _, isText := cpu["frequency"].(string); isText || cpu["count"] == nil {
		c.Errorf("the cpu is %v, want a count, and no frequency as text", cpu)
	}
	nics, _ := inventory["interfaces"].([]any)
	disks, _ := inventory["disks"].([]any)
	if len(nics) == 0 || len(disks) == 0 {
		c.Fatalf("the inventory is %v: want interfaces and disks", inventory)
	}
	nic, _ := nics[0].(obj)
	if _, named := nic["name"]; nic["mac_address"] == nil || named != c.since(r39) {
		c.Errorf("an interface is %v; a name is wanted from 39 on", nic)
	}
	disk, _ := disks[0].(obj)
	if _, rich := disk["model"]; disk["size"] == nil || rich != c.since(r39) {
		c.Errorf("a disk is %v; a model is wanted from 39 on", disk)
	}
	plugin, _ := r.obj()["plugin_data"].(obj)
	if _, known := plugin["all_interfaces"]; known != c.since(r39) || plugin["parsed_lldp"] != nil {
		c.Errorf("plugin_data is %v; interfaces are wanted from 39 on", plugin)
	}
}

func failedInspection(c *session) {
	m := c.Machine(c)
	u := c.managed(m, "a", nil)
	c.patch(u, "/inspect_interface", "no-inspect")
	c.denied(http.StatusBadRequest, "does not support inspect", u, "inspect", nil)
	if !c.since(r29) {
		return
	}
	c.patch(u, "/inspect_interface", "agent")
	m.Fault(c, Fault{FailInspect: "no disk was found"})
	c.verb(u, "inspect", nil)
	c.fields(c.until(u, "inspect failed"), obj{"maintenance": false, "fault": nil})
	c.said(u, "no disk was found")
	c.refused(http.StatusConflict, "Can not delete node", http.MethodDelete, "/v1/nodes/"+u, nil)
	m.Fault(c, Fault{NoBoot: true})
	c.verb(u, "inspect", nil)
	c.when(u, "wait for its agent", func(n obj) bool { return n["provision_state"] == "inspect wait" && n["reservation"] == nil })
	c.denied(http.StatusBadRequest, "can not be performed", u, "inspect", nil)
	c.verb(u, "abort", nil)
	n := c.until(u, "inspect failed")
	c.fields(n, obj{"maintenance": false, "fault": nil})
	c.said(u, "Inspection was aborted by request.")
	m.Fault(c, Fault{})
	c.verb(u, "manage", nil)
	c.until(u, "manageable")
	c.remove(u)
}

func eraseStep() obj { return obj{"interface": "deploy", "step": "erase_devices_metadata"} }

func biosStep(name, value string) obj {
	return obj{"interface": "bios", "step": "apply_configuration", "args": obj{"settings": []obj{{"name": name, "value": value}}}}
}

func (c *session) clean(u string, steps ...obj) {
	c.Helper()
	c.verb(u, "clean", obj{"clean_steps": steps})
}

func manualCleaning(c *session) {
	m := c.Machine(c)
	u := c.managed(m, "a", nil)
	r := c.unlocked(http.MethodPut, "/v1/nodes/"+u+"/states/provision", obj{"target": "clean", "clean_steps": []obj{}})
	if r.status != http.StatusBadRequest {
		c.Errorf("clean without steps: %d %s", r.status, r.text())
	}
	c.clean(u, eraseStep())
	c.refused(http.StatusBadRequest, "can not be performed", http.MethodPut, "/v1/nodes/"+u+"/states/power", obj{"target": "power off"})
	c.refused(http.StatusConflict, "can not be updated while a state transition is in progress", http.MethodPatch, "/v1/nodes/"+u, changes("/extra/a", 1))
	seen := c.walk(u, "manageable")
	if !slices.Contains(seen, "clean wait") && !slices.Contains(seen, "cleaning") {
		c.Errorf("the node went through %v", seen)
	}
	if v := m.Look(c); v.Erases != 1 || v.On || v.CD {
		c.Errorf("cleaned: %+v", v)
	}
	c.clean(u, biosStep(Setting, "Enabled"))
	c.fields(c.until(u, "manageable"), obj{"maintenance": false, "fault": nil})
	if v := m.Look(c); v.Setting != "Enabled" {
		c.Errorf("the setting is %q, want Enabled", v.Setting)
	}
	c.settings(u)
	n := c.get(u)
	booted := !c.since(r39) // up to 29 the agent is booted for every step, and switched off after it
	if on := n["power_state"] == "power on"; on == booted {
		c.Errorf("after a step without the agent the node is %v", n["power_state"])
	}
}

// settings looks at the BIOS settings of a node.
func (c *session) settings(u string) {
	c.Helper()
	find := func(query string) obj {
		c.Helper()
		rows, _ := c.want(http.StatusOK, http.MethodGet, "/v1/nodes/"+u+"/bios"+query, nil)["bios"].([]any)
		for _, x := range rows {
			if row, _ := x.(obj); row["name"] == Setting {
				return row
			}
		}
		c.Fatalf("no setting %s in %v", Setting, rows)
		return nil
	}
	row := find("?detail=true")
	c.fields(row, obj{"value": "Enabled", "attribute_type": "Enumeration", "read_only": false})
	if allowed, _ := row["allowable_values"].([]any); len(allowed) != 2 {
		c.Errorf("allowable_values is %v", row["allowable_values"])
	}
	if row = find(""); row["attribute_type"] != nil || row["value"] != "Enabled" {
		c.Errorf("without detail a setting is %v", row)
	}
}

func failedCleaning(c *session) {
	m := c.Machine(c)
	u := c.managed(m, "a", nil)
	// a step that nobody knows
	c.clean(u, obj{"interface": "deploy", "step": "no_such"})
	c.fields(c.until(u, "clean failed"), obj{"maintenance": false, "fault": nil, "target_provision_state": "manageable"})
	c.said(u, "does not support this clean step")
	c.denied(http.StatusBadRequest, "can not be performed", u, "provide", nil)
	c.refused(http.StatusConflict, "Can not delete node", http.MethodDelete, "/v1/nodes/"+u, nil)
	c.verb(u, "manage", nil)
	c.fields(c.until(u, "manageable"), obj{"target_provision_state": nil})
	// a step that fails in the agent
	m.Fault(c, Fault{FailClean: "erase_devices_metadata"})
	c.clean(u, eraseStep())
	n := c.until(u, "clean failed")
	c.fields(n, obj{"maintenance": true, "fault": "clean failure"})
	if reason, _ := n["maintenance_reason"].(string); !strings.Contains(reason, "erase_devices_metadata") {
		c.Errorf("the reason of the maintenance is %q", reason)
	}
	c.said(u, "Clean step deploy.erase_devices_metadata failed on node "+u)
	m.Fault(c, Fault{})
	c.verb(u, "manage", nil)
	c.fields(c.until(u, "manageable"), obj{"maintenance": true, "fault": "clean failure"})
	c.denied(http.StatusBadRequest, "because it's in maintenance mode", u, "clean", obj{"clean_steps": []obj{eraseStep()}})
	c.unmaintained(u)
	c.fields(c.get(u), obj{"maintenance": false, "fault": nil, "maintenance_reason": nil})
	c.unmaintained(u) // once more is no error
	// a step that fails at the BMC
	c.clean(u, biosStep("NoSuch", "x"))
	c.fields(c.until(u, "clean failed"), obj{"maintenance": true, "fault": "clean failure"})
	c.said(u, "NoSuch")
	if told := strings.Join(c.history(u), "\n"); strings.Contains(told, "Manual Cleaning aborted at step 'apply_configuration'") != c.since(r39) {
		c.Errorf("history says %s", told)
	}
	c.unmaintained(u)
	c.verb(u, "manage", nil)
	c.until(u, "manageable")
	// a verb in maintenance: the agent is not listened to until it is over
	c.maintained(u, "mine")
	r := c.unlocked(http.MethodPut, "/v1/nodes/"+u+"/states/provision", obj{"target": "provide"})
	if r.status != http.StatusAccepted {
		c.Fatalf("provide in maintenance: %d %s", r.status, r.text())
	}
	c.when(u, "wait for its agent", func(n obj) bool { return n["provision_state"] == "clean wait" && n["reservation"] == nil })
	c.refused(http.StatusConflict, "", http.MethodPatch, "/v1/nodes/"+u, changes("/extra/a", 1))
	c.unmaintained(u)
	c.until(u, "available")
}

func abortedCleaning(c *session) {
	m := c.Machine(c)
	u := c.managed(m, "a", nil)
	m.Fault(c, Fault{NoBoot: true})
	c.verb(u, "provide", nil)
	c.when(u, "wait for its agent", func(n obj) bool { return n["provision_state"] == "clean wait" && n["reservation"] == nil })
	c.refused(http.StatusConflict, "Can not delete node", http.MethodDelete, "/v1/nodes/"+u, nil)
	c.verb(u, "abort", nil)
	c.fields(c.until(u, "clean failed"), obj{"maintenance": false, "fault": nil})
	m.Fault(c, Fault{LongSteps: true})
	c.verb(u, "manage", nil)
	c.until(u, "manageable")
	c.verb(u, "provide", nil)
	c.when(u, "run a step", func(n obj) bool {
		step, _ := n["clean_step"].(obj)
		return n["provision_state"] == "clean wait" && n["reservation"] == nil && step["step"] != nil
	})
	c.verb(u, "abort", nil)
	c.fields(c.until(u, "clean failed"), obj{"maintenance": false, "fault": nil})
	m.Fault(c, Fault{})
	c.verb(u, "manage", nil)
	c.until(u, "manageable")
	if v := m.Look(c); v.Runs == ironictest.RunsAgent {
		c.Errorf("after an abort the machine is %+v", v)
	}
}
