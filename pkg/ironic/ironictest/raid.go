package ironictest

import (
	"fmt"
	"net/http"
)

// putRAID sets the RAID that a node is to have.
func putRAID(c *call) (answer, error) {
	n, err := c.unlocked()
	if err != nil {
		return nothing(err)
	}
	var target obj
	if err := c.json(&target); err != nil {
		return nothing(err)
	}
	if n.text("raid_interface") == "no-raid" {
		return nothing(refuse(http.StatusNotFound, "Driver %s does not support raid (disabled or not implemented).", n.text("driver")))
	}
	disks, isList := target["logical_disks"].([]any)
	if len(target) > 0 && !isList {
		return nothing(bad("RAID config validation error: 'logical_disks' is a required property"))
	}
	for _, x := range disks {
		d, _ := x.(obj)
		if d["raid_level"] == nil || d["size_gb"] == nil {
			return nothing(bad("RAID config validation error: 'raid_level' and 'size_gb' are required properties"))
		}
	}
	n.state.targetRAID = target
	return done(http.StatusNoContent)
}

// changeVolumes is a step of RAID through the BMC.
func (o *operation) changeVolumes(s step, wait, wake string) error {
	var target obj
	if err := o.with(func(n *node) { target = n.state.targetRAID }); err != nil {
		return err
	}
	var volumes []Volume
	if s.name == "create_configuration" {
		var err error
		if volumes, err = o.n.volumes(target); err != nil {
			return err
		}
	}
	if err := o.look(func(m *Machine) { m.setVolumes(volumes) }); err != nil {
		return err
	}
	if err := o.rebooted(wait, wake); err != nil {
		return err
	}
	now := stamp(o.i.cfg.Now())
	return o.with(func(n *node) {
		disks := []any{}
		for k, v := range volumes {
			disks = append(disks, obj{"id": fmt.Sprintf("Volume.%d", k+1), "name": v.Name, "controller": "RAID controller", "size_gb": v.GiB, "raid_level": v.Level})
		}
		n.state.raid = obj{"logical_disks": disks, "last_updated": now}
	})
}

// volumes reads what a target wants.
func (n *node) volumes(target obj) ([]Volume, error) {
	disks, _ := target["logical_disks"].([]any)
	if len(disks) == 0 {
		return nil, says("No target RAID configuration is set for node %s", n.uuid)
	}
	var all []Volume
	for _, x := range disks {
		d, _ := x.(obj)
		if d["size_gb"] == "MAX" && d["physical_disks"] == nil {
			return nil, fmt.Errorf("create_configuration called with invalid target_raid_configuration for node %s. 'physical_disks' is missing from logical_disk while 'size_gb'='MAX' was requested: %v", n.uuid, d)
		}
		v := Volume{}
		v.Name, _ = d["volume_name"].(string)
		v.Level, _ = d["raid_level"].(string)
		v.GiB, _ = d["size_gb"].(float64)
		all = append(all, v)
	}
	return all, nil
}

func (m *Machine) setVolumes(v []Volume) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.did(DidRAID, fmt.Sprintf("%d volumes", len(v)))
	m.volumes = v
}

// changeRAID is a step of software RAID.
func (m *Machine) changeRAID(step string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.did(DidRAID, step)
}
