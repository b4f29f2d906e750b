package admission

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// validateRAID wants volumes of one kind, each of which can be made.
func validateRAID(host *v1alpha1.BareMetalHost, path *field.Path) field.ErrorList {
	raid := host.Spec.RAID
	if raid == nil {
		return nil
	}
	var errs field.ErrorList
	if len(raid.HardwareRAIDVolumes) > 0 && len(raid.SoftwareRAIDVolumes) > 0 {
		errs = append(errs, field.Forbidden(path,
			"hardwareRAIDVolumes and softwareRAIDVolumes can not be set at the same time; empty one of them"))
	}
	errs = append(errs, validateHardwareRAID(raid.HardwareRAIDVolumes, path.Child("hardwareRAIDVolumes"))...)
	return append(errs, validateSoftwareRAID(host, path.Child("softwareRAIDVolumes"))...)
}

func validateHardwareRAID(volumes []v1alpha1.HardwareRAIDVolume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, volume := range volumes {
		disks := len(volume.PhysicalDisks)
		if disks == 0 {
			continue
		}
		if volume.Controller == "" {
			errs = append(errs, field.Required(path.Index(i).Child("controller"),
				fmt.Sprintf("'physicalDisks' specified without 'controller' in hardware RAID volume %d", i)))
		}
		if n := volume.NumberOfPhysicalDisks; n != nil && *n != disks {
			errs = append(errs, field.Invalid(path.Index(i).Child("numberOfPhysicalDisks"), *n, fmt.Sprintf(
				"the 'numberOfPhysicalDisks'[%d] and number of 'physicalDisks'[%d] is not same for volume %d", *n, disks, i)))
		}
	}
	return errs
}

// validateSoftwareRAID wants at most one volume for the image, and a machine
// that can boot from it.
func validateSoftwareRAID(host *v1alpha1.BareMetalHost, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	roots := 0
	for i, volume := range host.Spec.RAID.SoftwareRAIDVolumes {
		if !volume.RootVolume {
			continue
		}
		roots++
		if volume.Level != "1" {
			errs = append(errs, field.Invalid(path.Index(i).Child("level"), volume.Level,
				fmt.Sprintf("softwareRAIDVolumes[%d] with rootVolume set must use RAID level 1", i)))
		}
	}
	switch {
	case roots > 1:
		errs = append(errs, field.Forbidden(path, "softwareRAIDVolumes[*].rootVolume can only be set once"))
	case roots == 1 && hasHints(host.Spec.RootDeviceHints):
		errs = append(errs, field.Forbidden(path,
			"softwareRAIDVolumes[*].rootVolume and rootDeviceHints can not be set at the same time; remove the hints"))
	}
	return errs
}

// hasHints says whether hints hint at anything; an empty object does not.
func hasHints(hints *v1alpha1.RootDeviceHints) bool {
	return hints != nil && !equality.Semantic.DeepEqual(*hints, v1alpha1.RootDeviceHints{})
}

// validateRootDeviceHints wants a device name that a backend knows how to look
// for: one in /dev, or the place on the bus.
func validateRootDeviceHints(hints *v1alpha1.RootDeviceHints, path *field.Path) field.ErrorList {
	if hints == nil || hints.DeviceName == "" {
		return nil
	}
	name, at := hints.DeviceName, path.Child("deviceName")
	rest, inDev := strings.CutPrefix(name, "/dev/")
	rest = strings.TrimPrefix(rest, "disk/by-path/")
	switch {
	case !inDev:
		return field.ErrorList{field.Invalid(at, name,
			fmt.Sprintf("device name of root device hint must be a /dev/ path, not %q", name))}
	case strings.Contains(rest, "/"):
		return field.ErrorList{field.Invalid(at, name,
			fmt.Sprintf("device name of root device hint must be path in /dev/ or /dev/disk/by-path/, not %q", name))}
	case rest == "":
		return field.ErrorList{field.Invalid(at, name,
			fmt.Sprintf("device name of root device hint must be a /dev/ path, not %q: the name of the device is missing", name))}
	default:
		return nil
	}
}

// profiles are the old names for where the root disk is.
func isProfile(name string) bool {
	return slices.Contains([]string{"unknown", "libvirt", "dell", "dell-raid", "openstack", "empty"}, name)
}
