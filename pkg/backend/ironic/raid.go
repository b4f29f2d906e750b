package ironic

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

const (
	raidNone  = "no-raid"
	raidAgent = "agent"
)

// raidPlan is what a cleaning is to do about RAID: nothing if it has no steps.
type raidPlan struct {
	disks []map[string]any // that are to be made
	steps []ironic.Step
}

// raid is the plan that brings a host from the RAID that it has to the one that it
// is to have. After a failure nobody knows what it has, and all is done again.
func (v view) raid() (raidPlan, error) {
	target, actual := lifecycle.TargetRAID(v.host), v.host.Provisioning.RAID
	if target == nil {
		return raidPlan{}, nil
	}
	if v.host.Provisioning.Failures > 0 || actual == nil {
		actual = &v1alpha1.RAIDConfig{}
	}
	if len(target.HardwareRAIDVolumes) == 0 && target.SoftwareRAIDVolumes != nil {
		return v.softwareRAID(target.SoftwareRAIDVolumes, actual.SoftwareRAIDVolumes)
	}
	return v.hardwareRAID(target.HardwareRAIDVolumes, actual.HardwareRAIDVolumes)
}

// raidInterface is the interface that a node needs for its RAID, "" if none is
// wanted.
func (v view) raidInterface() string {
	target, actual := lifecycle.TargetRAID(v.host), v.host.Provisioning.RAID
	switch {
	case target == nil:
		return ""
	case len(target.SoftwareRAIDVolumes) > 0, actual != nil && len(actual.SoftwareRAIDVolumes) > 0 && len(target.HardwareRAIDVolumes) == 0:
		return raidAgent
	default:
		return v.wish.family.Interfaces.RAID
	}
}

func (v view) softwareRAID(target, actual []v1alpha1.SoftwareRAIDVolume) (raidPlan, error) {
	if len(target)+len(actual) == 0 || reflect.DeepEqual(target, actual) {
		return raidPlan{}, nil
	}
	plan := raidPlan{steps: []ironic.Step{raidStep("delete_configuration"), {Interface: "deploy", Name: "erase_devices_metadata"}}}
	if len(target) == 0 {
		return plan, nil
	}
	disks, err := softwareDisks(target)
	if err != nil {
		return raidPlan{}, err
	}
	return v.made(plan, disks, slices.ContainsFunc(target, func(s v1alpha1.SoftwareRAIDVolume) bool { return s.RootVolume })), nil
}

func raidStep(name string) ironic.Step { return ironic.Step{Interface: "raid", Name: name} }

// made adds to a plan that disks are made. If nothing else says where the system
// goes, it goes to the first of them.
func (v view) made(plan raidPlan, disks []map[string]any, rootNamed bool) raidPlan {
	if !rootNamed && hintMap(lifecycle.Hints(v.host)) == nil {
		disks[0]["is_root_volume"] = true
	}
	plan.disks = disks
	plan.steps = append(plan.steps, raidStep("create_configuration"))
	return plan
}

func softwareDisks(volumes []v1alpha1.SoftwareRAIDVolume) ([]map[string]any, error) {
	if volumes[0].Level != "1" {
		return nil, errors.New("the level in first volume of software raid must be RAID1")
	}
	var disks []map[string]any
	for _, s := range volumes {
		d := logicalDisk(s.Level, s.SizeGibibytes)
		d["controller"] = "software"
		if s.RootVolume {
			d["is_root_volume"] = true
		}
		var physical []any
		for i := range s.PhysicalDisks {
			physical = append(physical, hintMap(&s.PhysicalDisks[i]))
		}
		if physical != nil {
			d["physical_disks"] = physical
		}
		disks = append(disks, d)
	}
	return disks, nil
}

// logicalDisk is a disk of a size in GiB, or of all that there is.
func logicalDisk(level string, size *int) map[string]any {
	d := map[string]any{"raid_level": level, "size_gb": "MAX"}
	if size != nil && *size > 0 {
		d["size_gb"] = *size
	}
	return d
}

func (v view) hardwareRAID(target, actual []v1alpha1.HardwareRAIDVolume) (raidPlan, error) {
	none := v.wish.family.Interfaces.RAID == raidNone || v.wish.family.Interfaces.RAID == ""
	switch {
	case none && len(target) > 0:
		return raidPlan{}, fmt.Errorf("RAID settings are defined, but the node's driver %s does not support RAID", raidNone)
	case none, target == nil, reflect.DeepEqual(target, actual):
		return raidPlan{}, nil
	}
	plan := raidPlan{steps: []ironic.Step{raidStep("delete_configuration")}}
	if len(target) == 0 {
		return plan, nil
	}
	if err := checkHardwareVolumes(target, v.wish.family.Interfaces.RAID); err != nil {
		return raidPlan{}, err
	}
	var disks []map[string]any
	for _, volume := range target {
		disks = append(disks, hardwareDisk(volume))
	}
	return v.made(plan, disks, false), nil
}

// checkHardwareVolumes says what is wrong with volumes before anything is cleaned.
func checkHardwareVolumes(volumes []v1alpha1.HardwareRAIDVolume, raidInterface string) error {
	var errs []error
	names := map[string]bool{}
	for i, v := range volumes {
		where := fmt.Sprintf("spec.raid.hardwareRAIDVolumes[%d]", i)
		if v.Name != "" && names[v.Name] {
			errs = append(errs, fmt.Errorf("%s.name: the name %q is used twice", where, v.Name))
		}
		names[v.Name] = true
		disks := len(v.PhysicalDisks)
		switch {
		case disks > 0 && v.Controller == "":
			errs = append(errs, fmt.Errorf("%s.controller: name the controller of the physicalDisks", where))
		case disks > 0 && v.NumberOfPhysicalDisks != nil && *v.NumberOfPhysicalDisks != disks:
			errs = append(errs, fmt.Errorf("%s.numberOfPhysicalDisks: is %d, and there are %d physicalDisks", where, *v.NumberOfPhysicalDisks, disks))
		case disks == 0 && (v.SizeGibibytes == nil || *v.SizeGibibytes == 0) && strings.Contains(raidInterface, "redfish"):
			errs = append(errs, fmt.Errorf("%s.sizeGibibytes: Ironic's %s RAID interface needs either a size, or controller and physicalDisks, to take all their space", where, raidInterface))
		}
	}
	return errors.Join(errs...)
}

func hardwareDisk(v v1alpha1.HardwareRAIDVolume) map[string]any {
	d := logicalDisk(v.Level, v.SizeGibibytes)
	setOrLeave(d, "volume_name", text(v.Name))
	setOrLeave(d, "controller", text(v.Controller))
	if len(v.PhysicalDisks) > 0 {
		d["physical_disks"] = v.PhysicalDisks
	}
	if v.NumberOfPhysicalDisks != nil {
		d["number_of_physical_disks"] = *v.NumberOfPhysicalDisks
	}
	if v.Rotational != nil {
		d["disk_type"] = "ssd"
		if *v.Rotational {
			d["disk_type"] = "hdd"
		}
	}
	return d
}
