package ironictest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

func TestFaultsBefallTheRequestsThatMatch(t *testing.T) {
	c := start(t, ironictest.Config{})
	u, _ := c.enrol("a")
	patches := func(method, _ string, _ []byte) bool { return method == http.MethodPatch }
	patch := func() int { code, _ := c.do(http.MethodPatch, "/v1/nodes/"+u, changes("/extra/a", 1)); return code }

	c.i.Inject(1, ironictest.Fault{Status: http.StatusServiceUnavailable, Text: "busy"}, patches)
	if first, second := patch(), patch(); first != http.StatusServiceUnavailable || second != http.StatusOK {
		t.Errorf("one fault: %d, then %d", first, second)
	}
	undo := c.i.Inject(-1, ironictest.Fault{Drop: true}, patches)
	if first, second := patch(), patch(); first != 0 || second != 0 {
		t.Errorf("dropped: %d, then %d", first, second)
	}
	undo()
	c.i.Inject(1, ironictest.Fault{Status: http.StatusInternalServerError, Late: true}, func(method, path string, body []byte) bool {
		return method == http.MethodPut && strings.HasSuffix(path, "/states/provision") && strings.Contains(string(body), "manage")
	})
	if code, _ := c.do(http.MethodPut, "/v1/nodes/"+u+"/states/provision", obj{"target": "manage"}); code != http.StatusInternalServerError {
		t.Errorf("the late fault: %d", code)
	}
	c.until(u, "manageable") // it was carried out
	c.i.Inject(1, ironictest.Fault{Raw: []byte("<html>")}, func(method, _ string, _ []byte) bool { return method == http.MethodGet })
	if code, body := c.do(http.MethodGet, "/v1/nodes/"+u, nil); code != http.StatusOK || body != nil {
		t.Errorf("garbage: %d %v", code, body)
	}
}

func TestChaosIsRepeatable(t *testing.T) {
	statuses := func(seed uint64) []int {
		c := start(t, ironictest.Config{Seed: seed})
		c.enrol("a")
		c.i.SetChaos(ironictest.Chaos{Error: 0.2, Unavailable: 0.2, Drop: 0.2, Empty: 0.1, Stale: 0.1})
		defer c.i.SetChaos(ironictest.Chaos{})
		var all []int
		for range 50 {
			code, _ := c.do(http.MethodGet, "/v1/nodes/ns~a", nil)
			all = append(all, code)
		}
		return all
	}
	one, again, other := statuses(1), statuses(1), statuses(2)
	if diff := cmp.Diff(one, again); diff != "" {
		t.Errorf("the same seed gave something else:\n%s", diff)
	}
	if slices.Equal(one, other) {
		t.Errorf("another seed gave the same: %v", one)
	}
	for _, status := range []int{0, http.StatusOK, http.StatusInternalServerError, http.StatusServiceUnavailable} {
		if !slices.Contains(one, status) {
			t.Errorf("chaos never answered %d: %v", status, one)
		}
	}
}

func TestStaleAnswersAreOlderOnes(t *testing.T) {
	c := start(t, ironictest.Config{})
	u, _ := c.enrol("a")
	c.i.SetChaos(ironictest.Chaos{Stale: 1})
	c.get(u)
	c.i.SetChaos(ironictest.Chaos{Stale: 1e-9}) // keeps old answers, gives none
	c.get(u)
	c.patch(u, "/extra/new", true)
	c.i.Inject(1, ironictest.Fault{Stale: true}, func(method, _ string, _ []byte) bool { return method == http.MethodGet })
	if extra, _ := c.get(u)["extra"].(obj); len(extra) != 0 {
		t.Errorf("the stale answer knows %v", extra)
	}
	if extra, _ := c.get(u)["extra"].(obj); len(extra) != 1 {
		t.Errorf("the answer after it knows %v", extra)
	}
}

func TestAStrandedNodeIsBusyForEver(t *testing.T) {
	c := start(t, ironictest.Config{Delays: ironictest.Delays{Boot: time.Hour}})
	u, m := c.enrol("a")
	c.verb(u, "manage")
	c.until(u, "manageable")
	if err := c.i.Strand(u); err != nil {
		t.Fatal(err)
	}
	c.verb(u, "provide")
	n := c.until(u, "cleaning")
	for k, want := range (obj{"last_error": nil, "maintenance": false, "target_provision_state": "available"}) {
		if n[k] != want {
			t.Errorf("%s is %v, want %v", k, n[k], want)
		}
	}
	if code, _ := c.do(http.MethodPut, "/v1/nodes/"+u+"/states/provision", obj{"target": "abort"}); code != http.StatusBadRequest {
		t.Errorf("abort: %d", code)
	}
	c.want(http.StatusAccepted, http.MethodPut, "/v1/nodes/"+u+"/maintenance", obj{})
	c.want(http.StatusNoContent, http.MethodDelete, "/v1/nodes/"+u, nil)
	if m.View().On {
		t.Errorf("the machine is %+v", m.View())
	}
	// and in the middle of something
	u = c.node(m)
	c.verb(u, "manage")
	c.until(u, "manageable")
	c.verb(u, "provide")
	c.until(u, "clean wait")
	if err := c.i.Strand(u); err != nil {
		t.Fatal(err)
	}
	if got := c.i.Nodes(); got["clean wait"] != 1 {
		t.Errorf("nodes: %v", got)
	}
}

func TestAStateCanBeForced(t *testing.T) {
	c := start(t, ironictest.Config{})
	u, _ := c.enrol("a")
	if err := c.i.Force(u, ironictest.State{Provision: "clean failed", Target: "available", LastError: "by hand", Maintenance: true, Fault: "clean failure", Power: "power on"}); err != nil {
		t.Fatal(err)
	}
	n := c.get(u)
	for k, want := range (obj{"provision_state": "clean failed", "target_provision_state": "available", "last_error": "by hand", "maintenance": true, "fault": "clean failure", "power_state": "power on"}) {
		if n[k] != want {
			t.Errorf("%s is %v, want %v", k, n[k], want)
		}
	}
	if err := c.i.Force("no-such", ironictest.State{}); err == nil {
		t.Errorf("a node that is not there was changed")
	}
}

func TestAPatchCanHideANode(t *testing.T) {
	c := start(t, ironictest.Config{Release: ironictest.Ironic29, HidesPatched: true})
	u, _ := c.enrol("a")
	rows := func() int {
		l, _ := c.want(http.StatusOK, http.MethodGet, "/v1/nodes", nil)["nodes"].([]any)
		return len(l)
	}
	if rows() != 1 {
		t.Fatalf("%d nodes before", rows())
	}
	c.patch(u, "/extra/a", 1)
	if rows() != 0 {
		t.Errorf("%d nodes after a patch", rows())
	}
	c.get(u) // by its UUID it is there
	if code, body := c.do(http.MethodPut, "/v1/nodes/"+u+"/states/power", obj{"target": "power off"}); code != http.StatusConflict {
		t.Errorf("power off: %d %v", code, body)
	}
}

func TestTheNewestVersionCanBeCapped(t *testing.T) {
	c := start(t, ironictest.Config{NewestMinor: 90})
	if n, _ := c.do(http.MethodGet, "/v1/nodes", nil); n != http.StatusOK {
		t.Errorf("latest: %d", n)
	}
	c.ver = "1.91"
	if n, _ := c.do(http.MethodGet, "/v1/nodes", nil); n != http.StatusNotAcceptable {
		t.Errorf("1.91: %d", n)
	}
	for _, cfg := range []ironictest.Config{{}, {Now: time.Now, Release: 30}, {Now: time.Now, NewestMinor: 999}} {
		if _, err := ironictest.New(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

func TestTheLogTellsWhatWasAsked(t *testing.T) {
	c := start(t, ironictest.Config{})
	u, _ := c.enrol("a")
	c.get(u)
	c.patch(u, "/extra/a", 1)
	want := map[string]int{"POST nodes": 1, "POST ports": 1, "GET nodes/{node}": 1, "PATCH nodes/{node}": 1}
	if diff := cmp.Diff(want, c.i.Counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	all := c.i.Requests()
	last := all[len(all)-1]
	if last.Method != http.MethodPatch || last.Path != "/v1/nodes/"+u || last.Status != http.StatusOK || last.Minor != 115 || !strings.Contains(string(last.Body), "/extra/a") {
		t.Errorf("the last request was %+v", last)
	}
}
