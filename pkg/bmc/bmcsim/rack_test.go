package bmcsim_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

// rack makes a simulator that is closed at the end of the test.
func rack(t *testing.T, cfg bmcsim.Config) *bmcsim.Sim {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s, err := bmcsim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// caller speaks to a handler as one user, with no network between.
type caller struct {
	t       *testing.T
	handler http.Handler
	user    string
	pass    string
	token   string
	headers map[string]string
}

func asOwner(t *testing.T, s *bmcsim.Sim, h *bmcsim.Host) *caller {
	t.Helper()
	user, pass := h.Credentials()
	return &caller{t: t, handler: s.Handler(), user: user, pass: pass}
}

// reply is an answer with its body decoded, if it is JSON.
type reply struct {
	status int
	header http.Header
	body   map[string]any
}

func (c *caller) do(method, path string, body any) reply {
	c.t.Helper()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		in = bytes.NewReader(b)
	}
	r := httptest.NewRequestWithContext(c.t.Context(), method, path, in)
	switch {
	case c.token != "":
		r.Header.Set("X-Auth-Token", c.token)
	case c.user != "":
		r.SetBasicAuth(c.user, c.pass)
	}
	for k, v := range c.headers {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	out := reply{status: w.Code, header: w.Header()}
	if strings.Contains(w.Header().Get("Content-Type"), "json") {
		if err := json.Unmarshal(w.Body.Bytes(), &out.body); err != nil {
			c.t.Fatalf("%s %s: %v in %s", method, path, err, w.Body.String())
		}
	}
	return out
}

// must does a request that has to be answered with this status.
func (c *caller) must(status int, method, path string, body any) reply {
	c.t.Helper()
	r := c.do(method, path, body)
	if r.status != status {
		c.t.Fatalf("%s %s: got status %d, want %d: %v", method, path, r.status, status, r.body)
	}
	return r
}

func (c *caller) reset(status int, system, kind string) {
	c.t.Helper()
	c.must(status, http.MethodPost, system+"/Actions/ComputerSystem.Reset", map[string]string{"ResetType": kind})
}

// dig goes down into a body by keys.
func (r reply) dig(keys ...string) any {
	var v any = r.body
	for _, k := range keys {
		m, isObj := v.(map[string]any)
		if !isObj {
			return nil
		}
		v = m[k]
	}
	return v
}

func linkOf(v any) string {
	m, _ := v.(map[string]any)
	id, _ := m["@odata.id"].(string)
	return id
}

func benchGet(b *testing.B, handler http.Handler, user, pass, path string) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, path, nil)
		r.SetBasicAuth(user, pass)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatalf("status %d", w.Code)
		}
	}
}
