// Package rack is the page of control of simulated machines, seen from the tests:
// what a machine is like, what was done to it, and how to meddle with it.
package rack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim/agent"
)

// State is how a machine stands.
type State struct {
	View       bmcsim.View      `json:"view"`
	Disk       agent.Disk       `json:"disk"`
	MACs       []string         `json:"macs"`
	SystemPath string           `json:"systemPath"`
	Username   string           `json:"username"`
	Password   string           `json:"password"`
	Commands   []bmcsim.Command `json:"commands"` // that its BMC was given
	Volumes    int              `json:"volumes"`  // of its RAID controllers
}

// Change meddles with a machine. What is left out stays.
type Change struct {
	BMC      *bmcsim.Faults `json:"bmc,omitempty"`      // in place of all earlier ones
	Agent    *agent.Faults  `json:"agent,omitempty"`    // likewise
	Password string         `json:"password,omitempty"` // of the BMC
	Health   string         `json:"health,omitempty"`   // OK, Warning or Critical
	Reset    string         `json:"reset,omitempty"`    // a Redfish ResetType, as if by somebody else
}

// Rack is a page of control.
type Rack struct {
	// URL is the address of the machines' program.
	URL string
}

// Machines are all machines.
func (r Rack) Machines(ctx context.Context) ([]State, error) {
	var all []State
	return all, r.ask(ctx, http.MethodGet, "/control/machines", nil, &all)
}

// Machine looks at one.
func (r Rack) Machine(ctx context.Context, name string) (State, error) {
	var s State
	return s, r.ask(ctx, http.MethodGet, "/control/machines/"+name, nil, &s)
}

// Change meddles with one.
func (r Rack) Change(ctx context.Context, name string, c Change) (State, error) {
	var s State
	return s, r.ask(ctx, http.MethodPatch, "/control/machines/"+name, c, &s)
}

// Upload adds an image to those that machines and Ironic can ask for.
func (r Rack) Upload(ctx context.Context, name string, content []byte) error {
	body, err := r.send(ctx, http.MethodPut, "/control/files/"+name, content)
	if err != nil {
		return err
	}
	return body.Close()
}

// Download gets one of those images.
func (r Rack) Download(ctx context.Context, name string) ([]byte, error) {
	body, err := r.send(ctx, http.MethodGet, "/files/"+name, nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

func (r Rack) ask(ctx context.Context, method, path string, in, out any) error {
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	body, err := r.send(ctx, method, path, b)
	if err != nil {
		return err
	}
	defer body.Close()
	return json.NewDecoder(body).Decode(out)
}

func (r Rack) send(ctx context.Context, method, path string, content []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.URL+path, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close() // the status says it
		return nil, fmt.Errorf("%s %s: %s", method, path, resp.Status)
	}
	return resp.Body, nil
}
