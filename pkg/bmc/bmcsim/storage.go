package bmcsim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// volume is a RAID volume of a controller.
type volume struct {
	Controller string   `json:"controller"`
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	RAID       string   `json:"raid"`
	Bytes      int64    `json:"bytes"`
	Drives     []string `json:"drives"`
}

func (p *profile) controller(id string) *controllerShape {
	for i := range p.controllers {
		if p.controllers[i].id == id {
			return &p.controllers[i]
		}
	}
	return nil
}

func getStorages(c *call) answer {
	var ids []string
	for _, x := range c.host.shape.controllers {
		ids = append(ids, x.id)
	}
	return c.collection("Storage", "Storage Collection", ids...)
}

func getStorage(c *call) answer {
	x := c.host.shape.controller(c.id(1))
	if x == nil {
		return missing(root + "/" + c.path)
	}
	b := c.resource("Storage.v1_10_0.Storage", x.id, x.name)
	drives := make([]link, 0, len(x.disks))
	for _, d := range x.disks {
		if d.chassis {
			drives = append(drives, link{c.chassis("Drives", d.id)})
			continue
		}
		drives = append(drives, link{c.system("Storage", x.id, "Drives", d.id)})
	}
	b["Drives"], b["Drives@odata.count"], b["Status"] = drives, len(drives), enabled()
	ctl := obj{"MemberId": x.id, "Name": x.name, "Status": enabled()}
	if x.raid {
		ctl["SupportedRAIDTypes"] = raidTypes()
	}
	if x.raid || c.host.shape.emptyVolumes {
		b["Volumes"] = link{c.system("Storage", x.id, "Volumes")}
	}
	b["StorageControllers"] = []obj{ctl}
	return ok(b)
}

func raidTypes() []string { return []string{"RAID0", "RAID1", "RAID5", "RAID6", "RAID10"} }

func getDrive(c *call) answer {
	if x := c.host.shape.controller(c.id(1)); x != nil {
		for _, d := range x.disks {
			if d.id == c.id(2) && !d.chassis {
				return c.driveBody(d)
			}
		}
	}
	return missing(root + "/" + c.path)
}

func getChassisDrive(c *call) answer {
	for _, x := range c.host.shape.controllers {
		for _, d := range x.disks {
			if d.id == c.id(1) && d.chassis {
				return c.driveBody(d)
			}
		}
	}
	return missing(root + "/" + c.path)
}

func (c *call) driveBody(d diskShape) answer {
	b := c.resource("Drive.v1_11_0.Drive", d.id, d.name)
	b["CapacityBytes"], b["MediaType"], b["Protocol"], b["Manufacturer"], b["Model"] = d.bytes, d.media, d.protocol, d.maker, d.model
	b["BlockSizeBytes"], b["SerialNumber"], b["Status"] = 512, c.host.id.serial("disk/"+d.id, 12), enabled()
	if d.rpm > 0 {
		b["RotationSpeedRPM"] = d.rpm
	}
	if d.naming != "" {
		b["Identifiers"] = []obj{{"DurableNameFormat": d.naming, "DurableName": c.host.id.naa(d.id)}}
	}
	return ok(b)
}

func getSimpleStorages(c *call) answer {
	if len(c.host.shape.simple) == 0 {
		return missing(root + "/" + c.path)
	}
	return c.collection("SimpleStorage", "Simple Storage Collection", "1")
}

func getSimpleStorage(c *call) answer {
	if len(c.host.shape.simple) == 0 || c.id(1) != "1" {
		return missing(root + "/" + c.path)
	}
	var devices []obj
	for _, d := range c.host.shape.simple {
		devices = append(devices, obj{"Name": d.name, "Manufacturer": d.maker, "Model": d.model, "CapacityBytes": d.bytes, "Status": enabled()})
	}
	b := c.resource("SimpleStorage.v1_3_0.SimpleStorage", "1", "NVMe")
	b["Devices"], b["Status"] = devices, enabled()
	return ok(b)
}

// raid gives the controller that was asked for, if it has volumes.
func (c *call) raid() *controllerShape {
	if x := c.host.shape.controller(c.id(1)); x != nil && x.raid {
		return x
	}
	return nil
}

func (c *call) applyTime() string {
	if c.host.shape.raidOnReset {
		return "OnReset"
	}
	return "Immediate"
}

func getVolumes(c *call) answer {
	if x := c.host.shape.controller(c.id(1)); x == nil || !x.raid && !c.host.shape.emptyVolumes {
		return missing(root + "/" + c.path)
	}
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	var ids []string
	for _, v := range c.host.volumes {
		if v.Controller == c.id(1) {
			ids = append(ids, v.ID)
		}
	}
	a := c.collection("Volume", "Volume Collection", ids...)
	body, _ := a.body.(obj)
	body["@Redfish.OperationApplyTimeSupport"] = obj{"@odata.type": "#Settings.v1_3_0.OperationApplyTimeSupport", "SupportedValues": []string{c.applyTime()}}
	return a
}

func getVolume(c *call) answer {
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	i := c.host.volume(c.id(1), c.id(2))
	if i < 0 {
		return missing(root + "/" + c.path)
	}
	v := c.host.volumes[i]
	b := c.resource("Volume.v1_6_0.Volume", v.ID, v.Name)
	b["RAIDType"], b["CapacityBytes"], b["Status"] = v.RAID, v.Bytes, enabled()
	var drives []link
	for _, d := range v.Drives {
		drives = append(drives, link{c.system("Storage", v.Controller, "Drives", d)})
	}
	b["Links"] = obj{"Drives": drives}
	return ok(b)
}

func (h *Host) volume(controller, id string) int {
	return slices.IndexFunc(h.volumes, func(v volume) bool { return v.Controller == controller && v.ID == id })
}

type newVolume struct {
	Name          string
	RAIDType      string
	CapacityBytes int64
	Links         struct{ Drives []link }
}

func postVolume(c *call) answer {
	x := c.raid()
	if x == nil {
		return missing(root + "/" + c.path)
	}
	var in newVolume
	if a, readable := c.body(&in); !readable {
		return a
	}
	var drives []string
	for _, d := range in.Links.Drives {
		d := strings.TrimRight(d.ID, "/")
		drives = append(drives, d[strings.LastIndex(d, "/")+1:])
	}
	c.note("CreateVolume", map[string]string{"Name": in.Name, "RAIDType": in.RAIDType, "Drives": strings.Join(drives, ",")})
	if !slices.Contains(raidTypes(), in.RAIDType) || len(drives) == 0 {
		return refuse(http.StatusBadRequest, "PropertyMissing", "A volume needs a RAIDType that the controller supports, and Links.Drives.", "RAIDType")
	}
	h := c.host
	return c.changeVolumes(http.StatusCreated, change{Volume: &volume{
		Controller: x.id, ID: fmt.Sprintf("Disk.Virtual.%d:%s", h.nextVolume(), x.id), Name: in.Name, RAID: in.RAIDType, Bytes: in.CapacityBytes, Drives: drives,
	}})
}

// nextVolume is a number that no volume has yet.
func (h *Host) nextVolume() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.volumes) + len(h.jobs)
	return n
}

func deleteVolume(c *call) answer {
	c.note("DeleteVolume", map[string]string{"Volume": c.id(2)})
	c.host.mu.Lock()
	i := c.host.volume(c.id(1), c.id(2))
	c.host.mu.Unlock()
	if i < 0 {
		return missing(root + "/" + c.path)
	}
	return c.changeVolumes(http.StatusNoContent, change{DropController: c.id(1), DropVolume: c.id(2)})
}

// changeVolumes carries a change out at once, or at the next boot as a job.
func (c *call) changeVolumes(status int, ch change) answer {
	if c.host.shape.raidOnReset {
		return c.accept(c.host.newJob(ch, true))
	}
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	c.host.apply(ch)
	a := answer{status: status}
	if ch.Volume != nil {
		a.location = c.system("Storage", ch.Volume.Controller, "Volumes", ch.Volume.ID)
	}
	return a
}
