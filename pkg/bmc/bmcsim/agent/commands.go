package agent

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// command is what the agent was told, and how it stands.
type command struct {
	ID     string `json:"id"`
	Name   string `json:"command_name"` // without the extension that it is of
	Params obj    `json:"command_params"`
	Status string `json:"command_status"`
	Error  any    `json:"command_error"`
	Result any    `json:"command_result"`
}

const (
	running   = "RUNNING"
	succeeded = "SUCCEEDED"
	failed    = "FAILED"
)

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // made of what JSON is made of
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // the caller may have gone
}

func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	writeJSON(w, status, obj{"faultcode": "Client", "faultstring": fmt.Sprintf(format, args...), "code": status})
}

func (a *agent) status(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, obj{"started_at": 0, "version": Version})
}

func (a *agent) list(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := []command{}
	for _, c := range a.commands {
		all = append(all, *c)
	}
	writeJSON(w, http.StatusOK, obj{"commands": all})
}

// command takes a command. Only one runs at a time, and only steps take their
// time: all else is done when it is answered.
func (a *agent) command(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name   string `json:"name"`
		Params obj    `json:"params"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, "Invalid command: %v", err)
		return
	}
	_, name, isCommand := strings.Cut(in.Name, ".")
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case r.URL.Query().Get("agent_token") != a.token:
		refuse(w, http.StatusUnauthorized, "Invalid agent_token")
		return
	case !isCommand:
		refuse(w, http.StatusBadRequest, "Invalid command: %s", in.Name)
		return
	case slices.ContainsFunc(a.commands, func(c *command) bool { return c.Status == running }):
		refuse(w, http.StatusConflict, "Agent is busy")
		return
	}
	c := &command{ID: fmt.Sprintf("%s-%d", a.boot.Host.ID(), len(a.commands)), Name: name, Params: obj{}, Status: running}
	if !a.begin(c, in.Name, in.Params) {
		refuse(w, http.StatusNotFound, "Unknown command: %s", in.Name)
		return
	}
	a.commands = append(a.commands, c)
	writeJSON(w, http.StatusOK, *c)
}

// begin carries a command out, or starts to. It tells whether there is such a
// command. The caller holds a.mu.
func (a *agent) begin(c *command, full string, params obj) bool {
	switch full {
	case "clean.get_clean_steps", "deploy.get_deploy_steps", "service.get_service_steps":
		kind, _, _ := strings.Cut(full, ".")
		c.end(obj{kind + "_steps": obj{"SimulatedHardwareManager": offered(kind)}, "hardware_manager_version": obj{"SimulatedHardwareManager": "1.0"}}, nil)
	case "clean.execute_clean_step", "deploy.execute_deploy_step", "service.execute_service_step":
		kind, _, _ := strings.Cut(full, ".")
		go a.runStep(c, kind, params)
	case "standby.get_partition_uuids":
		c.end(obj{}, nil)
	case "image.install_bootloader", "standby.sync", "system.lockdown":
		c.end(nil, nil)
	case "log.collect_system_logs":
		c.end(obj{"system_logs": base64.StdEncoding.EncodeToString([]byte("a simulated agent keeps no log"))}, nil)
	case "standby.power_off", "standby.run_image":
		c.end(nil, nil)
		go a.boot.PowerOff()
	default:
		return false
	}
	return true
}

func (c *command) end(result any, err error) {
	c.Status, c.Result = succeeded, result
	if err != nil {
		c.Status, c.Result = failed, nil
		c.Error = obj{"type": "DeploymentError", "code": http.StatusInternalServerError, "message": "Error performing " + c.Name, "details": err.Error()}
	}
}

// runStep carries out a step, and beats when it is done.
func (a *agent) runStep(c *command, kind string, params obj) {
	step, _ := params["step"].(obj)
	result, err := a.step(kind, step, params)
	a.mu.Lock()
	c.end(obj{kind + "_result": result, kind + "_step": step}, err)
	a.mu.Unlock()
	a.beatSoon()
}

// offered are the steps that the agent has to offer for cleaning, deployment or
// service.
func offered(kind string) []obj {
	step := func(name, iface string, priority int) obj {
		return obj{"step": name, "interface": iface, "priority": priority, "reboot_requested": false, "abortable": true}
	}
	switch kind {
	case "clean":
		return []obj{
			step("erase_devices", "deploy", 10), step("erase_devices_metadata", "deploy", 99),
			step("delete_configuration", "raid", 0), step("create_configuration", "raid", 0),
		}
	case "deploy":
		return []obj{step("write_image", "deploy", 0), step("apply_configuration", "raid", 0), step("install_os", "deploy", 0)}
	default:
		return []obj{step("burnin_cpu", "deploy", 0), step("apply_configuration", "raid", 0)}
	}
}

func (a *agent) step(kind string, step, params obj) (any, error) {
	name, _ := step["step"].(string)
	faults := a.fleet.Faults(a.boot.Host)
	if !a.sleep(max(faults.Step, a.fleet.cfg.Step)) {
		return nil, errors.New("the power is gone")
	}
	faults = a.fleet.Faults(a.boot.Host)
	if name == map[string]string{"clean": faults.FailClean, "deploy": faults.FailDeploy, "service": faults.FailService}[kind] {
		return nil, fmt.Errorf("injected failure of %s", name)
	}
	switch name {
	case "erase_devices", "erase_devices_metadata":
		a.erase()
	case "write_image":
		args, _ := step["args"].(obj)
		return "image written", a.write(args)
	case "create_configuration", "apply_configuration":
		return raidOf(params), nil
	}
	return nil, nil
}

// raidOf is the RAID that a node is to have.
func raidOf(params obj) any {
	node, _ := params["node"].(obj)
	if target, _ := node["target_raid_config"].(obj); len(target) > 0 {
		return target
	}
	return obj{"logical_disks": []any{}}
}

func (a *agent) erase() {
	a.fleet.mu.Lock()
	defer a.fleet.mu.Unlock()
	d := &a.fleet.place(a.boot.Host.ID()).disk
	d.Image, d.Checksum, d.ConfigDrive = "", "", nil
	d.Erases++
	a.boot.WriteDisk("")
}
