package agent_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim/agent"
)

type obj = map[string]any

const token = "a-token"

// conductor is as much of an Ironic as an agent sees.
type conductor struct {
	t     *testing.T
	url   string
	sim   *bmcsim.Sim
	host  *bmcsim.Host
	fleet *agent.Fleet

	mu       sync.Mutex
	waiting  bool // the node is in a state in which its agent may be looked up
	lookups  int
	report   obj
	callback string
	beats    chan obj
}

func newConductor(t *testing.T) *conductor {
	t.Helper()
	c := &conductor{t: t, waiting: true, beats: make(chan obj, 100)}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	c.url = server.URL
	fleet, err := agent.New(agent.Config{Address: server.URL, Heartbeat: 10 * time.Millisecond, Step: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	c.fleet = fleet
	c.sim, err = bmcsim.New(bmcsim.Config{Now: time.Now, Hosts: 1, Profiles: []string{bmcsim.Dell}, Boot: fleet.Boot})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.sim.Close)
	c.host = c.sim.Hosts()[0]
	mux.Handle("/redfish/", c.sim.Handler())
	mux.Handle("/agent/", fleet.Handler())
	mux.HandleFunc("GET /v1/lookup", c.lookup)
	mux.HandleFunc("POST /v1/heartbeat/{node}", c.heartbeat)
	mux.HandleFunc("POST /v1/continue_inspection", c.inspected)
	for name, content := range c.files() {
		mux.HandleFunc("GET /files/"+name, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, content) })
	}
	return c
}

const image = "an image"

func imageSum() string {
	sum := sha256.Sum256([]byte(image))
	return hex.EncodeToString(sum[:])
}

func (c *conductor) files() map[string]string {
	return map[string]string{
		"agent.iso": "noise ipa-api-url=" + c.url + "\x00ipa-inspection-collectors=default noise", "live.iso": "a live image", "disk.raw": image,
		"disk.raw.sha256sum": imageSum() + "  disk.raw\n",
	}
}

func (c *conductor) lookup(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.waiting || r.URL.Query().Get("addresses") != strings.Join(c.host.MACs(), ",") {
		http.NotFound(w, r)
		return
	}
	c.lookups++
	shown := token
	if c.lookups > 1 {
		shown = "******"
	}
	_ = json.NewEncoder(w).Encode(obj{"node": obj{"uuid": "node-1"}, "config": obj{"agent_token": shown}})
}

func (c *conductor) heartbeat(w http.ResponseWriter, r *http.Request) {
	var body obj
	_ = json.NewDecoder(r.Body).Decode(&body)
	c.mu.Lock()
	c.callback, _ = body["callback_url"].(string)
	c.mu.Unlock()
	select {
	case c.beats <- body:
	default:
	}
	w.WriteHeader(http.StatusAccepted)
}

func (c *conductor) inspected(w http.ResponseWriter, r *http.Request) {
	var body obj
	_ = json.NewDecoder(r.Body).Decode(&body)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.report != nil || r.Header.Get("X-OpenStack-Ironic-API-Version") != "" {
		http.NotFound(w, r)
		return
	}
	c.report = body
	w.WriteHeader(http.StatusAccepted)
}

// redfish changes something through the BMC.
func (c *conductor) redfish(method, path, body string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.SetBasicAuth(c.host.Credentials())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		b, _ := io.ReadAll(resp.Body)
		c.t.Fatalf("%s %s: %s %s", method, path, resp.Status, b)
	}
}

// boot boots the machine from an image.
func (c *conductor) boot(iso string) {
	c.t.Helper()
	s := c.host.SystemPath()
	c.redfish(http.MethodPost, s+"/VirtualMedia/1/Actions/VirtualMedia.InsertMedia", `{"Image": "`+c.url+"/files/"+iso+`"}`)
	c.redfish(http.MethodPatch, s, `{"Boot": {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}}`)
	c.redfish(http.MethodPost, s+"/Actions/ComputerSystem.Reset", `{"ResetType": "On"}`)
}

// beat waits for a heartbeat.
func (c *conductor) beat() obj {
	c.t.Helper()
	select {
	case b := <-c.beats:
		return b
	case <-time.After(10 * time.Second):
		c.t.Fatal("no heartbeat")
		return nil
	}
}

// address is where the agent said that it answers.
func (c *conductor) address() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.callback
}

// tell gives the agent a command.
func (c *conductor) tell(token, name string, params obj) (int, obj) {
	c.t.Helper()
	b, _ := json.Marshal(obj{"name": name, "params": params})
	resp, err := http.Post(c.address()+"/v1/commands/?wait=false&agent_token="+url.QueryEscape(token), "application/json", bytes.NewReader(b)) //nolint:noctx // the test's own server
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	var out obj
	_ = json.NewDecoder(resp.Body).Decode(&out)
	return resp.StatusCode, out
}

// step has the agent run a step, and gives how that ended.
func (c *conductor) step(kind, name string, args obj) obj {
	c.t.Helper()
	status, _ := c.tell(token, kind+".execute_"+kind+"_step", obj{"step": obj{"interface": "deploy", "step": name, "args": args}, "node": obj{"target_raid_config": obj{"logical_disks": []any{obj{"raid_level": "1"}}}}})
	if status != http.StatusOK {
		c.t.Fatalf("%s: %d", name, status)
	}
	for range 1000 {
		last := c.commands()
		if last["command_status"] != "RUNNING" {
			return last
		}
		c.beat()
	}
	c.t.Fatalf("%s did not end", name)
	return nil
}

// commands gives the last command in the agent's list.
func (c *conductor) commands() obj {
	c.t.Helper()
	resp, err := http.Get(c.address() + "/v1/commands/") //nolint:noctx // the test's own server
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out struct{ Commands []obj }
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || len(out.Commands) == 0 {
		c.t.Fatalf("no commands: %v", err)
	}
	return out.Commands[len(out.Commands)-1]
}

func (c *conductor) eventually(what string, is func() bool) {
	c.t.Helper()
	end := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-end:
			c.t.Fatalf("%s: not so in ten seconds; the host is %+v", what, c.host.View())
		case <-tick.C:
		}
	}
}

func TestAnAgentReportsIsFoundAndBeats(t *testing.T) {
	c := newConductor(t)
	c.boot("agent.iso")
	b := c.beat()
	if b["agent_token"] != token || b["callback_url"] != c.url+"/agent/"+c.host.ID() || b["agent_version"] != agent.Version {
		t.Errorf("the heartbeat is %v", b)
	}
	if r := c.host.View().Running; r.Kind != bmcsim.RunsAgent {
		t.Errorf("the host runs %v", r)
	}
	c.mu.Lock()
	inventory, _ := c.report["inventory"].(obj)
	nics, _ := inventory["interfaces"].([]any)
	c.mu.Unlock()
	if len(nics) != len(c.host.MACs()) {
		t.Errorf("the report has %d interfaces, want %d", len(nics), len(c.host.MACs()))
	}
}

func TestAnotherImageIsNoAgent(t *testing.T) {
	c := newConductor(t)
	c.boot("live.iso")
	c.eventually("the live image runs", func() bool { return c.host.View().Running.Kind == bmcsim.RunsISO })
	if len(c.beats) > 0 {
		t.Errorf("a live image beats")
	}
}

func TestAnAgentIsFoundOnlyWhenItsNodeWaits(t *testing.T) {
	c := newConductor(t)
	c.waiting = false
	c.boot("agent.iso")
	c.eventually("the agent runs", func() bool { return c.host.View().Running.Kind == bmcsim.RunsAgent })
	if len(c.beats) > 0 {
		t.Errorf("an agent beats that nobody waits for")
	}
	c.mu.Lock()
	c.waiting = true
	c.mu.Unlock()
	c.beat()
}

func TestStepsAreCarriedOutAndEntered(t *testing.T) {
	c := newConductor(t)
	c.boot("agent.iso")
	c.beat()
	if status, _ := c.tell("wrong", "standby.sync", nil); status != http.StatusUnauthorized {
		t.Errorf("with a wrong token: %d", status)
	}
	if status, _ := c.tell(token, "no.such", nil); status != http.StatusNotFound {
		t.Errorf("an unknown command: %d", status)
	}
	_, got := c.tell(token, "clean.get_clean_steps", nil)
	result, _ := got["command_result"].(obj)
	if got["command_name"] != "get_clean_steps" || result["clean_steps"] == nil {
		t.Errorf("the steps of cleaning are %v", got)
	}
	drive := base64.StdEncoding.EncodeToString([]byte("a drive"))
	write := obj{"image_info": obj{"urls": []any{c.url + "/files/disk.raw"}, "os_hash_algo": "sha256", "os_hash_value": c.url + "/files/disk.raw.sha256sum"}, "configdrive": drive}
	if got := c.step("deploy", "write_image", write); got["command_status"] != "SUCCEEDED" {
		t.Errorf("write_image: %v", got)
	}
	want := agent.Disk{Image: c.url + "/files/disk.raw", Checksum: imageSum(), ConfigDrive: []byte("a drive"), Writes: 1}
	if diff := cmp.Diff(want, c.fleet.Disk(c.host)); diff != "" {
		t.Errorf("the disk (-want +got):\n%s", diff)
	}
	got = c.step("clean", "create_configuration", nil)
	result, _ = got["command_result"].(obj)
	if raid, _ := result["clean_result"].(obj); raid["logical_disks"] == nil {
		t.Errorf("the result of RAID is %v", got)
	}
	bad := obj{"image_info": obj{"urls": []any{c.url + "/files/disk.raw"}, "os_hash_value": strings.Repeat("0", 64)}}
	if got := c.step("deploy", "write_image", bad); got["command_status"] != "FAILED" || !strings.Contains(fmt.Sprint(got["command_error"]), "failed to verify against checksum") {
		t.Errorf("an image with another checksum: %v", got)
	}
	c.step("clean", "erase_devices_metadata", nil)
	if d := c.fleet.Disk(c.host); d.Erases != 1 || d.Image != "" {
		t.Errorf("erased: %+v", d)
	}
	c.fleet.SetFaults(c.host, agent.Faults{FailClean: "erase_devices"})
	if got := c.step("clean", "erase_devices", nil); got["command_status"] != "FAILED" {
		t.Errorf("the injected failure: %v", got)
	}
}

func TestAMachineThatIsOffHasNoAgent(t *testing.T) {
	c := newConductor(t)
	c.boot("agent.iso")
	c.beat()
	if status, _ := c.tell(token, "standby.power_off", nil); status != http.StatusOK {
		t.Errorf("power_off: %d", status)
	}
	c.eventually("the host is off", func() bool { return c.host.View().Power == "Off" })
	c.eventually("nobody answers", func() bool { status, _ := c.tell(token, "standby.sync", nil); return status == 0 })
}
