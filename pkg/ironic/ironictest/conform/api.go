package conform

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// newestOf is the newest API version of each release.
func (c *session) newest() int {
	switch c.Release {
	case r21:
		return 82
	case r29:
		return 96
	default:
		return 115
	}
}

func versions(c *session) {
	newest := fmt.Sprintf("1.%d", c.newest())
	for _, path := range []string{"/", "/v1", "/v1/"} {
		r := c.askWith(http.Header{}, http.MethodGet, path, nil)
		version, _ := r.obj()["version"].(obj)
		if path == "/" {
			version, _ = r.obj()["default_version"].(obj)
		}
		if version["version"] != newest || version["min_version"] != "1.1" {
			c.Errorf("GET %s says %v, want 1.1 to %s", path, version, newest)
		}
		want := newest
		if path == "/" && !c.since(r29) {
			want = "" // only the body tells it
		}
		if got := r.header.Get("X-OpenStack-Ironic-API-Maximum-Version"); got != want {
			c.Errorf("GET %s: the header says %q, want %q", path, got, want)
		}
	}
	versionsAsked(c, newest)
	rows, _ := c.want(http.StatusOK, http.MethodGet, "/v1/drivers", nil)["drivers"].([]any)
	if !slices.ContainsFunc(rows, func(x any) bool { row, _ := x.(obj); return row["name"] == "redfish" }) {
		c.Errorf("no driver redfish in %v", rows)
	}
	c.want(http.StatusOK, http.MethodGet, "/nodes?limit=1", nil) // paths work without the version too
}

// versionsAsked asks for one version after the other.
func versionsAsked(c *session, newest string) {
	asked := map[string]struct {
		header  http.Header
		status  int
		version string
		words   string
	}{
		"none":                 {http.Header{}, http.StatusOK, "1.1", ""},
		"one":                  {http.Header{"X-Openstack-Ironic-Api-Version": {"1.80"}}, http.StatusOK, "1.80", ""},
		"latest":               {http.Header{"X-Openstack-Ironic-Api-Version": {"latest"}}, http.StatusOK, newest, ""},
		"one that is too new":  {http.Header{"X-Openstack-Ironic-Api-Version": {"1.999"}}, http.StatusNotAcceptable, "", "The supported version range is: [1.1, " + newest + "]"},
		"one that is none":     {http.Header{"X-Openstack-Ironic-Api-Version": {"abc"}}, http.StatusNotAcceptable, "", "Invalid value for X-OpenStack-Ironic-API-Version header"},
		"another major number": {http.Header{"X-Openstack-Ironic-Api-Version": {"2.1"}}, http.StatusNotAcceptable, "", ""},
	}
	for name, x := range asked {
		r := c.askWith(x.header, http.MethodGet, "/v1/nodes?limit=1", nil)
		if r.status != x.status || x.version != "" && r.header.Get("X-OpenStack-Ironic-API-Version") != x.version || !strings.Contains(r.text(), x.words) {
			c.Errorf("version %s: %d %v %q, want %d %q %q", name, r.status, r.header, r.text(), x.status, x.version, x.words)
		}
	}
}

func errorForms(c *session) {
	c.refused(http.StatusNotFound, "Node no-such could not be found.", http.MethodGet, "/v1/nodes/no-such", nil)
	r := c.ask(http.MethodGet, "/v1/nodes/no-such", nil)
	if message, _ := r.obj()["error_message"].(string); !strings.Contains(message, `"faultcode"`) || !strings.Contains(message, `"Client"`) {
		c.Errorf("an error looks like %v, want JSON within JSON with a faultcode", r.body)
	}
	c.refused(http.StatusNotFound, "", http.MethodGet, "/v1/no-such-page", nil)
	c.refused(http.StatusNotFound, "no-such", http.MethodDelete, "/v1/nodes/no-such", nil)
	c.refused(http.StatusNotFound, "no-such", http.MethodPut, "/v1/nodes/no-such/states/provision", obj{"target": "manage"})
	c.refused(http.StatusNotFound, "no-such", http.MethodPut, "/v1/nodes/no-such/maintenance", obj{})
}

func creation(c *session) {
	m := c.Machine(c)
	u := c.create(m, "a", obj{"extra": obj{"rack": "r1"}})
	n := c.get(u)
	c.fields(n, obj{
		"provision_state": "enroll", "target_provision_state": nil, "power_state": nil, "maintenance": false, "fault": nil, "last_error": nil, "reservation": nil, "instance_uuid": nil,
		"name": c.base + "a", "driver": "redfish", "boot_interface": "redfish-virtual-media", "deploy_interface": "direct", "automated_clean": nil, "protected": false,
	})
	info, _ := n["driver_info"].(obj)
	if info["redfish_password"] != "******" || info["redfish_username"] == "******" {
		c.Errorf("driver_info is %v: the password should be hidden, nothing else", info)
	}
	if byName := c.get(c.base + "a"); byName["uuid"] != u {
		c.Errorf("the node has UUID %v by its name", byName["uuid"])
	}
	post := func(status int, words string, body obj) {
		c.Helper()
		c.refused(status, words, http.MethodPost, "/v1/nodes", body)
	}
	post(http.StatusConflict, "A node with name "+c.base+"a already exists.", obj{"driver": "redfish", "name": c.base + "a"})
	post(http.StatusConflict, "already exists", obj{"driver": "redfish", "uuid": u})
	post(http.StatusBadRequest, "invalid name 'bad/name'", obj{"driver": "redfish", "name": "bad/name"})
	post(http.StatusBadRequest, "No valid host was found.", obj{"driver": "no-such", "name": c.base + "b"})
	post(http.StatusBadRequest, "'driver' is a required property", obj{"name": c.base + "b"})
	post(http.StatusBadRequest, "Additional properties are not allowed ('no_such' was unexpected)", obj{"driver": "redfish", "no_such": 1})
	post(http.StatusBadRequest, "Could not find the following interface in the 'ironic.hardware.interfaces.inspect' entrypoint: no-such", obj{"driver": "redfish", "inspect_interface": "no-such"})
	c.lackedFields(u, post)
}

// lackedFields are those that only newer releases have.
func (c *session) lackedFields(u string, post func(int, string, obj)) {
	c.Helper()
	lacks := map[string]struct {
		since ironicMinor
		value any
	}{
		"firmware_interface": {86, "no-firmware"},
		"disable_power_off":  {95, false},
	}
	for field, x := range lacks {
		n := c.get(u)
		_, there := n[field]
		if has := c.newest() >= int(x.since); there != has {
			c.Errorf("the node shows %s: %v, want %v", field, there, has)
		}
		if c.newest() < int(x.since) {
			post(http.StatusBadRequest, "Additional properties are not allowed ('"+field+"' was unexpected)", obj{"driver": "redfish", field: x.value})
			continue
		}
		old := *c
		old.version = fmt.Sprintf("1.%d", x.since-1)
		old.refused(http.StatusNotAcceptable, "", http.MethodPost, "/v1/nodes", obj{"driver": "redfish", field: x.value})
	}
	if _, there := c.get(u)["health"]; there != c.since(r39) {
		c.Errorf("the node shows health: %v", there)
	}
	inspector := "agent"
	if c.since(r29) {
		inspector = "no-such"
	}
	post(http.StatusBadRequest, "entrypoint: "+inspector, obj{"driver": "redfish", "inspect_interface": inspector})
}

// ironicMinor is the minor number of a version of the API.
type ironicMinor int

func ports(c *session) {
	m := c.Machine(c)
	u := c.create(m, "a", nil)
	mac, other := m.Access().MACs[0], m.Access().MACs[1]
	post := func(status int, words string, body obj) {
		c.Helper()
		c.refused(status, words, http.MethodPost, "/v1/ports", body)
	}
	post(http.StatusConflict, "A port with MAC address "+mac+" already exists.", obj{"node_uuid": u, "address": mac})
	post(http.StatusConflict, "already exists", obj{"node_uuid": u, "address": strings.ToUpper(mac)})
	post(http.StatusBadRequest, "", obj{"node_uuid": "no-such", "address": other})
	post(http.StatusBadRequest, "could not be found", obj{"node_uuid": "00000000-0000-4000-8000-000000000001", "address": other})
	post(http.StatusBadRequest, "MAC", obj{"node_uuid": u, "address": "no-such"})
	p := c.want(http.StatusCreated, http.MethodPost, "/v1/ports", obj{"node_uuid": u, "address": strings.ToUpper(other), "pxe_enabled": false})
	c.fields(p, obj{"node_uuid": u, "address": other, "pxe_enabled": false})

	list := func(query string) []any {
		c.Helper()
		rows, _ := c.want(http.StatusOK, http.MethodGet, "/v1/ports?"+query, nil)["ports"].([]any)
		return rows
	}
	rows := list("fields=node_uuid,uuid,address&node_uuid=" + u)
	if len(rows) != 2 {
		c.Fatalf("the node has the ports %v, want two", rows)
	}
	first, _ := rows[0].(obj)
	c.fields(first, obj{"node_uuid": u, "address": mac})
	if rows := list("fields=node_uuid,address&address=" + other); len(rows) != 1 {
		c.Errorf("with the address %s: %v", other, rows)
	}
	if rows := list("address=52:54:00:ff:ff:ff"); len(rows) != 0 {
		c.Errorf("with an unknown address: %v", rows)
	}
	c.refused(http.StatusNotFound, "no-such", http.MethodGet, "/v1/ports?node=no-such", nil)
	id, _ := p["uuid"].(string)
	p = c.want(http.StatusOK, http.MethodPatch, "/v1/ports/"+id, changes("/pxe_enabled", true))
	c.fields(p, obj{"pxe_enabled": true})
	c.want(http.StatusNoContent, http.MethodDelete, "/v1/ports/"+id, nil)
	c.refused(http.StatusNotFound, "", http.MethodGet, "/v1/ports/"+id, nil)
}

func patching(c *session) {
	u := c.create(c.Machine(c), "a", nil)
	other := c.create(c.Machine(c), "b", nil)
	path := "/v1/nodes/" + u
	no := func(status int, words string, op obj) {
		c.Helper()
		c.refused(status, words, http.MethodPatch, path, []obj{op})
	}
	no(http.StatusBadRequest, "Cannot patch /no_such. Only the following can be updated", obj{"op": "add", "path": "/no_such", "value": 1})
	no(http.StatusBadRequest, "Cannot patch /provision_state", obj{"op": "replace", "path": "/provision_state", "value": "active"})
	no(http.StatusBadRequest, "Cannot patch /uuid", obj{"op": "add", "path": "/uuid", "value": "x"})
	no(http.StatusBadRequest, "can't remove a non-existent object 'none'", obj{"op": "remove", "path": "/instance_info/none"})
	no(http.StatusBadRequest, "can't replace a non-existent object 'none'", obj{"op": "replace", "path": "/extra/none", "value": 1})
	no(http.StatusBadRequest, "member 'a' not found in", obj{"op": "add", "path": "/extra/a/b", "value": 1})
	no(http.StatusBadRequest, "invalid name 'bad/name'", obj{"op": "add", "path": "/name", "value": "bad/name"})
	no(http.StatusConflict, "A node with name "+c.base+"b already exists.", obj{"op": "add", "path": "/name", "value": c.base + "b"})
	no(http.StatusBadRequest, "Invalid automated_clean: Unrecognized value 'maybe'", obj{"op": "add", "path": "/automated_clean", "value": "maybe"})
	no(http.StatusBadRequest, "Expected UUID for instance_uuid", obj{"op": "add", "path": "/instance_uuid", "value": "x"})
	no(http.StatusBadRequest, "Could not find the following interface", obj{"op": "add", "path": "/inspect_interface", "value": "no-such"})
	no(http.StatusBadRequest, "No valid host was found.", obj{"op": "add", "path": "/driver", "value": "no-such"})
	no(http.StatusBadRequest, "'driver' is a required property", obj{"op": "remove", "path": "/driver"})
	no(http.StatusBadRequest, "'test' is not one of ['add', 'replace', 'remove']", obj{"op": "test", "path": "/name", "value": "x"})

	// its rules of access look for a value where none needs to be
	no(http.StatusInternalServerError, "'value'", obj{"op": "remove", "path": "/automated_clean"})

	n := c.patch(u, "/name", c.base+"renamed", "/extra/rack", "r1", "/properties/cpu_arch", "aarch64", "/automated_clean", "off", "/driver_info/redfish_username", "other")
	c.fields(n, obj{"name": c.base + "renamed", "automated_clean": false})
	c.want(http.StatusNotFound, http.MethodGet, "/v1/nodes/"+c.base+"a", nil)
	n = c.want(http.StatusOK, http.MethodPatch, path, []obj{{"op": "remove", "path": "/extra/rack"}, {"op": "remove", "path": "/deploy_interface"}, {"op": "remove", "path": "/instance_uuid"}, {"op": "remove", "path": "/automated_clean", "value": nil}})
	c.fields(n, obj{"extra": obj{}, "deploy_interface": "direct", "instance_uuid": nil, "automated_clean": nil})
	n = c.patch(u, "/properties", nil)
	c.fields(n, obj{"properties": obj{}})

	// an instance belongs to one node, and stays until it is taken off
	instance := "11111111-2222-3333-4444-" + strings.ReplaceAll(u, "-", "")[:12]
	c.patch(u, "/instance_uuid", instance)
	no(http.StatusConflict, "is associated with instance "+instance, obj{"op": "add", "path": "/instance_uuid", "value": "11111111-2222-3333-4444-555555555555"})
	c.refused(http.StatusConflict, "Instance "+instance+" is already associated with a node", http.MethodPatch, "/v1/nodes/"+other, changes("/instance_uuid", instance))
	c.want(http.StatusOK, http.MethodPatch, path, []obj{{"op": "remove", "path": "/instance_uuid"}})
	// nobody has hidden the node
	rows, _ := c.want(http.StatusOK, http.MethodGet, "/v1/nodes?fields=uuid&limit=1000", nil)["nodes"].([]any)
	if !holds(rows, u) {
		c.Errorf("the node is not in the listing any more")
	}
}

func paging(c *session) {
	var all []string
	for k := range 5 {
		n := c.want(http.StatusCreated, http.MethodPost, "/v1/nodes", obj{"driver": "fake-hardware", "name": fmt.Sprintf("%spage-%d", c.base, k)})
		u, _ := n["uuid"].(string)
		c.Cleanup(func() { c.forget(u) })
		all = append(all, u)
	}
	if seen := c.pages(all); !slices.Equal(seen, all) {
		c.Errorf("the pages held %v of ours, want %v in this order", seen, all)
	}
	c.badPages()
	// a marker that is deleted meanwhile
	c.remove(all[1])
	c.refused(http.StatusNotFound, "Node "+all[1]+" could not be found.", http.MethodGet, "/v1/nodes?limit=2&marker="+all[1], nil)
	// filters
	c.maintained(all[0], "filter")
	rows, _ := c.want(http.StatusOK, http.MethodGet, "/v1/nodes?fields=uuid,maintenance_reason&maintenance=true&provision_state=enroll", nil)["nodes"].([]any)
	if !holds(rows, all[0]) || holds(rows, all[2]) {
		c.Errorf("in maintenance: %v, want %s and not %s", rows, all[0], all[2])
	}
}

// holds tells whether there is a row with this UUID.
func holds(rows []any, uuid string) bool {
	return slices.ContainsFunc(rows, func(x any) bool { row, _ := x.(obj); return row["uuid"] == uuid })
}

// pages goes through a listing page by page, and gives those of ours that it held:
// other cases' nodes come and go between.
func (c *session) pages(ours []string) []string {
	c.Helper()
	var seen []string
	path := "/v1/nodes?fields=uuid,name,provision_state&limit=2"
	for pages := 0; path != "" && pages < 1000; pages++ {
		page := c.want(http.StatusOK, http.MethodGet, path, nil)
		rows, _ := page["nodes"].([]any)
		if len(rows) > 2 {
			c.Fatalf("a page of %d nodes, want at most 2", len(rows))
		}
		for _, x := range rows {
			row, _ := x.(obj)
			if u, _ := row["uuid"].(string); slices.Contains(ours, u) {
				seen = append(seen, u)
			}
			if len(row) != 4 {
				c.Errorf("a row has the fields %v, want the three and links", row)
			}
		}
		next, _ := page["next"].(string)
		if path = strings.TrimPrefix(next, c.URL); next != "" && path == next {
			c.Fatalf("next is %q, want an address that begins with %s, by which we called", next, c.URL)
		}
	}
	return seen
}

// badPages asks for what a listing refuses.
func (c *session) badPages() {
	c.Helper()
	bad := map[string]struct {
		status int
		words  string
	}{
		"limit=2&marker=no-such":                              {http.StatusBadRequest, "Expected UUID for marker"},
		"limit=2&marker=00000000-0000-4000-8000-000000000000": {http.StatusNotFound, "could not be found"},
		"limit=-1":                {http.StatusBadRequest, "Limit must be positive"},
		"limit=0":                 {http.StatusBadRequest, "Limit must be positive"},
		"limit=x":                 {http.StatusBadRequest, ""},
		"fields=uuid,no_such":     {http.StatusInternalServerError, "no_such"},
		"fields=uuid&detail=true": {http.StatusBadRequest, ""},
		"sort_key=no_such":        {http.StatusBadRequest, ""},
		"provision_state=no-such": {http.StatusBadRequest, "not valid"},
	}
	for query, x := range bad {
		c.refused(x.status, x.words, http.MethodGet, "/v1/nodes?"+query, nil)
	}
	c.refused(http.StatusBadRequest, "", http.MethodGet, "/v1/nodes/detail?fields=uuid", nil)
	c.want(http.StatusOK, http.MethodGet, "/v1/nodes?limit=5000&fields=uuid", nil)
}

func wrongVerbs(c *session) {
	u := c.create(c.Machine(c), "a", nil)
	verbs := []string{"active", "provide", "deleted", "rebuild", "inspect", "adopt", "abort", "no-such"}
	if c.since(r29) {
		verbs = append(verbs, "service", "unhold")
	}
	for _, v := range verbs {
		c.denied(http.StatusBadRequest, fmt.Sprintf("The requested action %q can not be performed on node %q while it is in state %q.", v, u, "enroll"), u, v, nil)
	}
	c.denied(http.StatusBadRequest, "can not be performed", u, "clean", obj{"clean_steps": []obj{{"interface": "deploy", "step": "erase_devices"}}})
	c.denied(http.StatusBadRequest, "config drive", u, "manage", obj{"configdrive": "x"})
	c.denied(http.StatusBadRequest, "only valid when setting target provision state to clean", u, "manage", obj{"clean_steps": []obj{{"interface": "deploy", "step": "x"}}})
	c.denied(http.StatusBadRequest, "Unexpected arguments: no_such", u, "manage", obj{"no_such": 1})
	c.refused(http.StatusBadRequest, "target", http.MethodPut, "/v1/nodes/"+u+"/states/provision", obj{})
	if !c.since(r29) {
		c.denied(http.StatusBadRequest, "Unexpected arguments: service_steps", u, "service", obj{"service_steps": []obj{}})
	}
	path := "/v1/nodes/" + u + "/"
	c.refused(http.StatusNotFound, "inventory", http.MethodGet, path+"inventory", nil)
	c.refused(http.StatusBadRequest, "not a valid field", http.MethodGet, path+"no-such", nil)
	validation := c.want(http.StatusOK, http.MethodGet, path+"validate", nil)
	deploy, _ := validation["deploy"].(obj)
	boot, _ := validation["boot"].(obj)
	if reason, _ := deploy["reason"].(string); deploy["result"] != false || !strings.Contains(reason, "instance_info.image_source") || boot["result"] != true {
		c.Errorf("validation says boot %v, deploy %v: want good boot, and deploy without image_source", boot, deploy)
	}
	for page, since := range map[string]int{"firmware": 86, "vmedia": 93} {
		if c.newest() < since {
			r := c.ask(http.MethodGet, path+page, nil)
			if r.status != http.StatusNotFound && r.status != http.StatusBadRequest {
				c.Errorf("GET %s: %d, want it to be unknown", page, r.status)
			}
			continue
		}
		old := *c
		old.version = fmt.Sprintf("1.%d", since-1)
		old.refused(http.StatusNotFound, "", http.MethodGet, path+page, nil)
	}
}
