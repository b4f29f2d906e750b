package bmcsim

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
)

const (
	root    = "/redfish/v1"
	maxBody = 1 << 20 // bytes of a request that are read
)

// call is one request on its way through the service.
type call struct {
	sim   *Sim
	host  *Host // whose resource it is; nil for what belongs to the whole service
	alone bool  // asked at the address of one BMC
	path  string
	ids   []string // in the path, in order
	key   loginKey // the caller's credentials
	known bool     // whether there are any
	r     *http.Request
	did   *Command

	login     login  // of a request for a session
	malformed answer // to a request for a session that cannot be read
}

// id gives the nth id of the path.
func (c *call) id(n int) string { return c.ids[n] }

// at makes a path below /redfish/v1, in the host's style.
func (c *call) at(parts ...string) string {
	p := strings.TrimRight(root+"/"+strings.Join(parts, "/"), "/")
	if c.host != nil && c.host.shape.slash {
		p += "/"
	}
	return p
}

func (c *call) link(parts ...string) link { return link{c.at(parts...)} }

// The ids under which the host's resources are shown here.

func (c *call) systemID() string  { return c.pick(c.host.shape.systemID) }
func (c *call) managerID() string { return c.pick(c.host.shape.managerID) }
func (c *call) chassisID() string { return c.pick(c.host.shape.chassisID) }

func (c *call) pick(own string) string {
	if c.alone {
		return own
	}
	return c.host.uuid
}

func (c *call) system(parts ...string) string {
	return c.at(append([]string{"Systems", c.systemID()}, parts...)...)
}

func (c *call) chassis(parts ...string) string {
	return c.at(append([]string{"Chassis", c.chassisID()}, parts...)...)
}

// resource begins the body of a resource at the call's own path.
func (c *call) resource(typ, id, name string) obj {
	return obj{"@odata.id": c.at(strings.Split(c.path, "/")...), "@odata.type": "#" + typ, "Id": id, "Name": name}
}

// collection is the body of a collection of the given members, by their ids.
func (c *call) collection(typ, name string, ids ...string) answer {
	base := strings.Split(c.path, "/")
	members := make([]link, 0, len(ids))
	for _, id := range ids {
		members = append(members, c.link(append(base[:len(base):len(base)], id)...))
	}
	return ok(obj{
		"@odata.id": c.at(base...), "@odata.type": "#" + typ + "Collection." + typ + "Collection", "Name": name,
		"Members@odata.count": len(members), "Members": members,
	})
}

// body decodes the request's body. What is no JSON object is refused.
func (c *call) body(into any) (answer, bool) {
	b, err := io.ReadAll(io.LimitReader(c.r.Body, maxBody))
	if err == nil && len(strings.TrimSpace(string(b))) == 0 {
		return answer{}, true
	}
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "MalformedJSON", "The request body submitted was malformed JSON and could not be parsed by the receiving service."), false
	}
	return answer{}, true
}

// note puts the request into the host's command log; its status follows when the
// answer is known.
func (c *call) note(action string, args map[string]string) {
	c.did = &Command{Time: c.sim.cfg.Now(), Method: c.r.Method, Path: root + "/" + c.path, Action: action, Args: maps.Clone(args)}
}

// log ends what note began.
func (c *call) log(status int) {
	if c.did == nil || c.host == nil {
		return
	}
	c.did.Status = status
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	c.host.ledger.add(*c.did)
	c.host.touch()
}

func enabled() obj { return obj{"State": "Enabled", "Health": "OK"} }
