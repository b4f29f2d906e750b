package bmcsim

import (
	"errors"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Task states of Redfish.
const (
	jobPending   = "Starting" // until the next boot
	jobRunning   = "Running"
	jobCompleted = "Completed"
	jobFailed    = "Exception"
)

// maxJobs bounds what a host remembers of its tasks.
const maxJobs = 16

// change is what a job does when it is done.
type change struct {
	Versions       versions `json:"versions,omitzero"`
	Volume         *volume  `json:"volume,omitempty"`
	DropController string   `json:"dropController,omitempty"`
	DropVolume     string   `json:"dropVolume,omitempty"`
}

// job is a long operation of the BMC: a Redfish task.
type job struct {
	ID      int    `json:"id"`
	State   string `json:"state"`
	AtBoot  bool   `json:"atBoot,omitempty"`
	Message string `json:"message,omitempty"`
	Change  change `json:"change"`
}

// apply makes a change. The caller holds h.mu.
func (h *Host) apply(c change) {
	for _, v := range []struct {
		to   *string
		from string
	}{{&h.versions.BIOS, c.Versions.BIOS}, {&h.versions.BMC, c.Versions.BMC}, {&h.versions.NIC, c.Versions.NIC}} {
		if v.from != "" {
			*v.to = v.from
		}
	}
	if c.Volume != nil {
		h.volumes = append(h.volumes, *c.Volume)
	}
	if i := h.volume(c.DropController, c.DropVolume); i >= 0 {
		h.volumes = slices.Delete(h.volumes, i, i+1)
	}
	h.touch()
}

// newJob begins a job: at once, or at the next boot.
func (h *Host) newJob(c change, atBoot bool) job {
	h.mu.Lock()
	defer h.mu.Unlock()
	j := &job{ID: 1, State: jobPending, AtBoot: atBoot, Change: c}
	if n := len(h.jobs); n > 0 {
		j.ID = h.jobs[n-1].ID + 1
	}
	if len(h.jobs) >= maxJobs {
		h.jobs = slices.Delete(h.jobs, 0, 1)
	}
	h.jobs = append(h.jobs, j)
	if !atBoot {
		h.run(j)
	}
	h.touch()
	return *j
}

// run lets a job go on to its end. The caller holds h.mu.
func (h *Host) run(j *job) {
	j.State = jobRunning
	d := h.sim.cfg.Delays.Task
	if d <= 0 {
		h.finish(j)
		return
	}
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if _, live := h.timers[t]; live {
			delete(h.timers, t)
			h.finish(j)
		}
	})
	if h.timers == nil {
		h.timers = map[*time.Timer]struct{}{}
	}
	h.timers[t] = struct{}{}
}

func (h *Host) finish(j *job) {
	if h.faults.FailTasks {
		j.State, j.Message = jobFailed, "The operation failed."
	} else {
		j.State = jobCompleted
		h.apply(j.Change)
	}
	h.touch()
}

// applyPending lets settings and jobs that waited for a boot take effect.
func (h *Host) applyPending() {
	if len(h.pending) > 0 {
		if h.settings == nil {
			h.settings = map[string]any{}
		}
		maps.Copy(h.settings, h.pending)
		h.pending = nil
	}
	for _, j := range h.jobs {
		if j.State == jobPending {
			h.run(j)
		}
	}
}

// accept answers with the task that a request became.
func (c *call) accept(j job) answer {
	return answer{status: http.StatusAccepted, body: c.taskBody(j), location: c.at("TaskService", "Tasks", strconv.Itoa(j.ID), "Monitor")}
}

func (c *call) taskBody(j job) obj {
	id := strconv.Itoa(j.ID)
	b := obj{
		"@odata.id": c.at("TaskService", "Tasks", id), "@odata.type": "#Task.v1_5_1.Task", "Id": id, "Name": "Task " + id, "TaskState": j.State, "TaskStatus": "OK",
		"PercentComplete": map[string]int{jobRunning: 50, jobCompleted: 100}[j.State], "TaskMonitor": c.at("TaskService", "Tasks", id, "Monitor"), "Messages": []obj{},
	}
	if j.State == jobFailed {
		b["TaskStatus"] = "Critical"
		b["Messages"] = []obj{{"MessageId": baseRegistry + "GeneralError", "Message": j.Message, "Severity": "Critical"}}
	}
	return b
}

// oneHost answers what belongs to the service but needs to know which host is
// meant, when the caller's credentials open several.
func oneHost() answer {
	return refuse(http.StatusBadRequest, "ActionParameterMissing", "Several systems are managed here: say which one is meant.")
}

func getTaskService(c *call) answer {
	b := c.resource("TaskService.v1_1_6.TaskService", "TaskService", "Task Service")
	b["ServiceEnabled"], b["Tasks"], b["Status"] = true, c.link("TaskService", "Tasks"), enabled()
	return ok(b)
}

func getTasks(c *call) answer {
	var ids []string
	for _, j := range c.jobs() {
		ids = append(ids, strconv.Itoa(j.ID))
	}
	return c.collection("Task", "Task Collection", ids...)
}

func getTask(c *call) answer {
	for _, j := range c.jobs() {
		if strconv.Itoa(j.ID) != c.id(0) {
			continue
		}
		a := ok(c.taskBody(j))
		if j.State == jobPending || j.State == jobRunning {
			a.status, a.location, a.retry = http.StatusAccepted, c.at(strings.Split(c.path, "/")...), time.Second
		}
		return a
	}
	return missing(root + "/" + c.path)
}

func (c *call) jobs() []job {
	if c.host == nil {
		return nil
	}
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	var out []job
	for _, j := range c.host.jobs {
		out = append(out, *j)
	}
	return out
}

func getUpdateService(c *call) answer {
	b := c.resource("UpdateService.v1_8_0.UpdateService", "UpdateService", "Update Service")
	b["ServiceEnabled"], b["Status"], b["FirmwareInventory"] = true, enabled(), c.link("UpdateService", "FirmwareInventory")
	b["Actions"] = obj{"#UpdateService.SimpleUpdate": obj{
		"target": c.at("UpdateService", "Actions", "UpdateService.SimpleUpdate"), "TransferProtocol@Redfish.AllowableValues": []string{"HTTP", "HTTPS"},
	}}
	return ok(b)
}

func getFirmwares(c *call) answer {
	return c.collection("SoftwareInventory", "Firmware Inventory Collection", "BIOS", "BMC", "NIC")
}

func getFirmware(c *call) answer {
	if c.host == nil {
		return oneHost()
	}
	c.host.mu.Lock()
	v, known := map[string]string{"BIOS": c.host.versions.BIOS, "BMC": c.host.versions.BMC, "NIC": c.host.versions.NIC}[c.id(0)]
	c.host.mu.Unlock()
	if !known {
		return missing(root + "/" + c.path)
	}
	b := c.resource("SoftwareInventory.v1_4_0.SoftwareInventory", c.id(0), c.id(0))
	b["Version"], b["Updateable"], b["Status"] = v, true, enabled()
	return ok(b)
}

// firmwareFile is how the name of a firmware file says what it is.
var firmwareFile = regexp.MustCompile(`^(bios|bmc|nic)-([0-9][0-9A-Za-z.]*)\.[a-z]+$`)

func parseFirmware(address string) (versions, error) {
	m := firmwareFile.FindStringSubmatch(path.Base(address))
	if m == nil {
		return versions{}, errors.New("the file's name must be like bios-2.0.0.bin, bmc-2.1.0.bin or nic-22.32.1.bin")
	}
	switch m[1] {
	case "bios":
		return versions{BIOS: m[2]}, nil
	case "bmc":
		return versions{BMC: m[2]}, nil
	default:
		return versions{NIC: m[2]}, nil
	}
}

func postUpdate(c *call) answer {
	var in struct {
		ImageURI string
		Targets  []string
	}
	if a, readable := c.body(&in); !readable {
		return a
	}
	if c.host == nil {
		c.aim(in.Targets)
	}
	if c.host == nil {
		return oneHost()
	}
	c.note("SimpleUpdate", map[string]string{"ImageURI": v1alpha1.WithoutLogin(in.ImageURI)})
	v, err := parseFirmware(in.ImageURI)
	if err != nil {
		return refuse(http.StatusBadRequest, "ActionParameterValueFormatError", "The image is not understood: "+err.Error()+".", "ImageURI")
	}
	if wrong := c.sim.fetchImage(c.r.Context(), in.ImageURI); wrong != "" {
		return refuse(http.StatusBadRequest, "ResourceAtUriUnauthorized", "While accessing the image, the service received an error: "+wrong)
	}
	return c.accept(c.host.newJob(change{Versions: v}, v.BIOS != ""))
}

// aim finds the host that an update names, among those that the caller's
// credentials open.
func (c *call) aim(targets []string) {
	for _, t := range targets {
		for _, h := range c.sim.owners(c.key) {
			if strings.Contains(t, h.uuid) {
				c.host = h
				return
			}
		}
	}
}
