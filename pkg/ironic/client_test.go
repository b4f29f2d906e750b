package ironic_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func TestEndpoint(t *testing.T) {
	tests := map[string]struct {
		endpoint string // %s is the server
		want     string // the path of the version document, "" for a refusal
	}{
		"no path":                          {"%s", "/v1/"},
		"a slash":                          {"%s/", "/v1/"},
		"the version":                      {"%s/v1", "/v1/"},
		"the version and a slash":          {"%s/v1/", "/v1/"},
		"a prefix of a gateway":            {"%s/ironic", "/ironic/v1/"},
		"a prefix that holds v1":           {"%s/v1/ironic", "/v1/ironic/v1/"},
		"nothing":                          {"", ""},
		"no URL":                           {"192.0.2.1:6385", ""},
		"another scheme":                   {"ftp://192.0.2.1", ""},
		"credentials, which do not belong": {"http://u:p4ssword@192.0.2.1", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path, err := asksFor(t, tc.endpoint)
			if path != tc.want {
				t.Errorf("asked for %q, want %q", path, tc.want)
			}
			if err == nil || strings.Contains(err.Error(), "p4ssword") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// asksFor is the path that a client asks for first, "" if it does not begin.
func asksFor(t *testing.T, endpoint string) (path string, err error) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
		w.WriteHeader(http.StatusTeapot)
	}))
	defer s.Close()
	c, err := ironic.New(ironic.Config{Name: "lab", Endpoint: strings.ReplaceAll(endpoint, "%s", s.URL)}, time.Now, nil)
	if err != nil {
		return "", err
	}
	_, err = c.Version(t.Context())
	return path, err
}

func TestVersion(t *testing.T) {
	tests := map[string]struct {
		root string
		want string // version, "" for not ready
	}{
		"the newest that we know":            {`{"version": {"version": "1.115", "min_version": "1.1"}}`, "1.115"},
		"a server that is ahead of us":       {`{"version": {"version": "1.140", "min_version": "1.1"}}`, "1.115"},
		"Ironic 29":                          {`{"version": {"version": "1.96", "min_version": "1.1"}}`, "1.96"},
		"the oldest that we can work with":   {`{"version": {"version": "1.81", "min_version": "1.1"}}`, "1.81"},
		"an unversioned root":                {`{"default_version": {"version": "1.95", "min_version": "1.1"}, "versions": []}`, "1.95"},
		"a list of one":                      {`{"versions": [{"version": "1.95", "min_version": "1.1"}]}`, "1.95"},
		"one that is too old":                {`{"version": {"version": "1.80", "min_version": "1.1"}}`, ""},
		"one that has left us behind":        {`{"version": {"version": "1.300", "min_version": "1.200"}}`, ""},
		"another major version":              {`{"version": {"version": "2.1", "min_version": "2.0"}}`, ""},
		"no version at all":                  {`{}`, ""},
		"something else than the Ironic API": {`<html>hello</html>`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.on("GET /", answer(http.StatusOK, tc.root))
			v, err := a.client(nil).Version(t.Context())
			if tc.want == "" {
				if !errors.Is(err, ironic.ErrNotReady) {
					t.Fatalf("version %s, error %v, want ErrNotReady", v, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if v.String() != tc.want {
				t.Errorf("version %s, want %s", v, tc.want)
			}
		})
	}
}

func TestNoDriversIsNotReady(t *testing.T) {
	a := newAPI(t)
	a.on("GET /drivers", answer(http.StatusOK, `{"drivers": []}`))
	if _, err := a.client(nil).Version(t.Context()); !errors.Is(err, ironic.ErrNotReady) {
		t.Fatalf("error %v, want ErrNotReady", err)
	}
}

func TestNeeds(t *testing.T) {
	a := newAPI(t)
	a.newest = "1.82"
	v, err := a.client(nil).Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = v.Needs(ironic.FeatureVirtualMediaGet)
	if !errors.Is(err, ironic.ErrUnsupported) {
		t.Fatalf("error %v, want ErrUnsupported", err)
	}
	const want = "reading virtual media needs Ironic API version 1.93 or newer, but ironic lab has 1.82"
	if err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	if _, err := a.client(nil).VirtualMedia(t.Context(), uuid1); !errors.Is(err, ironic.ErrUnsupported) {
		t.Errorf("error %v, want ErrUnsupported", err)
	}
}

// B33: the version is found once for all, and asked for again by one caller alone.
func TestDiscoveryIsShared(t *testing.T) {
	a := newAPI(t)
	a.on("GET /nodes/"+uuid1, answer(http.StatusOK, nodeJSON(uuid1, "n", "active")))
	c := a.client(nil)
	for range 20 {
		if _, err := c.Get(t.Context(), uuid1); err != nil {
			t.Fatal(err)
		}
	}
	if discovery := len(a.log) - len(a.asked()); discovery != 2 {
		t.Errorf("%d requests of discovery, want 2", discovery)
	}
}

// An Ironic that was replaced by an older one no longer speaks the version found.
func TestVersionIsFoundAgain(t *testing.T) {
	a := newAPI(t)
	a.on("GET /nodes/"+uuid1, func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		newest := a.newest
		a.mu.Unlock()
		if r.Header.Get("X-OpenStack-Ironic-API-Version") != newest {
			respond(w, http.StatusNotAcceptable, `{"error_message": "{\"code\": 406, \"title\": \"Not Acceptable\", \"description\": \"Version is not supported\"}"}`)
			return
		}
		respond(w, http.StatusOK, nodeJSON(uuid1, "n", "active"))
	})
	c := a.client(nil)
	for _, newest := range []string{"1.115", "1.96"} {
		a.mu.Lock()
		a.newest = newest
		a.mu.Unlock()
		if _, err := c.Get(t.Context(), uuid1); err != nil {
			t.Fatal(err)
		}
		if v, err := c.Version(t.Context()); err != nil || v.String() != newest {
			t.Errorf("version %s, error %v, want %s", v, err, newest)
		}
	}
}

func TestHeaders(t *testing.T) {
	a := newAPI(t)
	c := a.client(func(cfg *ironic.Config) { cfg.Auth = ironic.Auth{Username: "u", Password: "p"} })
	_, _ = c.Get(t.Context(), "ns~name")
	got := a.asked()[0]
	if got.Line != "GET /v1/nodes/ns~name" {
		t.Errorf("asked %s", got.Line)
	}
	want := map[string]string{
		"X-Openstack-Ironic-Api-Version": "1.115", "Openstack-Api-Version": "baremetal 1.115", "Accept": "application/json", "Authorization": "Basic dTpw",
	}
	for k, v := range want {
		if got.Header.Get(k) != v {
			t.Errorf("header %s: %q, want %q", k, got.Header.Get(k), v)
		}
	}
}

func TestErrors(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		want   error
		busy   bool
		detail string
	}{
		"no such node":             {404, fault("Node x could not be found."), ironic.ErrNoNode, false, "Node x could not be found."},
		"something else not there": {404, fault("No inventory was found for node x."), ironic.ErrNotFound, false, "No inventory was found for node x."},
		"a locked node":            {409, fault("Node x is locked by host h, please retry after the current operation is completed."), ironic.ErrBusy, true, ""},
		"a node on its way":        {409, fault(`Cannot update node "x" while it is in state "inspecting"`), ironic.ErrBusy, true, ""},
		"a name that is taken":     {409, fault("A node with name x already exists."), ironic.ErrConflict, false, ""},
		"a MAC that is taken":      {409, fault("A port with MAC address x already exists."), ironic.ErrConflict, false, ""},
		"a node with an instance":  {409, fault("Node x is associated with instance y."), ironic.ErrConflict, false, ""},
		"no free worker":           {503, fault("Requested action cannot be performed due to lack of free conductor workers."), ironic.ErrBusy, true, ""},
		"too many requests":        {429, ``, ironic.ErrBusy, true, "status 429 Too Many Requests"},
		"a verb in another state":  {400, fault(`The requested action "active" can not be performed on node "x" while it is in state "enroll".`), ironic.ErrWrongState, true, ""},
		"a field that is not one":  {400, fault("Schema error for node: Additional properties are not allowed"), ironic.ErrInvalid, false, ""},
		"a driver that can't":      {400, fault("Driver redfish does not support inspect (disabled or not implemented)."), ironic.ErrUnsupported, false, ""},
		"a failure at the BMC":     {500, fault("Redfish connection failed for node x"), ironic.ErrFailed, false, ""},
		"no credentials":           {401, `{"error":{"message":"Authorization required","code":401}}`, ironic.ErrUnauthorized, false, "Authorization required"},
		"a protected node":         {403, fault("Node x is protected and can not be undeployed, rebuilt or deleted."), ironic.ErrForbidden, false, ""},
		"a proxy's page":           {502, `<html><body>Bad Gateway</body></html>`, ironic.ErrNotReady, false, "status 502 Bad Gateway"},
		"a fault that is an object": {
			400, `{"error_message": {"faultstring": "in one piece"}}`, ironic.ErrInvalid, false, "in one piece",
		},
		"a text": {400, `out of order`, ironic.ErrInvalid, false, "out of order"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.on("PUT /nodes/"+uuid1+"/states/provision", answer(tc.status, tc.body))
			err := a.client(nil).Provision(t.Context(), uuid1, ironic.Provision{Verb: ironic.VerbManage})
			if !errors.Is(err, tc.want) {
				t.Fatalf("error %v, want %v", err, tc.want)
			}
			if errors.Is(err, lifecycle.ErrBusy) != tc.busy {
				t.Errorf("busy: %v, want %v", !tc.busy, tc.busy)
			}
			if tc.detail != "" && ironic.Detail(err) != tc.detail {
				t.Errorf("detail %q, want %q", ironic.Detail(err), tc.detail)
			}
		})
	}
}

// B11: what was secret in a request is not in an error about it.
func TestErrorsHoldNoSecrets(t *testing.T) {
	const canary = `S3cret "canary"`
	a := newAPI(t)
	echo := func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 4096)
		n, _ := r.Body.Read(body)
		respond(w, http.StatusBadRequest, fault("Schema error: "+string(body[:n])+" and "+canary+" and http://u:hunter22@192.0.2.80/x"))
	}
	a.on("POST /nodes", echo)
	a.on("PATCH /nodes/"+uuid1, echo)
	a.on("PUT /nodes/"+uuid1+"/states/provision", echo)
	a.on("POST /nodes/"+uuid1+"/vendor_passthru", echo)
	c := a.client(nil)
	_, create := c.Create(t.Context(), map[string]any{"name": "n", "driver_info": map[string]any{"redfish_password": canary}})
	var p ironic.Patch
	p.Set("/driver_info/ipmi_password", canary)
	_, update := c.Update(t.Context(), uuid1, p)
	deploy := c.Provision(t.Context(), uuid1, ironic.Provision{Verb: ironic.VerbActive, ConfigDrive: map[string]any{"user_data": canary}})
	_, subscribe := c.Subscribe(t.Context(), uuid1, ironic.Subscription{Destination: "https://192.0.2.9/", Headers: map[string]string{"X-Token": canary}})
	for what, err := range map[string]error{"create": create, "update": update, "deploy": deploy, "subscribe": subscribe} {
		if err == nil {
			t.Errorf("%s: no error", what)
			continue
		}
		if strings.Contains(err.Error(), "S3cret") || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: the error shows a secret: %v", what, err)
		}
	}
}

func TestBodies(t *testing.T) {
	tests := map[string]struct {
		do   func(context.Context, *ironic.Client) error
		line string
		body string
	}{
		"clean": {
			func(ctx context.Context, c *ironic.Client) error {
				return c.Provision(ctx, uuid1, ironic.Provision{Verb: ironic.VerbClean, Steps: []ironic.Step{{Interface: "raid", Name: "delete_configuration"}}})
			},
			"PUT /v1/nodes/" + uuid1 + "/states/provision", `{"clean_steps":[{"interface":"raid","step":"delete_configuration"}],"target":"clean"}`,
		},
		"a custom deploy": {
			func(ctx context.Context, c *ironic.Client) error {
				return c.Provision(ctx, uuid1, ironic.Provision{Verb: ironic.VerbActive, ConfigDrive: map[string]any{"meta_data": 1}, Steps: []ironic.Step{{Interface: "deploy", Name: "install", Priority: 80}}})
			},
			"PUT /v1/nodes/" + uuid1 + "/states/provision", `{"configdrive":{"meta_data":1},"deploy_steps":[{"args":{},"interface":"deploy","priority":80,"step":"install"}],"target":"active"}`,
		},
		"service": {
			func(ctx context.Context, c *ironic.Client) error {
				return c.Provision(ctx, uuid1, ironic.Provision{Verb: ironic.VerbService, Steps: []ironic.Step{{Interface: "bios", Name: "apply_configuration", Args: map[string]any{"settings": []any{}}}}})
			},
			"PUT /v1/nodes/" + uuid1 + "/states/provision", `{"service_steps":[{"interface":"bios","step":"apply_configuration","args":{"settings":[]}}],"target":"service"}`,
		},
		"soft power off": {
			func(ctx context.Context, c *ironic.Client) error {
				return c.Power(ctx, uuid1, ironic.SoftPowerOff, 180)
			},
			"PUT /v1/nodes/" + uuid1 + "/states/power", `{"target":"soft power off","timeout":180}`,
		},
		"power on": {
			func(ctx context.Context, c *ironic.Client) error { return c.Power(ctx, uuid1, ironic.PowerOn, 0) },
			"PUT /v1/nodes/" + uuid1 + "/states/power", `{"target":"power on"}`,
		},
		"RAID": {
			func(ctx context.Context, c *ironic.Client) error {
				return c.SetRAID(ctx, uuid1, []map[string]any{{"size_gb": "MAX", "raid_level": "1"}})
			},
			"PUT /v1/nodes/" + uuid1 + "/states/raid", `{"logical_disks":[{"raid_level":"1","size_gb":"MAX"}]}`,
		},
		"maintenance": {
			func(ctx context.Context, c *ironic.Client) error { return c.SetMaintenance(ctx, uuid1, "why") },
			"PUT /v1/nodes/" + uuid1 + "/maintenance", `{"reason":"why"}`,
		},
		"no maintenance": {
			func(ctx context.Context, c *ironic.Client) error { return c.UnsetMaintenance(ctx, uuid1) },
			"DELETE /v1/nodes/" + uuid1 + "/maintenance", ``,
		},
		"a port": {
			func(ctx context.Context, c *ironic.Client) error {
				return c.AddPort(ctx, uuid1, "00:00:5E:00:53:01", true)
			},
			"POST /v1/ports", `{"address":"00:00:5e:00:53:01","node_uuid":"` + uuid1 + `","pxe_enabled":true}`,
		},
		"a medium": {
			func(ctx context.Context, c *ironic.Client) error {
				return c.AttachMedia(ctx, uuid1, "http://192.0.2.80/x.iso")
			},
			"POST /v1/nodes/" + uuid1 + "/vmedia", `{"device_type":"cdrom","image_url":"http://192.0.2.80/x.iso"}`,
		},
		"no medium": {
			func(ctx context.Context, c *ironic.Client) error { return c.DetachMedia(ctx, uuid1) },
			"DELETE /v1/nodes/" + uuid1 + "/vmedia?device_types=cdrom", ``,
		},
		"a subscription": {
			func(ctx context.Context, c *ironic.Client) error {
				_, err := c.Subscribe(ctx, uuid1, ironic.Subscription{Destination: "https://192.0.2.9/", Context: "c", Headers: map[string]string{"B": "2", "A": "1"}})
				return err
			},
			"POST /v1/nodes/" + uuid1 + "/vendor_passthru?method=create_subscription", `{"Context":"c","Destination":"https://192.0.2.9/","HttpHeaders":[{"A":"1"},{"B":"2"}]}`,
		},
		"no subscription": {
			func(ctx context.Context, c *ironic.Client) error { return c.Unsubscribe(ctx, uuid1, "7") },
			"DELETE /v1/nodes/" + uuid1 + "/vendor_passthru?method=delete_subscription", `{"id":"7"}`,
		},
		"a patch": {
			func(ctx context.Context, c *ironic.Client) error {
				var p ironic.Patch
				p.Match("/name", "a", "b")
				p.Match("/same", map[string]any{"x": 1.0}, map[string]any{"x": 1})
				p.Match("/automated_clean", nil, false)
				p.MatchKeys("/instance_info", map[string]any{"old": 1, "a/b": 2}, map[string]any{"old": nil, "none": nil, "a/b": 3})
				_, err := c.Update(ctx, uuid1, p)
				return err
			},
			"PATCH /v1/nodes/" + uuid1, `[{"op":"add","path":"/name","value":"b"},{"op":"add","path":"/automated_clean","value":false},{"op":"add","path":"/instance_info/a~1b","value":3},{"op":"remove","path":"/instance_info/old"}]`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			done := map[string]int{"PUT": 202, "DELETE": 204, "POST": 201, "PATCH": 200}
			for _, line := range []string{"PUT /nodes/" + uuid1 + "/states/provision", "PUT /nodes/" + uuid1 + "/states/power", "PUT /nodes/" + uuid1 + "/maintenance", "PATCH /nodes/" + uuid1, "POST /ports"} {
				method, _, _ := strings.Cut(line, " ")
				a.on(line, answer(done[method], nodeJSON(uuid1, "b", "active")))
			}
			a.on("PUT /nodes/"+uuid1+"/states/raid", answer(204, ""))
			a.on("DELETE /nodes/"+uuid1+"/maintenance", answer(202, ""))
			a.on("POST /nodes/"+uuid1+"/vmedia", answer(204, ""))
			a.on("DELETE /nodes/"+uuid1+"/vmedia", answer(204, ""))
			a.on("POST /nodes/"+uuid1+"/vendor_passthru", answer(200, `{"Id": "7"}`))
			a.on("DELETE /nodes/"+uuid1+"/vendor_passthru", answer(204, ""))
			if err := tc.do(t.Context(), a.client(nil)); err != nil {
				t.Fatal(err)
			}
			got := a.asked()
			if len(got) != 1 {
				t.Fatalf("%d requests, want 1", len(got))
			}
			if diff := cmp.Diff(tc.line+" "+tc.body, got[0].Line+" "+got[0].Body); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

// An answer with nothing in it does not say that there is nothing.
func TestEmptyAnswers(t *testing.T) {
	a := newAPI(t)
	for _, line := range []string{"GET /nodes/" + uuid1, "GET /nodes", "GET /ports", "GET /nodes/" + uuid1 + "/bios", "PATCH /nodes/" + uuid1} {
		a.on(line, answer(200, `{}`))
	}
	for what, do := range map[string]func(c *ironic.Client) error{
		"a node":    func(c *ironic.Client) error { _, err := c.Get(t.Context(), uuid1); return err },
		"the fleet": func(c *ironic.Client) error { _, err := c.Fleet(t.Context()); return err },
		"ports":     func(c *ironic.Client) error { _, err := ironic.NewReader(c).Ports(t.Context(), uuid1); return err },
		"a port": func(c *ironic.Client) error {
			_, _, err := ironic.NewReader(c).PortOf(t.Context(), "00:00:5e:00:53:01")
			return err
		},
		"settings": func(c *ironic.Client) error { _, err := c.BIOS(t.Context(), uuid1); return err },
		"a patch":  func(c *ironic.Client) error { _, err := c.Update(t.Context(), uuid1, ironic.Patch{}); return err },
	} {
		if err := do(a.client(nil)); !errors.Is(err, ironic.ErrNotReady) {
			t.Errorf("%s: error %v, want ErrNotReady", what, err)
		}
	}
}

func TestGoneIsDeleted(t *testing.T) {
	a := newAPI(t)
	if err := a.client(nil).Delete(t.Context(), uuid1); err != nil {
		t.Errorf("delete of a node that is gone: %v", err)
	}
}

func TestValidate(t *testing.T) {
	a := newAPI(t)
	a.on("GET /nodes/"+uuid1+"/validate", answer(200, `{"boot": {"result": false, "reason": "no kernel"}, "deploy": {"result": null}, "inspect": {"result": false}, "raid": {"result": false, "reason": "never mind"}}`))
	missing, err := a.client(nil).Validate(t.Context(), uuid1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"no kernel"}, missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func TestLastErrorSince(t *testing.T) {
	now := time.Now().UTC()
	at := func(d time.Duration) string { return now.Add(d).Format("2006-01-02T15:04:05+00:00") }
	a := newAPI(t)
	a.on("GET /nodes/"+uuid1+"/history", answer(200, `{"history": [
		{"created_at": "`+at(-time.Hour)+`", "severity": "ERROR", "event": "an old one"},
		{"created_at": "`+at(-time.Minute)+`", "severity": "ERROR", "event": "the first"},
		{"created_at": "`+at(-30*time.Second)+`", "severity": "ERROR", "event": "the second"},
		{"created_at": "`+at(-20*time.Second)+`", "severity": "INFO", "event": "health"}]}`))
	c := a.client(nil)
	for since, want := range map[time.Duration]string{-2 * time.Minute: "the second", -10 * time.Second: ""} {
		got, err := c.LastErrorSince(t.Context(), uuid1, now.Add(since))
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("since %s: %q, want %q", since, got, want)
		}
	}
}

func TestHiddenNodeIsNamed(t *testing.T) {
	a := newAPI(t)
	a.on("GET /nodes/"+uuid1, answer(200, `{"uuid": "`+uuid1+`", "parent_node": "`+uuid1+`", "provision_state": "active"}`))
	n, err := a.client(nil).Get(t.Context(), uuid1)
	if !errors.Is(err, ironic.ErrHidden) {
		t.Fatalf("error %v, want ErrHidden", err)
	}
	if n.UUID != uuid1 || !strings.Contains(err.Error(), "29.0.5") {
		t.Errorf("node %q, error %v", n.UUID, err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	a := newAPI(t)
	a.on("GET /", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "https://u:hunter22@ironic.example.com/v1/", http.StatusMovedPermanently)
	})
	_, err := a.client(nil).Version(t.Context())
	if err == nil || strings.Contains(err.Error(), "hunter22") {
		t.Fatalf("error %v", err)
	}
}

func TestMetrics(t *testing.T) {
	a := newAPI(t)
	reg := prometheus.NewPedanticRegistry()
	c, err := ironic.New(ironic.Config{Name: "lab", Endpoint: a.server.URL}, time.Now, ironic.NewMetrics(reg))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Get(t.Context(), uuid1)
	want := `
# HELP metalbus_ironic_requests_total Requests made to an Ironic, by what was asked and by the status of the answer (0: none).
# TYPE metalbus_ironic_requests_total counter
metalbus_ironic_requests_total{call="discover the API version",ironic="lab",status="ok"} 1
metalbus_ironic_requests_total{call="get node",ironic="lab",status="404"} 1
metalbus_ironic_requests_total{call="list drivers",ironic="lab",status="ok"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "metalbus_ironic_requests_total"); err != nil {
		t.Error(err)
	}
}
