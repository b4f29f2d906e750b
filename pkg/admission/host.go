package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// maxNodeName is the greatest length of a node's name in Ironic, which is the
// host's namespace and name with a tilde between them.
const maxNodeName = 255

// ValidateHost says what is wrong with a host, all of it at once.
func ValidateHost(host *v1alpha1.BareMetalHost) field.ErrorList {
	spec := field.NewPath("spec")
	return slices.Concat(
		validateHostName(host),
		validateBMC(host, spec),
		validateFirmware(host, spec),
		validateHostSecrets(host, spec),
		validateRAID(host, spec.Child("raid")),
		validateRootDeviceHints(host.Spec.RootDeviceHints, spec.Child("rootDeviceHints")),
		validateImage(host.Spec.Image, spec.Child("image")),
		validateHostAnnotations(host),
		validateInspectionMode(host, spec.Child("inspectionMode")),
		validatePower(host, spec.Child("disablePowerOff")),
		validateNetworkInterfaces(host.Spec.NetworkInterfaces, spec.Child("networkInterfaces")),
	)
}

// ValidateHostUpdate says what is wrong with a change of a host from before to
// after. As long as the spec stays as it is, faults that the host had already
// are let be: whoever adds a label or removes a finalizer did not bring them
// in, and must not be held up by them.
func ValidateHostUpdate(before, after *v1alpha1.BareMetalHost) field.ErrorList {
	errs := ValidateHost(after)
	if equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		errs = without(errs, ValidateHost(before))
	}
	return append(errs, validateHostChange(before, after)...)
}

// ValidateHostDeletion refuses to delete a host that somebody uses, unless the
// host says that it may be, or was moved to another cluster. Whether to ask is
// for the administrator to say.
func ValidateHostDeletion(host *v1alpha1.BareMetalHost) field.ErrorList {
	ref := host.Spec.ConsumerRef
	if ref == nil {
		return nil
	}
	for _, key := range []string{v1alpha1.AllowDeletionAnnotation, v1alpha1.DeleteForMoveAnnotation} {
		if _, allowed := host.Annotations[key]; allowed {
			return nil
		}
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "consumerRef"), fmt.Sprintf(
		"the host is used by %s %s/%s; delete that, or set the annotation %s first",
		ref.Kind, ref.Namespace, ref.Name, v1alpha1.AllowDeletionAnnotation))}
}

// without returns the errors that are not in known.
func without(errs, known field.ErrorList) field.ErrorList {
	return slices.DeleteFunc(errs, func(err *field.Error) bool {
		return slices.ContainsFunc(known, func(k *field.Error) bool {
			return k.Type == err.Type && k.Field == err.Field && k.Detail == err.Detail
		})
	})
}

// validateHostChange holds the rules on what may follow what.
func validateHostChange(before, after *v1alpha1.BareMetalHost) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if old := before.Spec.BMC.Address; old != "" && old != after.Spec.BMC.Address && !mayChangeAddress(before, after) {
		errs = append(errs, field.Forbidden(spec.Child("bmc", "address"),
			"BMC address can not be changed if the BMH is not in the Registering state, or if the BMH is not detached; "+
				"set the annotation "+v1alpha1.DetachedAnnotation+" first"))
	}
	if old := before.Spec.BootMACAddress; old != "" && !strings.EqualFold(old, after.Spec.BootMACAddress) {
		errs = append(errs, field.Forbidden(spec.Child("bootMACAddress"),
			"bootMACAddress can not be changed once it is set; the host has to be created anew "+
				"(detach a provisioned one before you delete it)"))
	}
	if !before.Spec.ExternallyProvisioned && after.Spec.ExternallyProvisioned && !eitherIn(before, after, v1alpha1.StateAvailable) {
		errs = append(errs, field.Forbidden(spec.Child("externallyProvisioned"),
			"externallyProvisioned can only be enabled when in Available state, currently in "+string(after.Status.Provisioning.State)))
	}
	return errs
}

func mayChangeAddress(before, after *v1alpha1.BareMetalHost) bool {
	const detached = v1alpha1.OperationalStatusDetached
	return before.Status.OperationalStatus == detached || after.Status.OperationalStatus == detached ||
		eitherIn(before, after, v1alpha1.StateRegistering)
}

func eitherIn(before, after *v1alpha1.BareMetalHost, state v1alpha1.ProvisioningState) bool {
	return before.Status.Provisioning.State == state || after.Status.Provisioning.State == state
}

// validateHostName refuses names that a backend could not carry.
func validateHostName(host *v1alpha1.BareMetalHost) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("metadata", "name")
	name := host.Name
	if strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) }) {
		errs = append(errs, field.Invalid(path, name, "BareMetalHost resource name cannot contain characters other than [A-Za-z0-9._-]"))
	}
	if _, err := uuid.Parse(name); err == nil {
		errs = append(errs, field.Invalid(path, name, "BareMetalHost resource name cannot be a UUID"))
	}
	if most := maxNodeName - len(host.Namespace) - 1; len(name) > most {
		errs = append(errs, field.TooLong(path, name, most))
	}
	return errs
}

func isNameRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '_' || r == '-'
}

func validateFirmware(host *v1alpha1.BareMetalHost, spec *field.Path) field.ErrorList {
	if host.Spec.Firmware == nil {
		return nil
	}
	return field.ErrorList{field.Forbidden(spec.Child("firmware"),
		"the Firmware field is no longer supported, use HostFirmwareSettings resource instead")}
}

func validateInspectionMode(host *v1alpha1.BareMetalHost, path *field.Path) field.ErrorList {
	switch mode := host.Spec.InspectionMode; mode {
	case "", v1alpha1.InspectionModeDisabled, v1alpha1.InspectionModeAgent, v1alpha1.InspectionModeFast:
		return nil
	default:
		return field.ErrorList{field.Invalid(path, mode,
			fmt.Sprintf("invalid inspectionMode value: %s, allowed are disabled, agent and fast", mode))}
	}
}

func validatePower(host *v1alpha1.BareMetalHost, path *field.Path) field.ErrorList {
	if !host.Spec.DisablePowerOff || host.Spec.Online {
		return nil
	}
	return field.ErrorList{field.Invalid(path, true,
		"node can't simultaneously have online set to false and have power off disabled; set online to true, or disablePowerOff to false")}
}

// validateNetworkInterfaces wants each interface to choose one NIC, and each
// NIC to be chosen once.
func validateNetworkInterfaces(interfaces []v1alpha1.NetworkInterface, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[string]bool, len(interfaces))
	for i := range interfaces {
		nic, at := &interfaces[i], path.Index(i)
		label := fmt.Sprintf("networkInterfaces[%d]: ", i)
		if !nic.IsValid() {
			errs = append(errs, field.Required(at, label+"must specify either name or macAddress"))
			continue
		}
		if nic.Name != "" && nic.MACAddress != "" {
			errs = append(errs, field.Forbidden(at, label+"name and macAddress are mutually exclusive"))
		}
		if key := nic.Key(); seen[key] {
			errs = append(errs, field.Duplicate(at, key))
			errs[len(errs)-1].Detail = fmt.Sprintf("%sduplicate interface selector for %q", label, key)
		} else {
			seen[key] = true
		}
	}
	return errs
}
