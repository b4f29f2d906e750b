package ironictest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// change is one operation of a JSON patch.
type change struct {
	Op, Path string
	Value    any

	valued bool // a value was given, null perhaps
}

// UnmarshalJSON reads an operation and whether it has a value.
func (x *change) UnmarshalJSON(b []byte) error {
	var all obj
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	x.Op, _ = all["op"].(string)
	x.Path, _ = all["path"].(string)
	x.Value, x.valued = all["value"]
	return nil
}

// text shows the operation as Python would.
func (x change) text() string {
	b, err := json.Marshal(x.Value)
	if err != nil {
		panic(err) // it came as JSON
	}
	if x.Op == "remove" {
		return fmt.Sprintf("{'op': '%s', 'path': '%s'}", x.Op, x.Path)
	}
	return fmt.Sprintf("{'op': '%s', 'path': '%s', 'value': %s}", x.Op, x.Path, strings.ReplaceAll(string(b), `"`, "'"))
}

func (x change) fails(format string, args ...any) error {
	return bad("Couldn't apply patch '%s'. Reason: %s", x.text(), fmt.Sprintf(format, args...))
}

// json reads the body.
func (c *call) json(into any) error {
	if err := json.Unmarshal(c.body, into); err != nil {
		return bad("Invalid input for field/attribute body: %v", err)
	}
	return nil
}

// patchNode changes settings of a node.
func patchNode(c *call) (answer, error) {
	n, err := c.node()
	if err != nil {
		return nothing(err)
	}
	var changes []change
	if err := c.json(&changes); err != nil {
		return nothing(err)
	}
	if err := c.patchable(changes); err != nil {
		return nothing(err)
	}
	if err := c.mayChange(n, changes); err != nil {
		return nothing(err)
	}
	wanted, err := c.patched(n.settings, changes)
	if err != nil {
		return nothing(err)
	}
	if err := c.mayBecome(n, wanted); err != nil {
		return nothing(err)
	}
	c.becomes(n, wanted)
	return ok(c.i.looks.all(n, c.minor, c.base))
}

// patchable checks the operations themselves.
func (c *call) patchable(changes []change) error {
	for _, x := range changes {
		if !slices.Contains([]string{"add", "replace", "remove"}, x.Op) {
			return bad("Schema error for patch: '%s' is not one of ['add', 'replace', 'remove']", x.Op)
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(x.Path, "/"), "/")
		s, known := findSetting(name)
		if !known || s.postOnly || s.since > c.i.cfg.Release.newest() {
			return bad("Cannot patch %s. Only the following can be updated: %s", x.Path, strings.Join(c.i.cfg.Release.patchables(), ", "))
		}
		if s.since > c.minor {
			return notAcceptable()
		}
		if name == "automated_clean" && !x.valued { // a mistake of Ironic's own
			return refuse(http.StatusInternalServerError, "'value'")
		}
	}
	return nil
}

func (r Release) patchables() []string {
	var names []string
	for _, s := range settings() {
		if !s.postOnly && s.since <= r.newest() {
			names = append(names, s.name)
		}
	}
	return names
}

// mayChange tells whether the node may be changed where it is.
func (c *call) mayChange(n *node, changes []change) error {
	freed := n.maintenance() && len(changes) == 1 && changes[0].Op == "remove" && changes[0].Path == "/instance_uuid"
	switch {
	case freed:
	case n.state.target != "" && !slices.Contains(updatable(), n.state.provision):
		return conflict("Node %s can not be updated while a state transition is in progress.", c.r.PathValue("node"))
	case n.state.provision == inspecting:
		return conflict("Cannot update node \"%s\" while it is in state \"%s\".", n.uuid, inspecting)
	}
	if n.state.reservation != "" {
		return locked(n)
	}
	return nil
}

// patched applies operations to settings, without touching them.
func (c *call) patched(old obj, changes []change) (obj, error) {
	doc := maps.Clone(old)
	for _, x := range changes {
		parts := strings.Split(strings.TrimPrefix(x.Path, "/"), "/")
		for k, p := range parts {
			parts[k] = strings.NewReplacer("~1", "/", "~0", "~").Replace(p)
		}
		if err := x.apply(doc, parts); err != nil {
			return nil, err
		}
	}
	for name, v := range doc {
		s, _ := findSetting(name)
		accepted, err := s.accept(v)
		if err != nil {
			return nil, err
		}
		doc[name] = accepted
	}
	if doc["driver"] == nil {
		return nil, bad("Schema error for patch: 'driver' is a required property")
	}
	if name, _ := doc["name"].(string); doc["name"] != nil && !nameForm.MatchString(name) {
		return nil, bad("Node %s: Cannot change name to invalid name '%s'", c.r.PathValue("node"), name)
	}
	return doc, c.i.cfg.Release.equip(doc)
}

// apply carries out one operation within o, which it may change; what is below is
// copied.
func (x change) apply(o obj, parts []string) error {
	key := parts[0]
	old, there := o[key]
	if len(parts) > 1 {
		inner, isObj := old.(obj)
		if !isObj {
			return x.fails("member '%s' not found in %v", key, slices.Sorted(maps.Keys(o)))
		}
		inner = maps.Clone(inner)
		o[key] = inner
		return x.apply(inner, parts[1:])
	}
	switch {
	case x.Op == "replace" && !there:
		return x.fails("can't replace a non-existent object '%s'", key)
	case x.Op == "remove" && !there:
		return x.fails("can't remove a non-existent object '%s'", key)
	case x.Op != "remove":
		o[key] = x.Value
	default:
		delete(o, key)
		if s, isSetting := findSetting(key); isSetting && "/"+key == x.Path {
			o[key] = s.preset
		}
	}
	return nil
}

// mayBecome tells whether the node may get these settings.
func (c *call) mayBecome(n *node, wanted obj) error {
	free := []string{enroll, inspecting, inspectWait, manageable, available}
	for _, s := range settings() {
		if s.kind != isInterface || wanted[s.name] == n.settings[s.name] || n.maintenance() || slices.Contains(free, n.state.provision) {
			continue
		}
		return conflict("Node %s can not have %s updated unless it is in one of allowed (%s) states or in maintenance mode. Current state is '%s'.",
			n.uuid, s.name, strings.Join(free, ", "), n.state.provision)
	}
	name, _ := wanted["name"].(string)
	instance, _ := wanted["instance_uuid"].(string)
	if had := n.text("instance_uuid"); had != "" && instance != "" && had != instance {
		return conflict("Node %s is associated with instance %s.", n.uuid, had)
	}
	if wanted["protected"] == true && !n.flag("protected") && !slices.Contains([]string{active, rescued}, n.state.provision) {
		return conflict("Node %s can not have protected updated unless it is in one of allowed (active, rescue) states. Current state is '%s'.", n.uuid, n.state.provision)
	}
	return c.i.free(n, n.uuid, name, instance)
}

// becomes gives the node its new settings.
func (c *call) becomes(n *node, wanted obj) {
	c.i.unname(n)
	if n.maintenance() && wanted["maintenance"] == false {
		n.state.maintenanceReason, n.state.fault = "", ""
	}
	n.settings = wanted
	n.state.updated = c.i.cfg.Now()
	c.i.name(n)
	if c.i.cfg.HidesPatched {
		n.put("parent_node", n.uuid)
	}
}

// putMaintenance puts a node into maintenance.
func putMaintenance(c *call) (answer, error) {
	n, err := c.unlocked()
	if err != nil {
		return nothing(err)
	}
	body, err := c.read("reason")
	if err != nil {
		return nothing(err)
	}
	reason, _ := body["reason"].(string)
	n.setMaintenance(true, reason, n.state.fault)
	return done(http.StatusAccepted)
}

// deleteMaintenance takes a node out of maintenance, which clears its fault.
func deleteMaintenance(c *call) (answer, error) {
	n, err := c.unlocked()
	if err != nil {
		return nothing(err)
	}
	n.setMaintenance(false, "", "")
	return done(http.StatusAccepted)
}
