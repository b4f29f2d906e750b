package bmcsim_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

// crawl visits every resource that is linked from one, and gives how many.
func crawl(c *caller, from string) map[string]reply {
	c.t.Helper()
	seen := map[string]reply{}
	queue := []string{from}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		key := strings.TrimRight(path, "/")
		if _, done := seen[key]; done {
			continue
		}
		r := c.must(http.StatusOK, http.MethodGet, path, nil)
		seen[key] = r
		if got := strings.TrimRight(linkOf(r.body), "/"); got != key {
			c.t.Errorf("%s calls itself %s", path, got)
		}
		queue = append(queue, links(r.body)...)
	}
	return seen
}

func links(v any) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		if id := linkOf(v); id != "" {
			out = append(out, id)
		}
		for _, x := range v {
			out = append(out, links(x)...)
		}
	case []any:
		for _, x := range v {
			out = append(out, links(x)...)
		}
	}
	return out
}

func TestEveryLinkLeadsToAResource(t *testing.T) {
	for _, profile := range bmcsim.Profiles() {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			s := rack(t, bmcsim.Config{Hosts: 1, Profiles: []string{profile}})
			h := s.Hosts()[0]
			c := asOwner(t, s, h)
			shared := crawl(c, "/redfish/v1")
			c.handler = h.Handler()
			alone := crawl(c, "/redfish/v1")
			if len(shared) != len(alone) || len(shared) < 40 {
				t.Errorf("%d resources at the common address, %d at the host's own", len(shared), len(alone))
			}
			for path, r := range alone {
				if r.dig("Name") == nil || strings.Contains(path, h.ID()) {
					t.Errorf("%s: no Name, or the id of the common address: %v", path, r.body)
				}
			}
		})
	}
}

func TestCollectionsExpandWhereTheBMCCan(t *testing.T) {
	tests := map[string]struct {
		profile, path, query string
		status               int
		full                 bool
	}{
		"one level of links":               {bmcsim.Dell, "/Processors", ".", 200, true},
		"all, where all is offered":        {bmcsim.Dell, "/Processors", "*", 200, true},
		"all, where it is not":             {bmcsim.HPE, "/Processors", "*", 400, false},
		"levels within the limit":          {bmcsim.OpenBMC, "/Processors", ".($levels=2)", 200, true},
		"levels beyond the limit":          {bmcsim.Dell, "/Processors", ".($levels=2)", 400, false},
		"a BMC that ignores the question":  {bmcsim.Supermicro, "/Processors", ".", 200, false},
		"drives of a controller, expanded": {bmcsim.Dell, "/Storage/RAID.SL.3-1", ".", 200, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := rack(t, bmcsim.Config{Hosts: 1, Profiles: []string{tc.profile}})
			h := s.Hosts()[0]
			r := asOwner(t, s, h).must(tc.status, http.MethodGet, h.SystemPath()+tc.path+"?$expand="+tc.query, nil)
			members, _ := r.dig("Members").([]any)
			if drives, has := r.dig("Drives").([]any); has {
				members = drives
			}
			for _, m := range members {
				if x, _ := m.(map[string]any); (x["Id"] != nil) != tc.full {
					t.Errorf("member %v: expanded is not %v", m, tc.full)
				}
			}
			if tc.status == http.StatusOK && len(members) == 0 {
				t.Error("no members")
			}
		})
	}
}

func TestSessionsOpenOnlyTheBMCOfTheirCredentials(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := rack(t, bmcsim.Config{Hosts: 2, Now: func() time.Time { return now }, Profiles: []string{bmcsim.Supermicro}})
	a, b := s.Hosts()[0], s.Hosts()[1]
	user, pass := a.Credentials()
	c := &caller{t: t, handler: s.Handler()}
	c.must(http.StatusUnauthorized, http.MethodGet, a.SystemPath(), nil)
	c.must(http.StatusUnauthorized, http.MethodPost, "/redfish/v1/SessionService/Sessions", map[string]string{"UserName": user, "Password": "no"})
	login := func() string {
		r := c.must(http.StatusCreated, http.MethodPost, "/redfish/v1/SessionService/Sessions", map[string]string{"UserName": user, "Password": pass})
		c.token = r.header.Get("X-Auth-Token")
		return r.header.Get("Location")
	}
	login()
	c.must(http.StatusOK, http.MethodGet, a.SystemPath(), nil)
	c.must(http.StatusUnauthorized, http.MethodGet, b.SystemPath(), nil)
	c.must(http.StatusNotFound, http.MethodGet, "/redfish/v1/Systems/nobody", nil)
	members, _ := c.must(http.StatusOK, http.MethodGet, "/redfish/v1/Systems/", nil).dig("Members").([]any)
	if len(members) != 1 || linkOf(members[0]) != a.SystemPath() {
		t.Errorf("the session sees %v, want its own system", members)
	}

	now = now.Add(31 * time.Minute)
	c.must(http.StatusUnauthorized, http.MethodGet, a.SystemPath(), nil)
	c.token = ""
	where := login()
	c.must(http.StatusNoContent, http.MethodDelete, where, nil)
	c.must(http.StatusUnauthorized, http.MethodGet, a.SystemPath(), nil)
	c.token = ""
	login()
	a.SetCredentials(user, "another")
	c.must(http.StatusUnauthorized, http.MethodGet, a.SystemPath(), nil)
	if got := s.FailedLogins(); got != 1 {
		t.Errorf("failed logins: %d, want 1", got)
	}
}

func TestSharedCredentialsOpenAllTheirBMCs(t *testing.T) {
	s := rack(t, bmcsim.Config{})
	for range 3 {
		if _, err := s.Add(bmcsim.HostSpec{Username: "root", Password: "same"}); err != nil {
			t.Fatal(err)
		}
	}
	c := &caller{t: t, handler: s.Handler(), user: "root", pass: "same"}
	members, _ := c.must(http.StatusOK, http.MethodGet, "/redfish/v1/Systems", nil).dig("Members").([]any)
	if len(members) != 3 {
		t.Errorf("%d systems, want 3", len(members))
	}
	s.Hosts()[1].SetFaults(bmcsim.Faults{WrongPassword: true})
	c.must(http.StatusUnauthorized, http.MethodGet, s.Hosts()[1].SystemPath(), nil)
	c.must(http.StatusOK, http.MethodGet, s.Hosts()[2].SystemPath(), nil)
}

func TestSessionsAreBounded(t *testing.T) {
	s := rack(t, bmcsim.Config{Hosts: 1})
	h := s.Hosts()[0]
	c := asOwner(t, s, h)
	user, pass := h.Credentials()
	for range 20 {
		c.must(http.StatusCreated, http.MethodPost, "/redfish/v1/SessionService/Sessions", map[string]string{"UserName": user, "Password": pass})
	}
	members, _ := c.must(http.StatusOK, http.MethodGet, "/redfish/v1/SessionService/Sessions", nil).dig("Members").([]any)
	if len(members) != 16 {
		t.Errorf("%d sessions are open, want 16", len(members))
	}
}

const broken = -1 // no answer, or half of one

// switchOn asks for power on over a network, and gives the status of the answer
// and its Retry-After.
func switchOn(t *testing.T, s *bmcsim.Sim, h *bmcsim.Host) (status int, retry string) {
	t.Helper()
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	body := strings.NewReader(`{"ResetType":"On"}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+h.SystemPath()+"/Actions/ComputerSystem.Reset", body)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(h.Credentials())
	resp, err := srv.Client().Do(req)
	if err != nil {
		return broken, ""
	}
	_ = resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("Retry-After")
}

func TestServiceFaults(t *testing.T) {
	tests := map[string]struct {
		faults bmcsim.Faults
		want   int
		acted  bool
	}{
		"down closes the connection":                {bmcsim.Faults{Down: true}, broken, false},
		"unavailable is 503":                        {bmcsim.Faults{Unavailable: true, RetryAfter: 3 * time.Second}, 503, false},
		"a wrong password is 401":                   {bmcsim.Faults{WrongPassword: true}, 401, false},
		"a lost system is 404":                      {bmcsim.Faults{Lost: true}, 404, false},
		"a broken answer comes after the deed":      {bmcsim.Faults{Drop: true}, broken, true},
		"slow is only slow":                         {bmcsim.Faults{Latency: time.Millisecond}, 204, true},
		"no sessions leaves basic authentication":   {bmcsim.Faults{NoSessions: true}, 204, true},
		"no session left, but basic authentication": {bmcsim.Faults{SessionsFull: true}, 204, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := rack(t, bmcsim.Config{Hosts: 1})
			h := s.Hosts()[0]
			h.SetFaults(tc.faults)
			got, retry := switchOn(t, s, h)
			if want := tc.faults.RetryAfter > 0; (retry == "3") != want {
				t.Errorf("Retry-After is %q", retry)
			}
			if got != tc.want || (h.View().Power == "On") != tc.acted {
				t.Errorf("status %d, power %s; want status %d, acted %v", got, h.View().Power, tc.want, tc.acted)
			}
		})
	}
}

func TestASessionOfABMCThatIsDownIsDroppedAtTheCommonAddress(t *testing.T) {
	s := rack(t, bmcsim.Config{Hosts: 2})
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(srv.Close)
	s.Hosts()[0].SetFaults(bmcsim.Faults{Down: true})
	for i, h := range s.Hosts() {
		user, pass := h.Credentials()
		body := fmt.Sprintf(`{"UserName":%q,"Password":%q}`, user, pass)
		resp, err := srv.Client().Post(srv.URL+"/redfish/v1/SessionService/Sessions", "application/json", strings.NewReader(body))
		if (err != nil) != (i == 0) {
			t.Errorf("host %d: %v", i, err)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
	}
}

func TestBadRequestsAreRefused(t *testing.T) {
	tests := map[string]struct {
		method, path string
		body         any
		status       int
	}{
		"no JSON":                {"PATCH", "", "x", 400},
		"an unknown target":      {"PATCH", "", map[string]any{"Boot": map[string]string{"BootSourceOverrideTarget": "Tape"}}, 400},
		"an unknown reset":       {"POST", "/Actions/ComputerSystem.Reset", map[string]string{"ResetType": "Explode"}, 400},
		"a wrong method":         {"DELETE", "", nil, 405},
		"no such resource":       {"GET", "/Nothing", nil, 404},
		"no such member":         {"GET", "/Processors/9", nil, 404},
		"media without image":    {"POST", "/VirtualMedia/1/Actions/VirtualMedia.InsertMedia", map[string]string{}, 400},
		"media from a file":      {"POST", "/VirtualMedia/1/Actions/VirtualMedia.InsertMedia", map[string]string{"Image": "file:///etc/passwd"}, 400},
		"nothing to eject":       {"POST", "/VirtualMedia/1/Actions/VirtualMedia.EjectMedia", map[string]string{}, 409},
		"an unknown setting":     {"PATCH", "/Bios/Settings", map[string]any{"Attributes": map[string]any{"Nope": 1}}, 400},
		"a read-only setting":    {"PATCH", "/Bios/Settings", map[string]any{"Attributes": map[string]any{"SystemModelName": "x"}}, 400},
		"a setting off the list": {"PATCH", "/Bios/Settings", map[string]any{"Attributes": map[string]any{"LogicalProc": "Perhaps"}}, 400},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := rack(t, bmcsim.Config{Hosts: 1, Profiles: []string{bmcsim.Dell}})
			h := s.Hosts()[0]
			r := asOwner(t, s, h).must(tc.status, tc.method, h.SystemPath()+tc.path, tc.body)
			if r.dig("error", "message") == nil {
				t.Errorf("no error message: %v", r.body)
			}
		})
	}
}

func TestSomeBMCsWantIfMatch(t *testing.T) {
	s := rack(t, bmcsim.Config{Hosts: 1, Profiles: []string{bmcsim.OpenBMC}})
	h := s.Hosts()[0]
	c := asOwner(t, s, h)
	c.must(http.StatusPreconditionRequired, http.MethodPatch, h.SystemPath(), bootOnce("Cd"))
	c.headers = map[string]string{"If-Match": `"stale"`}
	c.must(http.StatusPreconditionFailed, http.MethodPatch, h.SystemPath(), bootOnce("Cd"))
	tag := c.must(http.StatusOK, http.MethodGet, h.SystemPath(), nil).header.Get("ETag")
	c.headers = map[string]string{"If-Match": tag}
	c.must(http.StatusNoContent, http.MethodPatch, h.SystemPath(), bootOnce("Cd"))
}

func TestRequestsAreCountedByKind(t *testing.T) {
	s := rack(t, bmcsim.Config{Hosts: 2})
	a := s.Hosts()[0]
	c := asOwner(t, s, a)
	for range 3 {
		c.must(http.StatusOK, http.MethodGet, a.SystemPath(), nil)
	}
	c.must(http.StatusNotFound, http.MethodGet, "/redfish/v1/Nowhere", nil)
	if got := a.Requests()["GET Systems/{}"]; got != 3 {
		t.Errorf("the host counts %d, want 3", got)
	}
	if all := s.Requests(); all["GET Systems/{}"] != 3 || all["GET unknown"] != 1 {
		t.Errorf("the simulator counts %v", all)
	}
	if n := len(s.Hosts()[1].Requests()); n != 0 {
		t.Errorf("the other host counts %d kinds", n)
	}
}
