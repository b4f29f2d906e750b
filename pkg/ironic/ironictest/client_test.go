package ironictest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

type obj = map[string]any

// client speaks to an Ironic in plain HTTP.
type client struct {
	t    testing.TB
	i    *ironictest.Ironic
	url  string
	rack *ironictest.Rack
	ver  string
}

func start(tb testing.TB, cfg ironictest.Config) *client {
	tb.Helper()
	cfg.Now = time.Now
	i, url, stop, err := ironictest.Start(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(stop)
	return &client{t: tb, i: i, url: url, rack: i.Rack(), ver: "latest"}
}

// do sends a request and gives the status and the body, in which errors are
// unpacked.
func (c *client) do(method, path string, body any) (int, any) {
	c.t.Helper()
	var b []byte
	if body != nil {
		b, _ = json.Marshal(body)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, bytes.NewReader(b))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("X-OpenStack-Ironic-API-Version", c.ver)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	var out any
	_ = json.NewDecoder(resp.Body).Decode(&out)
	return resp.StatusCode, out
}

// want sends a request and fails the test if it is not answered with a status.
func (c *client) want(status int, method, path string, body any) obj {
	c.t.Helper()
	code, out := c.do(method, path, body)
	if code != status {
		c.t.Fatalf("%s %s: %d %v, want %d", method, path, code, out, status)
	}
	o, _ := out.(obj)
	return o
}

// enrol makes a machine, a node for it and a port.
func (c *client) enrol(name string) (string, *ironictest.Machine) {
	c.t.Helper()
	m, err := c.rack.Add(ironictest.Spec{Name: name})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.node(m), m
}

func (c *client) node(m *ironictest.Machine) string {
	c.t.Helper()
	s := m.Spec()
	n := c.want(http.StatusCreated, "POST", "/v1/nodes", obj{
		"name": "ns~" + s.Name, "driver": "redfish", "boot_interface": "redfish-virtual-media",
		"driver_info": obj{"redfish_address": s.Address, "redfish_username": s.Username, "redfish_password": s.Password, "deploy_iso": "http://images/agent.iso"},
	})
	u, _ := n["uuid"].(string)
	c.want(http.StatusCreated, "POST", "/v1/ports", obj{"node_uuid": u, "address": s.MACs[0]})
	return u
}

func (c *client) verb(u, target string, more ...obj) {
	c.t.Helper()
	body := obj{"target": target}
	for _, m := range more {
		maps.Copy(body, m)
	}
	c.want(http.StatusAccepted, "PUT", "/v1/nodes/"+u+"/states/provision", body)
}

func (c *client) get(u string) obj {
	c.t.Helper()
	return c.want(http.StatusOK, "GET", "/v1/nodes/"+u, nil)
}

// until waits for a state, without a lock on the node.
func (c *client) until(u, state string) obj {
	c.t.Helper()
	return c.when(u, "be "+state, func(n obj) bool { return n["provision_state"] == state && n["reservation"] == nil })
}

func (c *client) when(u, what string, is func(obj) bool) obj {
	c.t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		n := c.get(u)
		if is(n) {
			return n
		}
		select {
		case <-deadline:
			c.t.Fatalf("the node did not %s: %v %v, last error %v", what, n["provision_state"], n["reservation"], n["last_error"])
		case <-tick.C:
		}
	}
}

func (c *client) patch(u string, pairs ...any) {
	c.t.Helper()
	c.want(http.StatusOK, "PATCH", "/v1/nodes/"+u, changes(pairs...))
}

// changes makes a JSON patch of paths and values in turn.
func changes(pairs ...any) []obj {
	var ops []obj
	for k := 0; k < len(pairs); k += 2 {
		ops = append(ops, obj{"op": "add", "path": fmt.Sprint(pairs[k]), "value": pairs[k+1]})
	}
	return ops
}
