package ironic_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/ironic"
)

// api is an Ironic of handlers that each test sets, with a log of what was asked.
type api struct {
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex
	newest   string
	handlers map[string]http.HandlerFunc
	log      []request
}

type request struct {
	Line   string // method, path and query
	Body   string
	Header http.Header
}

const (
	uuid1 = "11111111-1111-1111-1111-111111111111"
	uuid2 = "22222222-2222-2222-2222-222222222222"
)

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{t: t, newest: "1.115", handlers: map[string]http.HandlerFunc{}}
	a.server = httptest.NewServer(a)
	t.Cleanup(a.server.Close)
	return a
}

// on sets what is answered to a method and path below /v1.
func (a *api) on(line string, h http.HandlerFunc) { a.handlers[line] = h }

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		a.t.Error(err)
	}
	a.mu.Lock()
	line := r.Method + " " + r.URL.Path
	logged := line
	if r.URL.RawQuery != "" {
		logged += "?" + r.URL.RawQuery
	}
	a.log = append(a.log, request{Line: logged, Body: string(body), Header: r.Header})
	newest := a.newest
	h := a.handlers[strings.Replace(line, " /v1", " ", 1)]
	a.mu.Unlock()
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	switch {
	case h != nil:
		h(w, r)
	case line == "GET /v1/":
		respond(w, http.StatusOK, `{"version": {"version": "`+newest+`", "min_version": "1.1", "id": "v1"}}`)
	case line == "GET /v1/drivers":
		respond(w, http.StatusOK, `{"drivers": [{"name": "redfish"}]}`)
	default:
		respond(w, http.StatusNotFound, fault("Node x could not be found."))
	}
}

// asked are the requests so far, without those of discovery.
func (a *api) asked() []request {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []request
	for _, r := range a.log {
		if r.Line != "GET /v1/" && r.Line != "GET /v1/drivers" {
			list = append(list, r)
		}
	}
	return list
}

// lines are what was asked, in short.
func (a *api) lines() []string {
	var list []string
	for _, r := range a.asked() {
		line, _, _ := strings.Cut(r.Line, "?")
		list = append(list, line)
	}
	return list
}

func (a *api) client(change func(*ironic.Config)) *ironic.Client {
	a.t.Helper()
	cfg := ironic.Config{Name: "lab", Endpoint: a.server.URL}
	if change != nil {
		change(&cfg)
	}
	c, err := ironic.New(cfg, time.Now, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(c.Close)
	return c
}

func respond(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// answer is a handler that always says the same.
func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { respond(w, status, body) }
}

// fault is an error as Ironic writes it: JSON in JSON.
func fault(text string) string {
	inner, err := json.Marshal(map[string]any{"faultcode": "Client", "faultstring": text, "debuginfo": nil})
	if err != nil {
		panic(err)
	}
	outer, err := json.Marshal(map[string]string{"error_message": string(inner)})
	if err != nil {
		panic(err)
	}
	return string(outer)
}

func nodeJSON(uuid, name, state string) string {
	return fmt.Sprintf(`{"uuid": %q, "name": %q, "provision_state": %q, "power_state": null}`, uuid, name, state)
}
