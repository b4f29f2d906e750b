package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func image(url string) *v1alpha1.Image { return &v1alpha1.Image{URL: url} }

func custom(method string) *v1alpha1.CustomDeploy { return &v1alpha1.CustomDeploy{Method: method} }

func TestCancelled(t *testing.T) {
	for name, c := range map[string]struct {
		image, onDisk        *v1alpha1.Image
		method, methodOnDisk *v1alpha1.CustomDeploy
		want                 bool
	}{
		"the same image stays":                               {image: image("a"), onDisk: image("a")},
		"another checksum is no other image":                 {image: &v1alpha1.Image{URL: "a", Checksum: "2"}, onDisk: &v1alpha1.Image{URL: "a", Checksum: "1"}},
		"another URL is another image":                       {image: image("b"), onDisk: image("a"), want: true},
		"no image any more":                                  {onDisk: image("a"), want: true},
		"an empty URL is no image":                           {image: image(""), onDisk: image("a"), want: true},
		"an image where nothing is on the disk":              {image: image("a")},
		"the same method stays":                              {method: custom("m"), methodOnDisk: custom("m")},
		"another method":                                     {method: custom("n"), methodOnDisk: custom("m"), want: true},
		"a method where an image was":                        {method: custom("m"), onDisk: image("a"), want: true},
		"a method and the image that was":                    {method: custom("m"), image: image("a"), onDisk: image("a")},
		"no method any more, and no image":                   {methodOnDisk: custom("m"), want: true},
		"no method any more, and the image that was with it": {image: image("a"), onDisk: image("a"), methodOnDisk: custom("m"), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			var h lifecycle.Host
			h.Intent.Spec.Image, h.Intent.Spec.CustomDeploy = c.image, c.method
			h.Provisioning.CustomDeploy = c.methodOnDisk
			if c.onDisk != nil {
				h.Provisioning.Image = *c.onDisk
			}
			if got := lifecycle.Cancelled(h); got != c.want {
				t.Errorf("cancelled: %v, want %v", got, c.want)
			}
		})
	}
}

func TestWantsImage(t *testing.T) {
	for name, c := range map[string]struct {
		offline bool
		image   *v1alpha1.Image
		method  *v1alpha1.CustomDeploy
		onDisk  string
		want    bool
	}{
		"an image on an empty disk":      {image: image("a"), want: true},
		"an offline host is not touched": {image: image("a"), offline: true},
		"an image on a used disk":        {image: image("b"), onDisk: "a"},
		"no image":                       {},
		"an image without URL":           {image: image("")},
		"a method":                       {method: custom("m"), want: true},
		"a method without a name":        {method: custom("")},
	} {
		t.Run(name, func(t *testing.T) {
			var h lifecycle.Host
			h.Intent.Spec.Online = !c.offline
			h.Intent.Spec.Image, h.Intent.Spec.CustomDeploy = c.image, c.method
			h.Provisioning.Image.URL = c.onDisk
			if got := lifecycle.WantsImage(h); got != c.want {
				t.Errorf("wants an image: %v, want %v", got, c.want)
			}
		})
	}
}

func TestTargetRAID(t *testing.T) {
	hw := []v1alpha1.HardwareRAIDVolume{{Level: "1"}}
	sw := []v1alpha1.SoftwareRAIDVolume{{Level: "1"}}
	for name, c := range map[string]struct {
		spec, have, want *v1alpha1.RAIDConfig
	}{
		"nothing asked, nothing there":            {},
		"empty is nothing asked":                  {spec: &v1alpha1.RAIDConfig{}},
		"hardware volumes that were asked stay":   {have: &v1alpha1.RAIDConfig{HardwareRAIDVolumes: hw}, want: &v1alpha1.RAIDConfig{HardwareRAIDVolumes: hw, SoftwareRAIDVolumes: []v1alpha1.SoftwareRAIDVolume{}}},
		"software volumes that were asked go":     {have: &v1alpha1.RAIDConfig{SoftwareRAIDVolumes: sw}, want: &v1alpha1.RAIDConfig{SoftwareRAIDVolumes: []v1alpha1.SoftwareRAIDVolume{}}},
		"an empty list asks for all to be erased": {spec: &v1alpha1.RAIDConfig{HardwareRAIDVolumes: []v1alpha1.HardwareRAIDVolume{}}, want: &v1alpha1.RAIDConfig{HardwareRAIDVolumes: []v1alpha1.HardwareRAIDVolume{}}},
		"what is asked is the target":             {spec: &v1alpha1.RAIDConfig{HardwareRAIDVolumes: hw}, want: &v1alpha1.RAIDConfig{HardwareRAIDVolumes: hw}},
	} {
		t.Run(name, func(t *testing.T) {
			var h lifecycle.Host
			h.Intent.Spec.RAID, h.Provisioning.RAID = c.spec, c.have
			if diff := cmp.Diff(c.want, lifecycle.TargetRAID(h)); diff != "" {
				t.Errorf("target (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHints(t *testing.T) {
	given := &v1alpha1.RootDeviceHints{WWN: "0x5", MinSizeGigabytes: 100}
	for name, c := range map[string]struct {
		spec    v1alpha1.BareMetalHostSpec
		profile string
		want    *v1alpha1.RootDeviceHints
	}{
		"what the user gives":          {spec: v1alpha1.BareMetalHostSpec{RootDeviceHints: given}, profile: "unknown", want: given},
		"empty hints are none":         {spec: v1alpha1.BareMetalHostSpec{RootDeviceHints: &v1alpha1.RootDeviceHints{}}, profile: "unknown", want: &v1alpha1.RootDeviceHints{DeviceName: "/dev/sda"}},
		"the profile's":                {profile: "dell-raid", want: &v1alpha1.RootDeviceHints{HCTL: "0:2:0:0"}},
		"an empty profile":             {profile: "empty", want: &v1alpha1.RootDeviceHints{}},
		"none with a RAID root volume": {spec: v1alpha1.BareMetalHostSpec{RAID: &v1alpha1.RAIDConfig{SoftwareRAIDVolumes: []v1alpha1.SoftwareRAIDVolume{{RootVolume: true}}}}, profile: "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			var h lifecycle.Host
			h.Intent.Spec, h.Registration.HardwareProfile = c.spec, c.profile
			if diff := cmp.Diff(c.want, lifecycle.Hints(h)); diff != "" {
				t.Errorf("hints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProfile(t *testing.T) {
	for name, c := range map[string]struct {
		address, spec, was, want string
	}{
		"a VirtualBMC is libvirt's":  {address: "libvirt://192.0.2.1", want: "libvirt"},
		"others are unknown":         {address: "redfish://192.0.2.1", want: "unknown"},
		"the user's word":            {address: "libvirt://192.0.2.1", spec: "dell", want: "dell"},
		"what was set once is kept":  {spec: "dell", was: "openstack", want: "openstack"},
		"a host without BMC details": {want: "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			var h lifecycle.Host
			h.Intent.Spec.BMC.Address, h.Intent.Spec.HardwareProfile, h.Registration.HardwareProfile = c.address, c.spec, c.was
			if got := lifecycle.Profile(h); got != c.want {
				t.Errorf("profile %q, want %q", got, c.want)
			}
		})
	}
}

func TestWantsOff(t *testing.T) {
	for name, c := range map[string]struct {
		phase   event.PhaseOfDisk
		offline bool
		never   bool // to be off
		reboots []event.RebootRequest
		handled []string
		// deployment and inspection have served these.
		deployment, inspection []string
		want                   bool
	}{
		"a reboot that a deployment served":          {phase: event.Deployed, reboots: []event.RebootRequest{{ID: "1", Force: true}}, deployment: []string{"1"}},
		"a reboot that an inspection served":         {phase: event.Prepared, reboots: []event.RebootRequest{{ID: "1", Force: true}}, inspection: []string{"1"}},
		"a client that a deployment did not serve":   {phase: event.Deployed, reboots: []event.RebootRequest{{Key: "k", ID: "1"}}, deployment: []string{"1"}, want: true},
		"an online host":                             {phase: event.Deployed},
		"an offline host":                            {phase: event.Deployed, offline: true, want: true},
		"a reboot of a host in use":                  {phase: event.Deployed, reboots: []event.RebootRequest{{ID: "1"}}, want: true},
		"a reboot that was served":                   {phase: event.Deployed, reboots: []event.RebootRequest{{ID: "1"}}, handled: []string{"1"}},
		"a client that keeps the host off":           {phase: event.Deployed, reboots: []event.RebootRequest{{Key: "k", ID: "1"}}, handled: []string{"1"}, want: true},
		"a client that wants a reboot, and no more":  {phase: event.Deployed, never: true, reboots: []event.RebootRequest{{Key: "k", ID: "1"}}, want: true},
		"a client whose reboot was all it may want":  {phase: event.Deployed, never: true, reboots: []event.RebootRequest{{Key: "k", ID: "1"}}, handled: []string{"1"}},
		"an offline host that is to stay on":         {phase: event.Deployed, never: true, offline: true},
		"a reboot of an available host":              {phase: event.Prepared, reboots: []event.RebootRequest{{ID: "1"}}},
		"a forced reboot of an available host":       {phase: event.Prepared, reboots: []event.RebootRequest{{ID: "1", Force: true}}, want: true},
		"a reboot of an externally provisioned host": {phase: event.External, reboots: []event.RebootRequest{{ID: "1"}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := registered(c.phase)
			h.Intent.Spec.Online, h.Intent.Reboots, h.Power.Handled = !c.offline, c.reboots, c.handled
			h.Intent.Spec.DisablePowerOff = c.never
			h.Provisioning.Rebooted, h.Inspection.Rebooted = c.deployment, c.inspection
			if got := lifecycle.WantsOff(h); got != c.want {
				t.Errorf("wants off: %v, want %v", got, c.want)
			}
		})
	}
}

// registered is a host whose hardware is known, with its disk in a phase.
func registered(p event.PhaseOfDisk) lifecycle.Host {
	i := event.Intent{Namespace: "lab", Name: "host-a"}
	i.Spec.BMC.Address = "redfish://192.0.2.1"
	h := record(lifecycle.Host{UID: "u"}, lifecycle.Wish{Fact: event.Created, Intent: i})
	h.Registration.Registered, h.Inspection.Done, h.Provisioning.Phase = true, true, p
	return h
}
