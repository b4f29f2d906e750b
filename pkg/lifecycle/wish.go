package lifecycle

import (
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

func opID(k event.Kind, rev uint64) string { return fmt.Sprintf("%s-%d", k, rev) }

func metav1Time(t time.Time) metav1.Time { return metav1.NewTime(t.UTC().Truncate(time.Second)) }

// BootMode is the boot mode in effect: UEFI unless the specification says otherwise.
func BootMode(i event.Intent) v1alpha1.BootMode {
	if i.Spec.BootMode == "" {
		return v1alpha1.UEFI
	}
	return i.Spec.BootMode
}

// Managed reports whether the host has BMC details.
func Managed(i event.Intent) bool {
	return i.Spec.BMC.Address != "" || i.Spec.BMC.CredentialsName != ""
}

// Leaving reports whether the host is being deleted, and nothing holds that up:
// one that is to be attached again first waits for that, unless it is in vain.
// The intent of a paused host does not show a deletion until it is resumed.
func Leaving(h Host) bool {
	i := h.Intent
	switch {
	case i.DeletedAt.IsZero():
		return false
	case i.Detached != nil:
		return !i.Detached.Delay
	default:
		return !h.Registration.Detached || h.Registration.Removed || GaveUp(h, h.Registration.Work)
	}
}

// Apart reports whether the host is, or is to be, out of its backend at the
// user's wish: nothing is begun on it. One that is busy is first brought to
// rest, unless its user says that it is to be detached by force.
func Apart(h Host) bool {
	asked := h.Intent.Detached
	return h.Registration.Detached || (asked != nil && (asked.Force || AtRest(Stage(h))))
}

// AtRest reports whether a host may stay in the state for ever.
func AtRest(s v1alpha1.ProvisioningState) bool { return s == available || Used(s) }

// WantsImage reports whether the specification asks for something on the disk
// that is not there. Only an online host is provisioned, and only if all that
// its specification names may be used.
func WantsImage(h Host) bool {
	spec, p := h.Intent.Spec, h.Provisioning
	if !spec.Online || h.Intent.Invalid != nil {
		return false
	}
	if spec.CustomDeploy != nil && spec.CustomDeploy.Method != "" {
		return p.CustomDeploy == nil || p.CustomDeploy.Method != spec.CustomDeploy.Method
	}
	return spec.Image != nil && spec.Image.URL != "" && p.Image.URL == ""
}

// Cancelled reports whether what is on the disk is no longer what the
// specification asks for. Only the image's URL and the custom deploy method
// count: nothing else is worth wiping a machine for. Neither is another image
// that could not be brought to it.
func Cancelled(h Host) bool {
	spec, p := h.Intent.Spec, h.Provisioning
	var want, wantMethod, have, haveMethod string
	if spec.Image != nil {
		want = spec.Image.URL
	}
	if spec.CustomDeploy != nil {
		wantMethod = spec.CustomDeploy.Method
	}
	have = v1alpha1.WithoutLogin(p.Image.URL) // an intent holds none
	if p.CustomDeploy != nil {
		haveMethod = p.CustomDeploy.Method
	}
	switch {
	case Refused(h, v1alpha1.ProvisioningError) && (want != "" || wantMethod != ""):
		return false
	case wantMethod != "":
		return (haveMethod != "" && haveMethod != wantMethod) || (have != "" && want != have)
	case haveMethod != "":
		return true
	case want == "":
		return true
	default:
		return have != "" && want != have
	}
}

// SameImage compares two images in whole; nil is an image of its own.
func SameImage(a, b *v1alpha1.Image) bool { return reflect.DeepEqual(a, b) }

// TargetRAID is the RAID configuration that the host should have: nil for
// "leave it alone". Lists that were asked for once and no longer are: hardware
// volumes stay, software volumes go.
func TargetRAID(h Host) *v1alpha1.RAIDConfig {
	want, have := h.Intent.Spec.RAID, h.Provisioning.RAID
	if asksRAID(want) {
		return want.DeepCopy()
	}
	if have == nil {
		return nil
	}
	target := &v1alpha1.RAIDConfig{SoftwareRAIDVolumes: []v1alpha1.SoftwareRAIDVolume{}}
	if len(have.HardwareRAIDVolumes) > 0 {
		target.HardwareRAIDVolumes = have.DeepCopy().HardwareRAIDVolumes
	}
	return target
}

func asksRAID(r *v1alpha1.RAIDConfig) bool {
	return r != nil && (r.HardwareRAIDVolumes != nil || r.SoftwareRAIDVolumes != nil)
}

// Unsettled reports whether the host has to be prepared again before it can be
// used: RAID or firmware is to be changed.
func Unsettled(h Host) bool { return unsettledRAID(h) || !FirmwareChanges(h).Empty() }

// unsettledRAID: where no RAID is asked for there is only software RAID to be removed.
func unsettledRAID(h Host) bool {
	have := h.Provisioning.RAID
	if !asksRAID(h.Intent.Spec.RAID) {
		return have != nil && len(have.SoftwareRAIDVolumes) > 0
	}
	return !reflect.DeepEqual(TargetRAID(h), have)
}

// Hints are the root device hints in effect: the specification's, else those
// of the hardware profile; nil where a software RAID volume is the root.
func Hints(h Host) *v1alpha1.RootDeviceHints {
	spec := h.Intent.Spec
	if spec.RAID != nil {
		for _, v := range spec.RAID.SoftwareRAIDVolumes {
			if v.RootVolume {
				return nil
			}
		}
	}
	if spec.RootDeviceHints != nil && !reflect.DeepEqual(*spec.RootDeviceHints, v1alpha1.RootDeviceHints{}) {
		return spec.RootDeviceHints.DeepCopy()
	}
	hints, err := ProfileHints(h.Registration.HardwareProfile)
	if err != nil {
		return nil
	}
	return &hints
}

// profiles are the deprecated hardware profiles, by name.
func profiles() map[string]v1alpha1.RootDeviceHints {
	return map[string]v1alpha1.RootDeviceHints{
		"unknown":   {DeviceName: "/dev/sda"},
		"libvirt":   {DeviceName: "/dev/vda"},
		"dell":      {HCTL: "0:0:0:0"},
		"dell-raid": {HCTL: "0:2:0:0"},
		"openstack": {DeviceName: "/dev/vdb"},
		"empty":     {},
	}
}

// ProfileHints are the root device hints of a hardware profile. An unknown
// name is an error.
func ProfileHints(name string) (v1alpha1.RootDeviceHints, error) {
	hints, ok := profiles()[name]
	if !ok {
		return hints, fmt.Errorf("no hardware profile named %q", name)
	}
	return hints, nil
}

// Profile is the hardware profile of a host: the one in effect, else what its
// specification names, else what its BMC address suggests.
func Profile(h Host) string {
	switch spec := h.Intent.Spec; {
	case h.Registration.HardwareProfile != "":
		return h.Registration.HardwareProfile
	case spec.HardwareProfile != "":
		return spec.HardwareProfile
	case len(spec.BMC.Address) >= len("libvirt") && spec.BMC.Address[:len("libvirt")] == "libvirt":
		return "libvirt"
	default:
		return "unknown"
	}
}

// Credentials are the credentials that the host asks for, as its status names them.
func Credentials(i event.Intent) v1alpha1.CredentialsStatus {
	if i.Credentials.Name == "" {
		return v1alpha1.CredentialsStatus{}
	}
	return v1alpha1.CredentialsStatus{
		Reference: &corev1.SecretReference{Name: i.Credentials.Name, Namespace: i.Credentials.Namespace},
		Version:   i.Credentials.Version,
	}
}

// SameCredentials reports whether both are the same version of the same Secret.
func SameCredentials(a, b v1alpha1.CredentialsStatus) bool {
	if (a.Reference == nil) != (b.Reference == nil) || a.Version != b.Version {
		return false
	}
	return a.Reference == nil || (a.Reference.Name == b.Reference.Name && a.Reference.Namespace == b.Reference.Namespace)
}
