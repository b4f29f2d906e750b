package ironic

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bmcaddress"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// wish is what a host's node is to be like, without its secrets.
type wish struct {
	name    string
	address bmcaddress.Address
	family  bmcaddress.Family
	// driverInfo is how to reach the BMC; a nil value is one that must not be there.
	driverInfo  map[string]any
	credentials string // mark of the version
	ramdisk     Ramdisk
	waits       string // for the ramdisk, "" if it is there
	unbootable  string // why there is no ramdisk, "" if nothing is wrong
}

// wishFor is what a host's node is to be like. What cannot be is the host's own
// problem.
func (b *Backend) wishFor(h lifecycle.Host) (wish, error) {
	spec := h.Intent.Spec.BMC
	address, err := bmcaddress.Parse(spec.Address, spec.DisableCertificateVerification)
	if err != nil {
		return wish{}, problemError(event.Enroll, event.ClassAddress, err.Error(), "")
	}
	w := wish{name: nodeName(h), address: address, family: address.Family(), credentials: credentialsMark(h.Intent.Credentials)}
	w.driverInfo = reach(address)
	if v6 := b.set.ExternalURLv6; v6 != "" && isIPv6(address.Host) {
		w.driverInfo["external_http_url"] = v6
	}
	if own := h.Intent.Ramdisk; own != nil {
		w.waits = own.Waits
		w.ramdisk, w.unbootable = b.ownRamdisk(*own)
	} else {
		w.ramdisk = b.commonRamdisk(w.family)
	}
	return w, nil
}

// ownRamdisk is what a host boots that has an image of its own, or why it cannot.
func (b *Backend) ownRamdisk(own event.RamdiskWish) (r Ramdisk, problem string) {
	r = Ramdisk{ISO: own.ISO, Kernel: own.Kernel, Initrd: own.Initrd, Params: own.Params}
	if r.Initrd != "" && r.Kernel == "" {
		r.Kernel = b.set.Ramdisk.Kernel
	}
	if r.Initrd != "" && r.Kernel == "" {
		return Ramdisk{}, "Preprovisioning Image is not acceptable to provisioner: it has no kernel, and --deploy-kernel-url names none"
	}
	return r, own.Problem
}

// commonRamdisk is what hosts boot that have no image of their own.
func (b *Backend) commonRamdisk(f bmcaddress.Family) Ramdisk {
	urls := b.set.Ramdisk
	switch {
	case urls.ISO != "" && f.Capabilities.ISOPreprovisioningImage:
		return Ramdisk{ISO: urls.ISO}
	case urls.Kernel != "" && urls.Initrd != "":
		return Ramdisk{Kernel: urls.Kernel, Initrd: urls.Initrd}
	default:
		return Ramdisk{}
	}
}

// keysOfReach are all keys by which a BMC is reached, but for the login.
func keysOfReach() []string {
	return []string{
		"ipmi_address", "ipmi_port", "ipmi_priv_level", "ipmi_verify_ca", "redfish_address", "redfish_system_id", "redfish_verify_ca",
	}
}

// reach is how to reach a BMC, without the login: every key, nil if it is not to be
// there.
func reach(a bmcaddress.Address) map[string]any {
	info := a.DriverInfo("", "")
	out := map[string]any{}
	for _, key := range keysOfReach() {
		out[key] = info[key]
	}
	return out
}

func isIPv6(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Is6()
}

func credentialsMark(ref event.SecretRef) string {
	return fmt.Sprintf("%s/%s@%s", ref.Namespace, ref.Name, ref.Version)
}

// ramdiskInfo are the keys of driver_info that say which ramdisk is booted, nil if
// that is left as it is.
func (r Ramdisk) driverInfo() map[string]any {
	info := map[string]any{"deploy_iso": nil, "deploy_kernel": nil, "deploy_ramdisk": nil, "kernel_append_params": nil}
	switch {
	case r.ISO != "":
		info["deploy_iso"] = r.ISO
	case r.Initrd != "":
		info["deploy_kernel"], info["deploy_ramdisk"] = r.Kernel, r.Initrd
		if r.Params != "" {
			info["kernel_append_params"] = "%default% " + r.Params
		}
	default:
		return nil
	}
	return info
}

// bootMode is the mode that the machine boots in: that of its image, if it has one.
func bootMode(h lifecycle.Host) v1alpha1.BootMode {
	switch h.Provisioning.Phase {
	case event.Deploying, event.Deployed, event.Undeploying:
		if h.Provisioning.BootMode != "" {
			return h.Provisioning.BootMode
		}
	default:
	}
	return lifecycle.BootMode(h.Intent)
}

// capabilities are a node's capabilities with the boot mode that is wanted; ok is
// false if they are so already.
func capabilities(present string, mode v1alpha1.BootMode) (wanted string, ok bool) {
	have := items(present)
	keep := slices.DeleteFunc(slices.Clone(have), func(item string) bool {
		return strings.HasPrefix(item, "boot_mode:") || strings.HasPrefix(item, "secure_boot:")
	})
	switch mode {
	case v1alpha1.Legacy:
		keep = append(keep, "boot_mode:bios")
	case v1alpha1.UEFISecureBoot:
		keep = append(keep, "boot_mode:uefi", "secure_boot:true")
	case v1alpha1.UEFI:
		keep = append(keep, "boot_mode:uefi")
	}
	wanted = strings.Join(keep, ",")
	slices.Sort(have)
	slices.Sort(keep)
	return wanted, !slices.Equal(have, keep)
}

func items(list string) []string {
	all := strings.Split(list, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// architecture is the host's architecture; known is false if it is a guess.
func (v view) architecture() (arch string, known bool) {
	switch {
	case v.host.Intent.Spec.Architecture != "":
		return v.host.Intent.Spec.Architecture, true
	case v.host.Inspection.Arch != "":
		return v.host.Inspection.Arch, true
	default:
		return v.set.Architecture, false
	}
}

// fast reports whether the host is inspected by asking its BMC.
func fast(h lifecycle.Host) bool { return h.Intent.Spec.InspectionMode == v1alpha1.InspectionModeFast }

// inspectInterface is what a host is inspected by, "" if that is left to Ironic.
func (v view) inspectInterface() string {
	switch {
	case fast(v.host):
		return v.wish.family.Interfaces.FastInspect
	case v.version.Has(ironic.FeatureAgentInspection):
		return "agent"
	default:
		return ""
	}
}

// cleans reports whether disks are to be cleaned between two users.
func cleans(h lifecycle.Host) bool {
	return h.Intent.Spec.AutomatedCleaningMode != v1alpha1.CleaningModeDisabled
}

// registrationPatch brings to the node what registration is about. The login is not
// in it: it is known by the mark of its version.
func (v view) registrationPatch() ironic.Patch {
	n := v.node
	var p ironic.Patch
	p.Match("/name", text(n.Name), v.wish.name)
	p.MatchKeys("/driver_info", n.DriverInfo, v.wish.driverInfo)
	p.MatchKeys("/extra", n.Extra, v.marks())
	if v.version.Has(ironic.FeatureDisablePowerOff) {
		p.Match("/disable_power_off", n.DisablePowerOff, v.host.Intent.Spec.DisablePowerOff)
	}
	return p
}

// marks are the marks of a host in its node's extra.
func (v view) marks() map[string]any {
	return map[string]any{markHost: v.host.UID, markCredentials: v.wish.credentials}
}

// text is a text that may not be there.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// configPatch brings to the node what it is worked with: ramdisk, boot mode,
// architecture, cleaning, and the interfaces of inspection and RAID.
func (v view) configPatch() ironic.Patch {
	n := v.node
	var p ironic.Patch
	if n.AutomatedClean == nil || *n.AutomatedClean != cleans(v.host) {
		p.Set("/automated_clean", cleans(v.host))
	}
	present, _ := n.Properties["capabilities"].(string)
	if wanted, differ := capabilities(present, bootMode(v.host)); differ {
		p.Set("/properties/capabilities", wanted)
	}
	if arch, known := v.architecture(); known {
		p.Match("/properties/cpu_arch", n.Properties["cpu_arch"], arch)
	}
	p.MatchKeys("/driver_info", n.DriverInfo, v.wish.ramdisk.driverInfo())
	if iso := runningISO(v.host); v.kind == event.Adopt && iso != "" {
		p.Match("/deploy_interface", text(n.DeployInterface), deploysISO)
		p.MatchKeys("/instance_info", n.InstanceInfo, map[string]any{"boot_iso": iso})
	}
	if i := v.inspectInterface(); v.kind == event.Inspect && i != "" {
		p.Match("/inspect_interface", text(n.InspectInterface), i)
	}
	if i := v.raidInterface(); v.kind == event.Prepare && i != "" {
		p.Match("/raid_interface", text(n.RAIDInterface), i)
	}
	return p
}

// newNode are the fields of a new node.
func (v view) newNode(user, password string) map[string]any {
	info := maps.Clone(map[string]any(v.wish.address.DriverInfo(user, password)))
	for key, value := range v.wish.driverInfo {
		setOrLeave(info, key, value)
	}
	for key, value := range v.wish.ramdisk.driverInfo() {
		setOrLeave(info, key, value)
	}
	arch, _ := v.architecture()
	caps, _ := capabilities("", bootMode(v.host))
	extra := v.marks()
	fields := map[string]any{
		"name": v.wish.name, "driver": v.wish.family.Driver, "driver_info": info, "extra": extra,
		"properties":      map[string]any{"capabilities": caps, "cpu_arch": arch},
		"automated_clean": cleans(v.host),
	}
	for key, value := range v.newInterfaces() {
		setOrLeave(fields, key, text(value))
	}
	if iso := runningISO(v.host); iso != "" {
		fields["instance_info"] = map[string]any{"boot_iso": iso}
	}
	if v.version.Has(ironic.FeatureDisablePowerOff) {
		fields["disable_power_off"] = v.host.Intent.Spec.DisablePowerOff
	}
	return fields
}

func setOrLeave(m map[string]any, key string, value any) {
	if value != nil {
		m[key] = value
	}
}

// newInterfaces are the interfaces of a new node; what is empty is left to Ironic.
func (v view) newInterfaces() map[string]string {
	f := v.wish.family.Interfaces
	all := map[string]string{
		"bios_interface": f.BIOS, "boot_interface": f.Boot, "management_interface": f.Management, "power_interface": f.Power,
		"raid_interface": f.RAID, "vendor_interface": f.Vendor, "inspect_interface": v.inspectInterface(),
		"deploy_interface": deployInterface(presentImage(v.host)),
	}
	if v.version.Has(ironic.FeatureFirmwareInterface) {
		all["firmware_interface"] = f.Firmware
	}
	return all
}

// presentImage is what is on the host's disk, as far as that is known.
func presentImage(h lifecycle.Host) (*v1alpha1.Image, *v1alpha1.CustomDeploy) {
	image, custom := &h.Provisioning.Image, h.Provisioning.CustomDeploy
	stage := lifecycle.Stage(h)
	if stage == v1alpha1.StateProvisioning || stage == v1alpha1.StateExternallyProvisioned {
		if image.URL == "" {
			image = h.Intent.Spec.Image
		}
		if custom == nil {
			custom = h.Intent.Spec.CustomDeploy
		}
	}
	return image, custom
}

// The deploy interfaces of live images and of custom deployments.
const (
	deploysISO    = "ramdisk"
	deploysCustom = "custom-agent"
)

// deployInterface is how an image is deployed, "" for Ironic's own way.
func deployInterface(image *v1alpha1.Image, custom *v1alpha1.CustomDeploy) string {
	switch {
	case image.IsLiveISO() && image.URL != "":
		return deploysISO
	case custom != nil && custom.Method != "":
		return deploysCustom
	default:
		return ""
	}
}
