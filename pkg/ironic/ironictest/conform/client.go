package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

type obj = map[string]any

// session is one case at work in a lab.
type session struct {
	testing.TB
	Lab
	version string
	base    string // of this case's node names
}

// since tells whether the release is this one or a later one.
func (c *session) since(r ironictest.Release) bool { return c.Release >= r }

// reply is an answer.
type reply struct {
	status int
	header http.Header
	body   any
}

func (r reply) obj() obj {
	o, _ := r.body.(obj)
	return o
}

// text is what an error says.
func (r reply) text() string {
	message, _ := r.obj()["error_message"].(string)
	var inner struct {
		Fault string `json:"faultstring"`
		Plain string `json:"description"`
	}
	if json.Unmarshal([]byte(message), &inner) != nil {
		return message
	}
	return inner.Fault + inner.Plain
}

// ask sends a request.
func (c *session) ask(method, path string, body any) reply {
	c.Helper()
	return c.askWith(http.Header{"X-Openstack-Ironic-Api-Version": {c.version}}, method, path, body)
}

func (c *session) askWith(header http.Header, method, path string, body any) reply {
	c.Helper()
	var content []byte
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			c.Fatal(err)
		}
		content = b
	}
	req, err := http.NewRequestWithContext(c.Context(), method, c.URL+path, bytes.NewReader(content))
	if err != nil {
		c.Fatal(err)
	}
	req.Header = header.Clone()
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.Fatal(err)
	}
	defer resp.Body.Close()
	r := reply{status: resp.StatusCode, header: resp.Header}
	if err := json.NewDecoder(resp.Body).Decode(&r.body); err != nil {
		r.body = nil // an answer without a body
	}
	return r
}

// want asks, and fails the case if the answer has another status.
func (c *session) want(status int, method, path string, body any) obj {
	c.Helper()
	r := c.ask(method, path, body)
	if r.status != status {
		c.Fatalf("%s %s %v: %d %v, want %d", method, path, body, r.status, r.body, status)
	}
	return r.obj()
}

// refused asks for what has to be refused, with these words.
func (c *session) refused(status int, words, method, path string, body any) {
	c.Helper()
	r := c.ask(method, path, body)
	if r.status != status || !strings.Contains(r.text(), words) {
		c.Errorf("%s %s %v: %d %q, want %d with %q", method, path, body, r.status, r.text(), status, words)
	}
}

// node makes a node for a machine.
func (c *session) create(m Machine, name string, more obj) string {
	c.Helper()
	a := m.Access()
	info := obj{"deploy_iso": c.Files + AgentISO}
	maps.Copy(info, a.Info)
	body := obj{
		"name": c.base + name, "driver": "redfish", "driver_info": info, "boot_interface": "redfish-virtual-media", "raid_interface": "no-raid",
		"properties": obj{"capabilities": "boot_mode:uefi", "cpu_arch": "x86_64"},
	}
	maps.Copy(body, more)
	u, _ := c.want(http.StatusCreated, http.MethodPost, "/v1/nodes", body)["uuid"].(string)
	c.Cleanup(func() { c.forget(u) })
	c.want(http.StatusCreated, http.MethodPost, "/v1/ports", obj{"node_uuid": u, "address": a.MACs[0]})
	return u
}

// forget removes a node that a case has left behind: two nodes on one machine would
// fight over its power.
func (c *session) forget(u string) {
	over := session{TB: detached{c.TB}, Lab: c.Lab, version: c.version}
	over.unlocked(http.MethodPut, "/v1/nodes/"+u+"/maintenance", obj{"reason": "the test is over"})
	over.eventually(func() bool { return over.ask(http.MethodDelete, "/v1/nodes/"+u, nil).status != http.StatusConflict })
}

// eventually tries until it works or the lab's patience is at its end, and tells
// whether it worked.
func (c *session) eventually(try func() bool) bool {
	end := time.After(c.Patience)
	tick := time.NewTicker(c.Poll)
	defer tick.Stop()
	for !try() {
		select {
		case <-end:
			return false
		case <-tick.C:
		}
	}
	return true
}

// unlocked asks until the answer is something else than that the node is locked,
// which it may be for a moment after it has got where it should.
func (c *session) unlocked(method, path string, body any) reply {
	c.Helper()
	var r reply
	c.eventually(func() bool {
		r = c.ask(method, path, body)
		return r.status != http.StatusConflict || !strings.Contains(r.text(), "locked")
	})
	return r
}

// managed makes a node that is manageable.
func (c *session) managed(m Machine, name string, more obj) string {
	c.Helper()
	u := c.create(m, name, more)
	c.verb(u, "manage", nil)
	c.until(u, "manageable")
	return u
}

// provided makes a node that is available, without cleaning.
func (c *session) provided(m Machine, name string) string {
	c.Helper()
	u := c.managed(m, name, nil)
	c.patch(u, "/automated_clean", false)
	c.verb(u, "provide", nil)
	c.until(u, "available")
	return u
}

// deployed makes a node that is active.
func (c *session) deployed(m Machine, name string) string {
	c.Helper()
	u := c.provided(m, name)
	c.image(u, DiskSum)
	c.verb(u, "active", nil)
	c.until(u, "active")
	return u
}

func (c *session) image(u, sum string) {
	c.Helper()
	c.patch(u, "/instance_info/image_source", c.Files+DiskImage, "/instance_info/image_disk_format", "raw",
		"/instance_info/image_os_hash_algo", "sha256", "/instance_info/image_os_hash_value", c.Files+sum)
}

// verb gives a verb, which has to be taken.
func (c *session) verb(u, target string, more obj) {
	c.Helper()
	body := obj{"target": target}
	maps.Copy(body, more)
	if r := c.unlocked(http.MethodPut, "/v1/nodes/"+u+"/states/provision", body); r.status != http.StatusAccepted {
		c.Fatalf("%s: %d %s", target, r.status, r.text())
	}
}

// denied gives a verb that has to be refused.
func (c *session) denied(status int, words, u, target string, more obj) {
	c.Helper()
	body := obj{"target": target}
	maps.Copy(body, more)
	if r := c.unlocked(http.MethodPut, "/v1/nodes/"+u+"/states/provision", body); r.status != status || !strings.Contains(r.text(), words) {
		c.Errorf("%s: %d %q, want %d with %q", target, r.status, r.text(), status, words)
	}
}

// patch sets paths to values.
func (c *session) patch(u string, pairs ...any) obj {
	c.Helper()
	r := c.unlocked(http.MethodPatch, "/v1/nodes/"+u, changes(pairs...))
	if r.status != http.StatusOK {
		c.Fatalf("patch %v: %d %s", pairs, r.status, r.text())
	}
	return r.obj()
}

func changes(pairs ...any) []obj {
	var ops []obj
	for pair := range slices.Chunk(pairs, 2) {
		ops = append(ops, obj{"op": "add", "path": fmt.Sprint(pair[0]), "value": pair[1]})
	}
	return ops
}

func (c *session) get(u string) obj {
	c.Helper()
	return c.want(http.StatusOK, http.MethodGet, "/v1/nodes/"+u, nil)
}

// until waits for one of these states with the node unlocked, fails the case when it
// gets stuck or into another state of failure, and gives the node.
func (c *session) until(u string, states ...string) obj {
	c.Helper()
	n := c.when(u, "be "+strings.Join(states, " or "), func(n obj) bool {
		state, _ := n["provision_state"].(string)
		return n["reservation"] == nil && (slices.Contains(states, state) || strings.HasSuffix(state, "failed"))
	})
	if state, _ := n["provision_state"].(string); !slices.Contains(states, state) {
		c.Fatalf("the node is %s, want %v; last error %v, history %v", state, states, n["last_error"], c.history(u))
	}
	return n
}

// when waits until the node is as it should be.
func (c *session) when(u, what string, is func(obj) bool) obj {
	c.Helper()
	var n obj
	if !c.eventually(func() bool { n = c.get(u); return is(n) }) {
		c.Fatalf("the node did not %s in %s: state %v, target %v, power %v, maintenance %v, fault %v, reservation %v, last error %v, history %v",
			what, c.Patience, n["provision_state"], n["target_provision_state"], n["power_state"], n["maintenance"], n["fault"], n["reservation"], n["last_error"], c.history(u))
	}
	return n
}

// history are the texts of a node's history, the newest last.
func (c *session) history(u string) []string {
	c.Helper()
	rows, _ := c.want(http.StatusOK, http.MethodGet, "/v1/nodes/"+u+"/history?detail=true", nil)["history"].([]any)
	var texts []string
	for _, x := range rows {
		row, _ := x.(obj)
		text, _ := row["event"].(string)
		texts = append(texts, text)
	}
	return texts
}

// said fails the case unless the node's history says these words. The last error
// would do as well, but newer releases clear it at any moment.
func (c *session) said(u, words string) {
	c.Helper()
	last, _ := c.get(u)["last_error"].(string)
	all := c.history(u)
	if !strings.Contains(last, words) && !slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, words) }) {
		c.Errorf("nothing says %q: last error %q, history %q", words, last, all)
	}
}

// fields fails the case unless the node has these fields.
func (c *session) fields(n, want obj) {
	c.Helper()
	for k, v := range want {
		if fmt.Sprint(n[k]) != fmt.Sprint(v) {
			c.Errorf("%s is %v, want %v", k, n[k], v)
		}
	}
}

// maintained puts a node into maintenance, unmaintained takes it out.
func (c *session) maintained(u, reason string) {
	c.Helper()
	if r := c.unlocked(http.MethodPut, "/v1/nodes/"+u+"/maintenance", obj{"reason": reason}); r.status != http.StatusAccepted {
		c.Fatalf("maintenance: %d %s", r.status, r.text())
	}
}

func (c *session) unmaintained(u string) {
	c.Helper()
	if r := c.unlocked(http.MethodDelete, "/v1/nodes/"+u+"/maintenance", nil); r.status != http.StatusAccepted {
		c.Fatalf("out of maintenance: %d %s", r.status, r.text())
	}
}

// remove deletes a node.
func (c *session) remove(u string) {
	c.Helper()
	if r := c.unlocked(http.MethodDelete, "/v1/nodes/"+u, nil); r.status != http.StatusNoContent {
		c.Fatalf("delete: %d %s", r.status, r.text())
	}
}

// detached is a test whose context does not end with it, for cleaning up.
type detached struct{ testing.TB }

func (d detached) Context() context.Context { return context.WithoutCancel(d.TB.Context()) }
