package admission

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Numbers of VLANs.
const (
	minVLAN = 1
	maxVLAN = 4094
)

// ValidateAttachment says what is wrong with a HostNetworkAttachment.
func ValidateAttachment(attachment *v1alpha1.HostNetworkAttachment) field.ErrorList {
	path := field.NewPath("spec", "allowedVLANs")
	vlans := attachment.Spec.AllowedVLANs
	if attachment.Spec.Mode == v1alpha1.SwitchportModeAccess && len(vlans) > 0 {
		return field.ErrorList{field.Forbidden(path, "allowedVLANs cannot be specified for access mode; use trunk or hybrid")}
	}
	var errs field.ErrorList
	for i, entry := range vlans {
		if problem := problemWithVLANs(entry); problem != "" {
			errs = append(errs, field.Invalid(path.Index(i), entry, fmt.Sprintf("allowedVLANs[%d] %q: %s", i, entry, problem)))
		}
	}
	return errs
}

// problemWithVLANs says what is wrong with a VLAN or a range of them.
func problemWithVLANs(entry string) string {
	first, last, isRange := strings.Cut(entry, "-")
	from, fromOK := vlan(first)
	if !isRange {
		if !fromOK {
			return fmt.Sprintf("it must be a number from %d to %d", minVLAN, maxVLAN)
		}
		return ""
	}
	to, toOK := vlan(last)
	switch {
	case !fromOK || !toOK:
		return fmt.Sprintf("both ends must be numbers from %d to %d", minVLAN, maxVLAN)
	case from >= to:
		return "the first number must be less than the second"
	default:
		return ""
	}
}

func vlan(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= minVLAN && n <= maxVLAN
}

// ValidateAttachmentUpdate says what is wrong with a change of a
// HostNetworkAttachment. An unchanged spec is always right; a changed one is
// refused while hosts refer to it. users are what AttachmentUsers found.
func ValidateAttachmentUpdate(before, after *v1alpha1.HostNetworkAttachment, users []string) field.ErrorList {
	if equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return nil
	}
	if errs := ValidateAttachment(after); len(errs) > 0 || len(users) == 0 {
		return errs
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec"),
		"HostNetworkAttachment spec is immutable while referenced by BMH interfaces: "+strings.Join(users, ", "))}
}

// ValidateAttachmentDeletion refuses to delete a HostNetworkAttachment while
// hosts refer to it, and returns the warning that goes with the refusal. users
// are what AttachmentUsers found.
func ValidateAttachmentDeletion(users []string) (errs field.ErrorList, warnings []string) {
	if len(users) == 0 {
		return nil, nil
	}
	list := strings.Join(users, ", ")
	return field.ErrorList{field.Forbidden(field.NewPath("metadata"),
			"cannot delete attachment while referenced by BMH interfaces: "+list)},
		[]string{"This attachment is referenced by: " + list}
}

// AttachmentKeys names each HostNetworkAttachment that a host refers to as
// namespace/name, to find the host by in an index.
func AttachmentKeys(host *v1alpha1.BareMetalHost) []string {
	var keys []string
	for i := range host.Spec.NetworkInterfaces {
		if key := attachmentKey(host, &host.Spec.NetworkInterfaces[i]); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// AttachmentUsers lists which interfaces of hosts refer to the attachment, each
// as namespace/name[interface]. hosts may hold others too.
func AttachmentUsers(namespace, name string, hosts []v1alpha1.BareMetalHost) []string {
	var users []string
	for h := range hosts {
		host := &hosts[h]
		for i := range host.Spec.NetworkInterfaces {
			nic := &host.Spec.NetworkInterfaces[i]
			if attachmentKey(host, nic) == namespace+"/"+name {
				users = append(users, fmt.Sprintf("%s/%s[%s]", host.Namespace, host.Name, nicName(nic)))
			}
		}
	}
	return users
}

// attachmentKey names what an interface refers to; nothing if it refers to
// nothing.
func attachmentKey(host *v1alpha1.BareMetalHost, nic *v1alpha1.NetworkInterface) string {
	ref := nic.HostNetworkAttachment
	switch {
	case ref.Name == "":
		return ""
	case ref.Namespace == "":
		return host.Namespace + "/" + ref.Name
	default:
		return ref.Namespace + "/" + ref.Name
	}
}

func nicName(nic *v1alpha1.NetworkInterface) string {
	if nic.Name != "" {
		return nic.Name
	}
	return nic.MACAddress
}
