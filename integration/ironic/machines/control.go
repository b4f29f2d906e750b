package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/metalbus/metalbus/integration/ironic/rack"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim/agent"
)

// control is the page where tests look at machines and meddle with them.
type control struct {
	sim   *bmcsim.Sim
	fleet *agent.Fleet
}

func (c control) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /control/machines", func(w http.ResponseWriter, _ *http.Request) {
		var all []rack.State
		for _, h := range c.sim.Hosts() {
			all = append(all, c.state(h))
		}
		write(w, all)
	})
	mux.HandleFunc("GET /control/machines/{name}", c.of(func(*bmcsim.Host, *http.Request) error { return nil }))
	mux.HandleFunc("PATCH /control/machines/{name}", c.of(c.change))
}

// of does something with the machine that the path names, and shows it.
func (c control) of(do func(*bmcsim.Host, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := c.sim.Host(r.PathValue("name"))
		if h == nil {
			http.NotFound(w, r)
			return
		}
		if err := do(h, r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		write(w, c.state(h))
	}
}

func (c control) state(h *bmcsim.Host) rack.State {
	user, password := h.Credentials()
	return rack.State{
		View: h.View(), Disk: c.fleet.Disk(h), MACs: h.MACs(), SystemPath: h.SystemPath(), Username: user, Password: password, Commands: h.Commands(),
		Volumes: c.volumes(h),
	}
}

// volumes counts the RAID volumes that the BMC shows, none while it is down.
func (c control) volumes(h *bmcsim.Host) int {
	if h.Faults().Down {
		return 0
	}
	sum := 0
	for _, storage := range c.members(h, h.SystemPath()+"/Storage") {
		sum += len(c.members(h, storage+"/Volumes"))
	}
	return sum
}

// members are the paths in a collection of the BMC; none if there is no such
// collection.
func (c control) members(h *bmcsim.Host, path string) []string {
	var collection struct {
		Members []struct {
			Path string `json:"@odata.id"`
		}
	}
	w, err := c.ask(h, http.MethodGet, path, nil)
	if err != nil || json.Unmarshal(w.Body.Bytes(), &collection) != nil {
		return nil
	}
	var paths []string
	for _, m := range collection.Members {
		paths = append(paths, m.Path)
	}
	return paths
}

func (c control) change(h *bmcsim.Host, r *http.Request) error {
	var in rack.Change
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return err
	}
	if in.BMC != nil {
		h.SetFaults(*in.BMC)
	}
	if in.Agent != nil {
		c.fleet.SetFaults(h, *in.Agent)
	}
	if in.Password != "" {
		user, _ := h.Credentials()
		h.SetCredentials(user, in.Password)
	}
	if in.Health != "" {
		h.SetHealth(in.Health)
	}
	if in.Reset != "" {
		return c.reset(h, in.Reset)
	}
	return nil
}

// reset goes through the BMC, as somebody else would who has its password.
func (c control) reset(h *bmcsim.Host, kind string) error {
	_, err := c.ask(h, http.MethodPost, h.SystemPath()+"/Actions/ComputerSystem.Reset", strings.NewReader(fmt.Sprintf(`{"ResetType": %q}`, kind)))
	return err
}

// ask asks the BMC, with its own credentials.
func (c control) ask(h *bmcsim.Host, method, path string, body io.Reader) (*httptest.ResponseRecorder, error) {
	req := httptest.NewRequest(method, path, body)
	req.SetBasicAuth(h.Credentials())
	w := httptest.NewRecorder()
	c.sim.Handler().ServeHTTP(w, req)
	if w.Code >= http.StatusBadRequest {
		return nil, fmt.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w, nil
}

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the caller may have gone
}
