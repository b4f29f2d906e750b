package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

type obj = map[string]any

// agent is one agent in one boot of a machine.
type agent struct {
	fleet  *Fleet
	boot   *bmcsim.Boot
	params map[string]string
	ctx    context.Context
	beat   chan struct{} // asks for a heartbeat now

	mu       sync.Mutex
	token    string
	commands []*command
}

const (
	// firstPause is the first wait between two tries to be found, longestPause the
	// longest: each try costs Ironic some work.
	firstPause   = 300 * time.Millisecond
	longestPause = 5 * time.Second
	// eager is how often an agent beats, each second, when it has something to say:
	// a beat that meets a locked node is lost.
	eager = 5
	// apiVersion is what the agent knows of Ironic's API. A report must name none.
	apiVersion = "1.68"
	maxAnswer  = 4 << 20
)

func newAgent(f *Fleet, b *bmcsim.Boot, params map[string]string) *agent {
	return &agent{fleet: f, boot: b, params: params, token: params["ipa-agent-token"], beat: make(chan struct{}, 1)}
}

// run is an agent's life: it reports its inventory, finds its node, and beats
// until the power is gone.
func (a *agent) run(ctx context.Context) {
	a.ctx = ctx
	node, reported := a.find()
	for soon := eager; node != "" && ctx.Err() == nil; soon-- {
		if soon > 0 && !reported {
			reported = a.report()
		}
		wait := a.fleet.cfg.Heartbeat
		if !a.heartbeat(node) || soon > 0 {
			wait = min(wait, time.Second)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		case <-a.beat:
			soon = eager
		}
	}
}

// reportTo is where the inventory is wanted, "" if nowhere.
func (a *agent) reportTo() string {
	if to := a.params["ipa-inspection-callback-url"]; to != "" {
		return to
	}
	if a.params["ipa-inspection-collectors"] != "" {
		return a.api("/v1/continue_inspection")
	}
	return ""
}

func (a *agent) api(path string) string {
	return strings.TrimRight(a.params["ipa-api-url"], "/") + path
}

// find looks for the agent's node until it is found, and tells whether it has
// reported. A real agent boots for minutes and reports once; this one may be there
// before the node waits for it, or the node may not be under inspection at all, so
// it tries both in turn.
func (a *agent) find() (node string, reported bool) {
	reported = a.reportTo() == ""
	for pause := firstPause; ; pause = min(pause*3/2, longestPause) {
		reported = reported || a.report()
		if node = a.lookup(); node != "" || !a.sleep(pause) {
			return node, reported
		}
	}
}

func (a *agent) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-a.ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// report posts the inventory.
func (a *agent) report() bool {
	status, _ := a.ask(http.MethodPost, a.reportTo(), "", a.inventory())
	return status >= 200 && status < 300
}

// lookup gives the UUID of the node, "" while there is none. The first answer
// tells a token, later ones hide it.
func (a *agent) lookup() string {
	q := url.Values{"addresses": {strings.Join(a.boot.Host.MACs(), ",")}}
	status, answer := a.ask(http.MethodGet, a.api("/v1/lookup?"+q.Encode()), apiVersion, nil)
	if status != http.StatusOK {
		return ""
	}
	node, _ := answer["node"].(obj)
	config, _ := answer["config"].(obj)
	if token, _ := config["agent_token"].(string); token != "" && !strings.HasPrefix(token, "***") {
		a.mu.Lock()
		a.token = token
		a.mu.Unlock()
	}
	uuid, _ := node["uuid"].(string)
	return uuid
}

func (a *agent) heartbeat(node string) bool {
	a.mu.Lock()
	body := obj{"callback_url": a.fleet.cfg.Address + "/agent/" + a.boot.Host.ID(), "agent_version": Version, "agent_token": a.token}
	a.mu.Unlock()
	status, _ := a.ask(http.MethodPost, a.api("/v1/heartbeat/"+node), apiVersion, body)
	return status >= 200 && status < 300
}

// ask sends a request to Ironic; the status is zero without an answer.
func (a *agent) ask(method, address, version string, body any) (int, obj) {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			panic(err) // made of what JSON is made of
		}
	}
	req, err := http.NewRequestWithContext(a.ctx, method, address, bytes.NewReader(content))
	if err != nil {
		return 0, nil
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if version != "" {
		req.Header.Set("X-OpenStack-Ironic-API-Version", version)
	}
	resp, err := a.fleet.cfg.Client.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	answer := obj{}
	if b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)); err != nil || json.Unmarshal(b, &answer) != nil {
		answer = nil // whoever asked looks at the status first
	}
	return resp.StatusCode, answer
}

// beatSoon asks for a heartbeat, so that the conductor need not wait for the next
// one.
func (a *agent) beatSoon() {
	select {
	case a.beat <- struct{}{}:
	default: // it is asked for already
	}
}
