package main

import (
	"encoding/json"
	"fmt"
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
	return rack.State{View: h.View(), Disk: c.fleet.Disk(h), MACs: h.MACs(), SystemPath: h.SystemPath(), Username: user, Password: password, Commands: h.Commands()}
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
		return c.reset(h, r, in.Reset)
	}
	return nil
}

// reset goes through the BMC, as somebody else would who has its password.
func (c control) reset(h *bmcsim.Host, r *http.Request, kind string) error {
	body := strings.NewReader(fmt.Sprintf(`{"ResetType": %q}`, kind))
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, h.SystemPath()+"/Actions/ComputerSystem.Reset", body)
	if err != nil {
		return err
	}
	req.SetBasicAuth(h.Credentials())
	w := httptest.NewRecorder()
	c.sim.Handler().ServeHTTP(w, req)
	if w.Code >= http.StatusBadRequest {
		return fmt.Errorf("reset: %s", w.Body)
	}
	return nil
}

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the caller may have gone
}
