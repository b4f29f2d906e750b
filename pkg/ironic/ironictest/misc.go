package ironictest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Minors of the API that brought something.
const (
	minorInventory   = 81
	minorFirmware    = 86
	minorService     = 87
	minorAttach      = 89
	minorGetMedia    = 93
	minorDeployAbort = 110
)

// event is an entry of a node's history.
type event struct {
	uuid, kind, severity, text string
	at                         any
}

// maxHistory bounds the history of a node.
const maxHistory = 300

// record writes into a node's history. The caller holds i.mu.
func (i *Ironic) record(n *node, kind, severity, text string) {
	n.history = append(n.history, event{uuid: i.newUUID(), kind: kind, severity: severity, text: text, at: stamp(i.cfg.Now())})
	if len(n.history) > maxHistory {
		n.history = slices.Delete(n.history, 0, 1)
	}
}

func (e event) show(base, node string, detail bool) obj {
	o := obj{"uuid": e.uuid, "created_at": e.at, "severity": e.severity, "event": e.text, "links": links(base, "nodes", node+"/history/"+e.uuid)}
	if detail {
		o["event_type"], o["conductor"], o["user"] = e.kind, conductor, nil
	}
	return o
}

func getHistory(c *call) (answer, error) {
	n, err := c.node()
	if err != nil {
		return nothing(err)
	}
	rows := []any{}
	for _, e := range n.history {
		rows = append(rows, e.show(c.base, n.uuid, c.r.URL.Query().Get("detail") == "true"))
	}
	return ok(obj{"history": rows})
}

func getVersions(c *call) (answer, error) {
	v := c.version()
	return ok(obj{"name": "OpenStack Ironic API", "description": "A fake Ironic.", "default_version": v, "versions": []any{v}})
}

func (c *call) version() obj {
	return obj{
		"id": "v1", "links": []any{obj{"href": c.base + "/v1/", "rel": "self"}}, "status": "CURRENT", "min_version": "1.1",
		"version": fmt.Sprintf("1.%d", c.i.cfg.NewestMinor),
	}
}

func getV1(c *call) (answer, error) {
	body := obj{"id": "v1", "links": links(c.base, "", ""), "version": c.version(), "media_types": obj{"base": "application/json", "type": "application/vnd.openstack.ironic.v1+json"}}
	for _, kind := range []string{"nodes", "ports", "drivers", "chassis"} {
		body[kind] = links(c.base, kind, "")
	}
	return ok(body)
}

func getDrivers(c *call) (answer, error) {
	var rows []any
	for _, h := range c.i.cfg.Release.drivers() {
		row := obj{"name": h.name, "hosts": []any{conductor}, "type": "dynamic", "links": links(c.base, "drivers", h.name), "properties": links(c.base, "drivers", h.name+"/properties")}
		if c.r.URL.Query().Get("detail") == "true" {
			for kind, all := range h.interfaces {
				row["default_"+kind+"_interface"], row["enabled_"+kind+"_interfaces"] = all[0], all
			}
		}
		rows = append(rows, row)
	}
	return ok(obj{"drivers": rows})
}

func getConductors(c *call) (answer, error) {
	return ok(obj{"conductors": []any{obj{"hostname": conductor, "conductor_group": "", "alive": true, "links": links(c.base, "conductors", conductor)}}})
}

// getValidate tells what each interface would say of the node.
func getValidate(c *call) (answer, error) {
	n, err := c.node()
	if err != nil {
		return nothing(err)
	}
	out := obj{}
	for _, kind := range []string{"bios", "boot", "console", "deploy", "firmware", "inspect", "management", "network", "power", "raid", "rescue", "storage"} {
		chosen := n.text(kind + "_interface")
		if chosen == "" && kind == "firmware" {
			continue
		}
		out[kind] = obj{"result": true}
		if strings.HasPrefix(chosen, "no-") {
			out[kind] = obj{"result": false, "reason": fmt.Sprintf("Driver %s does not support %s (disabled or not implemented).", n.text("driver"), kind)}
		}
	}
	if missing := n.missingImage(); missing != "" {
		out["deploy"] = obj{"result": false, "reason": fmt.Sprintf("Node %s failed to validate deploy image info. Some parameters were missing. Missing are: ['instance_info.%s']", n.uuid, missing)}
	}
	if b := bmcOf(n); b.missing != "" && (n.text("driver") == "redfish" || b.ipmi) {
		wrong := obj{"result": false, "reason": fmt.Sprintf("Missing the following %s properties in node %s driver_info: ['%s']", driverName(n.text("driver")), n.uuid, b.missing)}
		out["power"], out["management"], out["boot"] = wrong, wrong, wrong
	}
	return ok(out)
}

func getStates(c *call) (answer, error) {
	n, err := c.node()
	if err != nil {
		return nothing(err)
	}
	all := c.i.looks.some(n, []string{
		"console_enabled", "last_error", "power_state", "provision_state", "target_power_state", "target_provision_state", "provision_updated_at", "raid_config", "target_raid_config", "boot_mode", "secure_boot",
	}, c.base)
	delete(all, "links")
	return ok(all)
}

// noSub answers what is below a node and not known.
func noSub(c *call) (answer, error) {
	if _, err := c.node(); err != nil {
		return nothing(err)
	}
	return nothing(bad("Field %s is not a valid field.", c.r.PathValue("sub")))
}

// routes are all pages of the API.
func (i *Ironic) routes() map[string]handler {
	return map[string]handler{
		"GET /{$}": getVersions, "GET /v1": getV1, "GET /v1/drivers": getDrivers, "GET /v1/conductors": getConductors,
		"GET /v1/nodes": getNodes, "GET /v1/nodes/detail": getNodesDetail, "POST /v1/nodes": postNode,
		"GET /v1/nodes/{node}": getNode, "PATCH /v1/nodes/{node}": patchNode, "DELETE /v1/nodes/{node}": deleteNode,
		"PUT /v1/nodes/{node}/maintenance": putMaintenance, "DELETE /v1/nodes/{node}/maintenance": deleteMaintenance,
		"GET /v1/nodes/{node}/states": getStates, "PUT /v1/nodes/{node}/states/provision": putProvision, "PUT /v1/nodes/{node}/states/power": putPower, "PUT /v1/nodes/{node}/states/raid": putRAID,
		"GET /v1/nodes/{node}/validate": getValidate, "GET /v1/nodes/{node}/inventory": getInventory, "GET /v1/nodes/{node}/bios": getBIOS, "GET /v1/nodes/{node}/firmware": getFirmware,
		"GET /v1/nodes/{node}/history": getHistory, "GET /v1/nodes/{node}/ports": getPorts,
		"GET /v1/nodes/{node}/vmedia": getMedia, "POST /v1/nodes/{node}/vmedia": postMedia, "DELETE /v1/nodes/{node}/vmedia": deleteMedia,
		"GET /v1/nodes/{node}/management/boot_device": getBootDevice,
		"GET /v1/nodes/{node}/vendor_passthru":        passthru, "POST /v1/nodes/{node}/vendor_passthru": passthru, "DELETE /v1/nodes/{node}/vendor_passthru": passthru,
		"GET /v1/nodes/{node}/{sub}": noSub,
		"GET /v1/ports":              getPorts, "GET /v1/ports/detail": getPorts, "POST /v1/ports": postPort,
		"GET /v1/ports/{port}": getPort, "PATCH /v1/ports/{port}": patchPort, "DELETE /v1/ports/{port}": deletePort,
	}
}

// subscription is one of a BMC's event subscriptions.
type subscription struct {
	id      string
	body    obj
	headers any // as they were given; nobody is shown them
}

// passthru is what the redfish driver passes to the BMC as it is: event
// subscriptions.
func passthru(c *call) (answer, error) {
	n, err := c.unlocked()
	if err != nil {
		return nothing(err)
	}
	body := obj{}
	if len(c.body) > 0 {
		if err := c.json(&body); err != nil {
			return nothing(err)
		}
	}
	method := c.r.Method + " " + c.r.URL.Query().Get("method")
	if n.text("vendor_interface") != "redfish" {
		return nothing(bad("Driver %s does not support vendor (disabled or not implemented).", n.text("driver")))
	}
	b := bmcOf(n)
	m, err := c.i.cfg.Rack.reach(b)
	if err != nil {
		return nothing(refuse(http.StatusInternalServerError, "%s", err))
	}
	switch method {
	case "POST create_subscription":
		if body["Destination"] == nil {
			return nothing(bad("Validation of vendor passthru create_subscription failed: 'Destination' is a required property"))
		}
		return ok(m.subscribe(body))
	case "GET get_all_subscriptions":
		return ok(m.subscriptions())
	case "GET get_subscription", "DELETE delete_subscription":
		id, _ := body["id"].(string)
		found := m.subscription(id, c.r.Method == http.MethodDelete)
		if found == nil {
			return nothing(refuse(http.StatusNotFound, "Redfish exception occurred. Error: Resource %s/redfish/v1/EventService/Subscriptions/%s not found", b.address, id))
		}
		if c.r.Method == http.MethodDelete {
			return done(http.StatusOK)
		}
		return ok(found)
	}
	return nothing(bad("No handler for method %s", c.r.URL.Query().Get("method")))
}

func (m *Machine) subscribe(body obj) obj {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.subscribed++
	s := subscription{id: fmt.Sprint(m.subscribed), body: obj{"Destination": body["Destination"], "Context": body["Context"], "Protocol": "Redfish", "EventTypes": []any{"Alert"}}, headers: body["HttpHeaders"]}
	s.body["Id"] = s.id
	m.did(DidSubscribe, s.id)
	m.subs = append(m.subs, s)
	return s.body
}

// subscriptions is the collection as the BMC has it, which names its members only.
func (m *Machine) subscriptions() obj {
	m.mu.Lock()
	defer m.mu.Unlock()
	const path = "/redfish/v1/EventService/Subscriptions"
	members := []any{}
	for _, s := range m.subs {
		members = append(members, obj{"@odata.id": path + "/" + s.id})
	}
	return obj{"@odata.id": path, "Name": "Event Subscriptions Collection", "Members": members, "Members@odata.count": len(members)}
}

// Subscription is one to the BMC's events, with the headers that it was told to send.
type Subscription struct {
	Destination string
	Headers     any
}

// Subscriptions are the subscriptions to the BMC's events.
func (m *Machine) Subscriptions() []Subscription {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Subscription
	for _, s := range m.subs {
		destination, _ := s.body["Destination"].(string)
		all = append(all, Subscription{Destination: destination, Headers: s.headers})
	}
	return all
}

func (m *Machine) subscription(id string, remove bool) obj {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.IndexFunc(m.subs, func(s subscription) bool { return s.id == id })
	if at < 0 {
		return nil
	}
	found := m.subs[at].body
	if remove {
		m.did(DidSubscribe, id)
		m.subs = slices.Delete(m.subs, at, at+1)
	}
	return found
}
