package ironictest

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// postNode makes a node.
func postNode(c *call) (answer, error) {
	var body obj
	if err := c.json(&body); err != nil {
		return nothing(err)
	}
	wanted, err := c.newSettings(body)
	if err != nil {
		return nothing(err)
	}
	if err := c.i.cfg.Release.equip(wanted); err != nil {
		return nothing(err)
	}
	n := &node{settings: wanted, state: state{provision: enroll, created: c.i.cfg.Now()}}
	n.uuid, _ = wanted["uuid"].(string)
	delete(wanted, "uuid")
	if n.uuid == "" {
		n.uuid = c.i.newUUID()
	}
	if err := c.i.free(n, n.uuid, n.text("name"), n.text("instance_uuid")); err != nil {
		return nothing(err)
	}
	c.i.insert(n)
	a, err := created(c.i.looks.all(n, c.minor, c.base))
	return a.with("Location", c.base+"/v1/nodes/"+n.uuid), err
}

// newSettings checks what a new node is to be.
func (c *call) newSettings(body obj) (obj, error) {
	wanted := obj{}
	for _, s := range settings() {
		if !s.postOnly {
			wanted[s.name] = s.preset
		}
	}
	for name, v := range body {
		accepted, err := c.newSetting(name, v)
		if err != nil {
			return nil, err
		}
		wanted[name] = accepted
	}
	if wanted["driver"] == nil {
		return nil, bad("Schema error for node: 'driver' is a required property")
	}
	if name, isText := wanted["name"].(string); isText && !nameForm.MatchString(name) {
		return nil, bad("Cannot create node with invalid name '%s'", name)
	}
	return wanted, nil
}

// newSetting checks one setting of a new node.
func (c *call) newSetting(name string, v any) (any, error) {
	s, known := findSetting(name)
	if !known || s.patchOnly || s.since > c.i.cfg.Release.newest() {
		return nil, bad("Schema error for node: Additional properties are not allowed ('%s' was unexpected)", name)
	}
	if s.since > c.minor {
		return nil, notAcceptable()
	}
	return s.accept(v)
}

// free tells whether nobody but n has these.
func (i *Ironic) free(n *node, uuid, name, instance string) error {
	if other := i.nodes[uuid]; other != nil && other != n {
		return conflict("A node with UUID %s already exists.", uuid)
	}
	if other := i.names[name]; other != nil && other != n {
		return conflict("A node with name %s already exists.", name)
	}
	if other := i.instances[instance]; other != nil && other != n {
		return conflict("Instance %s is already associated with a node, it cannot be associated with this other node %s", instance, n.uuid)
	}
	return nil
}

func getNode(c *call) (answer, error) {
	n, err := c.node()
	if err != nil {
		return nothing(err)
	}
	if wanted := c.r.URL.Query().Get("fields"); wanted != "" {
		fields, err := c.fields(wanted)
		if err != nil {
			return nothing(err)
		}
		return ok(c.i.looks.some(n, fields, c.base))
	}
	return ok(c.i.looks.all(n, c.minor, c.base))
}

// fields reads a list of wanted fields. One that nobody knows is the server's own
// mistake, as in the real one.
func (c *call) fields(wanted string) ([]string, error) {
	all := strings.Split(wanted, ",")
	for _, f := range all {
		since, known := c.i.looks.since[f]
		if !known && !slices.Contains([]string{"links", "chassis_uuid"}, f) {
			return nil, refuse(http.StatusInternalServerError, "type object 'Node' has no attribute '%s'", f)
		}
		if since > c.minor {
			return nil, notAcceptable()
		}
	}
	return all, nil
}

// deleteNode forgets a node. Nothing is done to its machine.
func deleteNode(c *call) (answer, error) {
	for k := range c.r.URL.Query() {
		return nothing(bad("Unexpected arguments: %s", k))
	}
	n, err := c.unlocked()
	if err != nil {
		return nothing(err)
	}
	allowed := []string{manageable, enroll, adoptFailed, available}
	instance := n.text("instance_uuid")
	switch {
	case !n.maintenance() && instance != "":
		return nothing(conflict("Node %s is associated with instance %s.", n.uuid, instance))
	case n.flag("protected"):
		return nothing(refuse(http.StatusForbidden, "Node %s is protected and cannot be undeployed, rebuilt or deleted.", n.uuid))
	case !n.maintenance() && !slices.Contains(allowed, n.state.provision):
		return nothing(conflict("Can not delete node \"%s\" while it is in provision state \"%s\". Valid provision states to perform deletion are: \"('%s')\", or set the node into maintenance mode",
			n.uuid, n.state.provision, strings.Join(allowed, "', '")))
	}
	c.i.remove(n)
	return done(http.StatusNoContent)
}

// summary is what a listing shows if nobody says otherwise.
func summary() []string {
	return []string{"uuid", "instance_uuid", "maintenance", "power_state", "provision_state", "name"}
}

func getNodes(c *call) (answer, error) { return c.listing(c.r.URL.Query().Get("detail") == "true") }

func getNodesDetail(c *call) (answer, error) {
	if c.r.URL.Query().Has("fields") {
		return nothing(bad("Can't fetch a subset of fields with 'detail' set"))
	}
	return c.listing(true)
}

// listing answers one page of nodes.
func (c *call) listing(detail bool) (answer, error) {
	q := c.r.URL.Query()
	fields := summary()
	if wanted := q.Get("fields"); wanted != "" {
		if detail {
			return nothing(bad("Can't fetch a subset of fields with 'detail' set"))
		}
		var err error
		if fields, err = c.fields(wanted); err != nil {
			return nothing(err)
		}
	}
	limit, err := c.limit()
	if err != nil {
		return nothing(err)
	}
	start, err := c.marker()
	if err != nil {
		return nothing(err)
	}
	keep, err := c.filter()
	if err != nil {
		return nothing(err)
	}
	rows, last := []any{}, ""
	for at := start; at < len(c.i.order); at++ {
		n := c.i.order[at]
		if !keep(n) {
			continue
		}
		if len(rows) == limit {
			return ok(obj{"nodes": rows, "next": c.next(limit, last)})
		}
		last = n.uuid
		if detail {
			rows = append(rows, c.i.looks.all(n, c.minor, c.base))
			continue
		}
		rows = append(rows, c.i.looks.some(n, fields, c.base))
	}
	return ok(obj{"nodes": rows})
}

func (c *call) limit() (int, error) {
	most := c.i.cfg.MaxLimit
	text := c.r.URL.Query().Get("limit")
	if text == "" {
		return most, nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, bad("Invalid input for field/attribute limit: %s", text)
	case n <= 0:
		return 0, bad("Limit must be positive")
	}
	return min(n, most), nil
}

// marker finds where the page starts.
func (c *call) marker() (int, error) {
	q := c.r.URL.Query()
	if key := q.Get("sort_key"); key != "" {
		if _, known := c.i.looks.since[key]; !known && key != "id" {
			return 0, bad("The sort_key value \"%s\" is invalid for sorting", key)
		}
	}
	marker := q.Get("marker")
	if marker == "" {
		return 0, nil
	}
	if !isUUIDText(marker) {
		return 0, bad("Expected UUID for marker: %s", marker)
	}
	n := c.i.nodes[marker]
	if n == nil {
		return 0, noNode(marker)
	}
	at, _ := slices.BinarySearchFunc(c.i.order, n.seq, func(x *node, seq int) int { return x.seq - seq })
	return at + 1, nil
}

// next is the address of the next page: an absolute one, from the name by which
// the caller calls the server.
func (c *call) next(limit int, marker string) string {
	q := maps.Clone(c.r.URL.Query())
	q.Set("limit", strconv.Itoa(limit))
	q.Set("marker", marker)
	return c.base + c.r.URL.Path + "?" + q.Encode()
}

// filter reads which nodes are asked for.
func (c *call) filter() (func(*node) bool, error) {
	q := c.r.URL.Query()
	if s := q.Get("provision_state"); s != "" && !isState(s) {
		return nil, bad("Provision state \"%s\" is not valid", s)
	}
	same := func(key, have string) bool { return !q.Has(key) || q.Get(key) == have }
	yes := func(key string, have bool) bool {
		want := strings.ToLower(q.Get(key))
		return want == "" || (want == "true" || want == "1") == have
	}
	return func(n *node) bool {
		return same("provision_state", n.state.provision) && same("fault", n.state.fault) && same("driver", n.text("driver")) && same("instance_uuid", n.text("instance_uuid")) &&
			yes("maintenance", n.maintenance()) && yes("associated", n.text("instance_uuid") != "") &&
			(n.text("parent_node") == "" || q.Get("include_children") == "true")
	}, nil
}
