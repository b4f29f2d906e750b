package ironictest

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// port is Ironic's record of a network card.
type port struct {
	uuid    string
	seq     int
	node    *node
	address string
	name    string
	pxe     bool
	extra   obj
	link    obj
	network string
	created any
}

func (p *port) show(base string) obj {
	return obj{
		"uuid": p.uuid, "node_uuid": p.node.uuid, "address": p.address, "pxe_enabled": p.pxe, "name": orNull(p.name), "extra": orEmpty(p.extra), "internal_info": obj{}, "is_smartnic": false,
		"local_link_connection": orEmpty(p.link), "physical_network": orNull(p.network), "portgroup_uuid": nil, "created_at": p.created, "updated_at": nil, "links": links(base, "ports", p.uuid),
	}
}

// macOf writes an address as ports have it.
func macOf(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", ":") }

func postPort(c *call) (answer, error) {
	var in struct {
		UUID            string `json:"uuid"`
		Node            string `json:"node_uuid"`
		Address         string `json:"address"`
		Name            string `json:"name"`
		PXE             *bool  `json:"pxe_enabled"`
		Extra           obj    `json:"extra"`
		Link            obj    `json:"local_link_connection"`
		PhysicalNetwork string `json:"physical_network"`
	}
	if err := c.json(&in); err != nil {
		return nothing(err)
	}
	n := c.i.nodes[in.Node]
	switch {
	case in.Node == "":
		return nothing(bad("Schema error for port: 'node_uuid' is a required property"))
	case !isUUIDText(in.Node):
		return nothing(bad("Expected UUID for node_uuid: %s", in.Node))
	case !macForm.MatchString(in.Address):
		return nothing(bad("Expected valid MAC address for address: %s", in.Address))
	case n == nil:
		return nothing(bad("Node %s could not be found.", in.Node))
	case c.i.ports[macOf(in.Address)] != nil:
		return nothing(conflict("A port with MAC address %s already exists.", macOf(in.Address)))
	}
	p := c.i.addPort(n, macOf(in.Address), in.PXE == nil || *in.PXE)
	p.name, p.extra, p.link, p.network = in.Name, in.Extra, in.Link, in.PhysicalNetwork
	if in.UUID != "" {
		p.uuid = in.UUID
	}
	return created(p.show(c.base))
}

// addPort makes a port. The caller holds i.mu and knows that the address is free.
func (i *Ironic) addPort(n *node, address string, pxe bool) *port {
	i.portSeq++
	p := &port{uuid: i.newUUID(), seq: i.portSeq, node: n, address: address, pxe: pxe, created: stamp(i.cfg.Now())}
	i.ports[address] = p
	n.ports = append(n.ports, p)
	return p
}

// portsOf are the ports of a node, or all, in the order of their making.
func (i *Ironic) portsOf(n *node) []*port {
	if n != nil {
		return n.ports
	}
	return slices.SortedFunc(maps.Values(i.ports), func(a, b *port) int { return a.seq - b.seq })
}

func getPorts(c *call) (answer, error) {
	q := c.r.URL.Query()
	var n *node
	if ident := q.Get("node_uuid") + q.Get("node") + c.r.PathValue("node"); ident != "" {
		if n = c.i.find(ident); n == nil {
			return nothing(noNode(ident))
		}
	}
	all := []*port{}
	switch address := q.Get("address"); {
	case address == "":
		all = c.i.portsOf(n)
	case !macForm.MatchString(address):
		return nothing(bad("Expected valid MAC address for address: %s", address))
	default:
		if p := c.i.ports[macOf(address)]; p != nil && (n == nil || p.node == n) {
			all = append(all, p)
		}
	}
	return c.portPage(all)
}

// portPage answers one page of these ports.
func (c *call) portPage(all []*port) (answer, error) {
	q := c.r.URL.Query()
	limit, err := c.limit()
	if err != nil {
		return nothing(err)
	}
	if marker := q.Get("marker"); marker != "" {
		at := slices.IndexFunc(all, func(p *port) bool { return p.uuid == marker })
		if at < 0 {
			return nothing(refuse(http.StatusNotFound, "Port %s could not be found.", marker))
		}
		all = all[at+1:]
	}
	fields := []string{"uuid", "address"}
	detail := strings.HasSuffix(c.r.URL.Path, "/detail") || q.Get("detail") == "true"
	if f := q.Get("fields"); f != "" {
		fields = strings.Split(f, ",")
	}
	rows := []any{}
	for _, p := range all[:min(limit, len(all))] {
		full := p.show(c.base)
		if detail {
			rows = append(rows, full)
			continue
		}
		row := obj{"links": full["links"]}
		for _, f := range fields {
			v, known := full[f]
			if !known {
				return nothing(refuse(http.StatusInternalServerError, "type object 'Port' has no attribute '%s'", f))
			}
			row[f] = v
		}
		rows = append(rows, row)
	}
	page := obj{"ports": rows}
	if len(all) > limit {
		q.Set("limit", strconv.Itoa(limit))
		q.Set("marker", all[limit-1].uuid)
		page["next"] = c.base + c.r.URL.Path + "?" + q.Encode()
	}
	return ok(page)
}

// port finds the port that the path names, by UUID or address.
func (c *call) port() (*port, error) {
	ident := c.r.PathValue("port")
	if p := c.i.ports[macOf(ident)]; p != nil {
		return p, nil
	}
	for _, p := range c.i.ports {
		if p.uuid == ident {
			return p, nil
		}
	}
	return nil, refuse(http.StatusNotFound, "Port %s could not be found.", ident)
}

func getPort(c *call) (answer, error) {
	p, err := c.port()
	if err != nil {
		return nothing(err)
	}
	return ok(p.show(c.base))
}

// patchPort changes whether the machine boots from the card, its name and extra.
func patchPort(c *call) (answer, error) {
	p, err := c.port()
	if err != nil {
		return nothing(err)
	}
	var changes []change
	if err := c.json(&changes); err != nil {
		return nothing(err)
	}
	if p.node.state.reservation != "" {
		return nothing(locked(p.node))
	}
	doc := obj{"pxe_enabled": p.pxe, "name": orNull(p.name), "extra": orEmpty(p.extra), "local_link_connection": orEmpty(p.link)}
	for _, x := range changes {
		parts := strings.Split(strings.TrimPrefix(x.Path, "/"), "/")
		if _, known := doc[parts[0]]; !known {
			return nothing(bad("Cannot patch %s. Only the following can be updated: extra, local_link_connection, name, pxe_enabled", x.Path))
		}
		if err := x.apply(doc, parts); err != nil {
			return nothing(err)
		}
	}
	p.pxe, _ = doc["pxe_enabled"].(bool)
	p.name, _ = doc["name"].(string)
	p.extra, _ = doc["extra"].(obj)
	p.link, _ = doc["local_link_connection"].(obj)
	return ok(p.show(c.base))
}

func deletePort(c *call) (answer, error) {
	p, err := c.port()
	if err != nil {
		return nothing(err)
	}
	if p.node.state.reservation != "" {
		return nothing(locked(p.node))
	}
	delete(c.i.ports, p.address)
	p.node.ports = slices.DeleteFunc(slices.Clone(p.node.ports), func(x *port) bool { return x == p })
	return done(http.StatusNoContent)
}
