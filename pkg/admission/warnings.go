package admission

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bmcaddress"
)

// maxPort is the greatest number of a TCP or UDP port.
const maxPort = 65535

// HostWarnings says what is allowed in a host and still likely to be a slip.
func HostWarnings(host *v1alpha1.BareMetalHost) []string {
	return slices.Concat(addressWarnings(host), fieldWarnings(host), annotationWarnings(host.Annotations))
}

func addressWarnings(host *v1alpha1.BareMetalHost) []string {
	address, err := bmcaddress.Parse(host.Spec.BMC.Address, false)
	if err != nil {
		return nil
	}
	var warnings []string
	if address.Host == "" {
		warnings = append(warnings, "spec.bmc.address names no host, so the BMC can not be reached")
	}
	if n, err := strconv.Atoi(address.PortOrDefault()); err != nil || n < 1 || n > maxPort {
		warnings = append(warnings, fmt.Sprintf("spec.bmc.address has the port %s, which is not from 1 to %d", address.Port, maxPort))
	}
	if strings.Contains(host.Spec.BMC.Address, "@") {
		warnings = append(warnings, "spec.bmc.address holds a login, which is ignored and can be read by whoever can read the host; "+
			"put it into the Secret that spec.bmc.credentialsName names")
	}
	return warnings
}

func fieldWarnings(host *v1alpha1.BareMetalHost) []string {
	var warnings []string
	if len(host.Spec.Taints) > 0 {
		warnings = append(warnings, "spec.taints is not used; set taints on the Node")
	}
	if profile := host.Spec.HardwareProfile; profile != "" && !isProfile(profile) {
		warnings = append(warnings, fmt.Sprintf("spec.hardwareProfile: no hardware profile named %q, the host will not be registered; "+
			"remove it and use rootDeviceHints", profile))
	}
	if len(host.Spec.NetworkInterfaces) > 0 {
		warnings = append(warnings, "spec.networkInterfaces are checked and kept: no service of metalbus sets switch ports yet")
	}
	return slices.Concat(warnings, Warnings(ImageLogins)(host.Spec.Image),
		unheard(host.Spec.Image, host.Spec.UserData, host.Spec.NetworkData, host.Spec.MetaData))
}

// unheard finds what a live image is told in vain: it has no config drive.
func unheard(image *v1alpha1.Image, user, network, meta *corev1.SecretReference) []string {
	if !image.IsLiveISO() {
		return nil
	}
	var fields []string
	for _, f := range []struct {
		name string
		ref  *corev1.SecretReference
	}{{"userData", user}, {"networkData", network}, {"metaData", meta}} {
		if f.ref != nil {
			fields = append(fields, "spec."+f.name)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return []string{strings.Join(fields, ", ") + ": not used, since an image of format " + v1alpha1.DiskFormatLiveISO +
		" is given no config drive; build what it is to know into the image, or use one that is written to a disk"}
}

// annotationWarnings finds annotations of ours that nobody reads, and words in
// them that mean nothing.
func annotationWarnings(annotations map[string]string) []string {
	var warnings []string
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		value := annotations[key]
		switch {
		case v1alpha1.IsRebootAnnotation(key):
			warnings = append(warnings, jsonWarnings(key, value, new(v1alpha1.RebootAnnotationArguments))...)
		case key == v1alpha1.DetachedAnnotation:
			warnings = append(warnings, detachedWarnings(value)...)
		case isStrange(key):
			warnings = append(warnings, fmt.Sprintf("annotation %s is not known and has no effect; known are %s",
				key, strings.Join(knownAnnotations(), ", ")))
		}
	}
	return warnings
}

func knownAnnotations() []string {
	return []string{
		v1alpha1.PausedAnnotation, v1alpha1.DetachedAnnotation, v1alpha1.StatusAnnotation,
		v1alpha1.RebootAnnotationPrefix, v1alpha1.InspectAnnotationPrefix, v1alpha1.HardwareDetailsAnnotation,
	}
}

// isStrange says whether key looks like one of ours and is none.
func isStrange(key string) bool {
	if slices.Contains(knownAnnotations(), key) {
		return false
	}
	for _, domain := range []string{v1alpha1.BareMetalHostFinalizer, v1alpha1.RebootAnnotationPrefix, v1alpha1.InspectAnnotationPrefix} {
		if key == domain || strings.HasPrefix(key, domain+"/") {
			return true
		}
	}
	return false
}

// detachedWarnings looks only at values that are meant to be JSON: any word may
// stand there.
func detachedWarnings(value string) []string {
	if !strings.HasPrefix(strings.TrimSpace(value), "{") {
		return nil
	}
	var args v1alpha1.DetachedAnnotationArguments
	warnings := jsonWarnings(v1alpha1.DetachedAnnotation, value, &args)
	switch args.DeleteAction {
	case "", v1alpha1.DetachedDeleteActionDelay, v1alpha1.DetachedDeleteActionDelete:
		return warnings
	default:
		return append(warnings, fmt.Sprintf("annotation %s: deleteAction %q is not known and means delete; known are delay and delete",
			v1alpha1.DetachedAnnotation, args.DeleteAction))
	}
}

// jsonWarnings finds in the JSON object value what args has no field for.
func jsonWarnings(key, value string, args any) []string {
	if value == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(value), args); err != nil {
		return []string{fmt.Sprintf("annotation %s is not understood and counts as empty: %v", key, err)}
	}
	if err := decodeStrict(value, args); err != nil {
		return []string{fmt.Sprintf("annotation %s holds something that has no effect: %v", key, err)}
	}
	return nil
}
