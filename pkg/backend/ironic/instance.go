package ironic

import (
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// liveISO reports whether the image is booted and not written to a disk.
func liveISO(h lifecycle.Host) bool { return h.Intent.Spec.Image.IsLiveISO() }

// runningISO is the live image that a machine in use has booted, "" for none. Ironic
// takes over no node that boots live images and names none, though it does not look
// whether the image is there.
func runningISO(h lifecycle.Host) string {
	image, custom := presentImage(h)
	if deployInterface(image, custom) != deploysISO {
		return ""
	}
	return image.URL
}

// instancePatch says to the node what is to be deployed. pullSecret is the login of
// the registry of an OCI image, "" for none.
func (v view) instancePatch(pullSecret string) (ironic.Patch, error) {
	info, err := v.instanceInfo(pullSecret)
	if err != nil {
		return nil, err
	}
	n := v.node
	var p ironic.Patch
	p.Match("/instance_uuid", text(n.InstanceUUID), v.host.UID)
	p.MatchKeys("/instance_info", n.InstanceInfo, info)
	p.MatchKeys("/extra", n.Extra, map[string]any{markOp: opMark(v.host)})
	v.matchDeploy(&p)
	return p, nil
}

// matchDeploy chooses how the image is deployed, and where the machine boots from
// afterwards.
func (v view) matchDeploy(p *ironic.Patch) {
	spec := v.host.Intent.Spec
	present := v.node.DeployInterface
	wanted := deployInterface(spec.Image, spec.CustomDeploy)
	switch {
	case wanted != "":
		p.Match("/deploy_interface", text(present), wanted)
	case present == deploysISO || present == deploysCustom:
		p.Remove("/deploy_interface") // it then is Ironic's own
	}
	boot := v.set.DiskBootDevice
	switch wanted {
	case deploysCustom:
		return
	case deploysISO:
		boot = v.set.LiveISOBootDevice
	}
	const key = "force_persistent_boot_device"
	p.MatchKeys("/driver_info", v.node.DriverInfo, map[string]any{key: boot})
}

// instanceInfo are the keys of instance_info; nil is a key that must not be there.
func (v view) instanceInfo(pullSecret string) (map[string]any, error) {
	image := v.host.Intent.Spec.Image
	info := map[string]any{"capabilities": map[string]any{}, "root_device": nil, "boot_iso": nil, "image_source": nil, "image_checksum": nil, "image_os_hash_algo": nil, "image_os_hash_value": nil}
	if lifecycle.BootMode(v.host.Intent) == v1alpha1.UEFISecureBoot {
		info["capabilities"] = map[string]any{"secure_boot": "true"}
	}
	if hints := hintMap(lifecycle.Hints(v.host)); hints != nil {
		info["root_device"] = hints
	}
	switch {
	case image.IsLiveISO():
		info["boot_iso"] = image.URL
		return info, nil
	case image == nil || image.URL == "":
		info["image_disk_format"], info["image_pull_secret"] = nil, nil
		return info, nil
	}
	info["image_source"] = image.URL
	info["image_disk_format"] = nil
	if image.DiskFormat != nil {
		info["image_disk_format"] = text(*image.DiskFormat)
	}
	info["image_pull_secret"] = text(pullSecret)
	checksum, algorithm, err := image.GetChecksum()
	if err != nil {
		return nil, err
	}
	if algorithm == "" {
		info["image_checksum"] = text(checksum)
	} else {
		info["image_os_hash_algo"], info["image_os_hash_value"] = algorithm, checksum
	}
	return info, nil
}

// sameImage reports whether the node carries the image that is wanted. It goes by
// what Ironic shows: of images that it cached, the address is not among that.
func (v view) sameImage() bool {
	spec, info := v.host.Intent.Spec, v.node.InstanceInfo
	source, _ := info["image_source"].(string)
	iso, _ := info["boot_iso"].(string)
	switch {
	case v.node.InstanceUUID != v.host.UID:
		return false
	case spec.CustomDeploy != nil && spec.CustomDeploy.Method != "":
		return v.node.DeployInterface == deploysCustom
	case spec.Image == nil:
		return false
	case spec.Image.IsLiveISO():
		return iso == spec.Image.URL
	default:
		return source == spec.Image.URL
	}
}

// deploySteps are the steps of a custom deployment, none for an image.
func deploySteps(h lifecycle.Host) []ironic.Step {
	const priority = 80 // where writing an image would be
	custom := h.Intent.Spec.CustomDeploy
	if custom == nil || custom.Method == "" {
		return nil
	}
	return []ironic.Step{{Interface: "deploy", Name: custom.Method, Priority: priority}}
}
