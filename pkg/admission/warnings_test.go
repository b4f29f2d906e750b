package admission_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
)

func TestHostWarnings(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		host *host
		want string // a part of the only warning; none if empty
	}{
		"nothing to warn of":             {host: newHost()},
		"no BMC":                         {host: newHost(bmc(""))},
		"an address that does not parse": {host: newHost(bmc("x_y"))},
		"an address of no host":          {host: newHost(bmc("redfish:///x")), want: "names no host"},
		"a port that there is not":       {host: newHost(bmc("redfish://192.0.2.10:99999")), want: "has the port 99999, which is not from 1 to 65535"},
		"a login in the address":         {host: newHost(bmc("redfish://admin:hunter2@192.0.2.10")), want: "holds a login"},
		"a login in the image's URL":     {host: newHost(image(v1alpha1.Image{URL: "http://u:hunter2@192.0.2.80/os"})), want: "spec.image.url holds a login, with which it is not used"},
		"a login in the checksum's URL":  {host: newHost(image(v1alpha1.Image{URL: "http://192.0.2.80/os", Checksum: "http://u:hunter2@192.0.2.80/sum"})), want: "spec.image.checksum holds a login"},
		"data for an image on a disk":    {host: newHost(image(v1alpha1.Image{URL: "http://192.0.2.80/os", Checksum: "x"}), userData)},
		"data for a live image": {
			host: newHost(image(v1alpha1.Image{URL: "http://192.0.2.80/os", DiskFormat: new(v1alpha1.DiskFormatLiveISO)}), userData),
			want: "spec.userData, spec.metaData: not used, since an image of format live-iso is given no config drive",
		},
		"taints":                          {host: newHost(func(h *host) { h.Spec.Taints = []corev1.Taint{{Key: "k"}} }), want: "spec.taints is not used"},
		"interfaces":                      {host: newHost(nics(v1alpha1.NetworkInterface{Name: "eth0"})), want: "no service of metalbus sets switch ports yet"},
		"a profile":                       {host: newHost(func(h *host) { h.Spec.HardwareProfile = "dell" })},
		"a profile that there is not":     {host: newHost(func(h *host) { h.Spec.HardwareProfile = "Dell" }), want: `no hardware profile named "Dell"`},
		"known annotations":               {host: newHost(annotated(v1alpha1.PausedAnnotation, "me", "inspect.metal3.io", "", "example.com/x", "y"))},
		"pause instead of paused":         {host: newHost(annotated("baremetalhost.metal3.io/pause", "")), want: "annotation baremetalhost.metal3.io/pause is not known"},
		"a slash too many":                {host: newHost(annotated("inspect.metal3.io/disabled", "")), want: "annotation inspect.metal3.io/disabled is not known"},
		"a reboot with a slip of the pen": {host: newHost(annotated("reboot.metal3.io", `{"mod":"hard"}`)), want: `holds something that has no effect: json: unknown field "mod"`},
		"a reboot that is in order":       {host: newHost(annotated("reboot.metal3.io", `{"mode":"hard"}`, "reboot.metal3.io/x", ""))},
		"detached by a word":              {host: newHost(annotated(v1alpha1.DetachedAnnotation, "by me"))},
		"detached in order":               {host: newHost(annotated(v1alpha1.DetachedAnnotation, `{"deleteAction":"delay","force":true}`))},
		"detached by half an object":      {host: newHost(annotated(v1alpha1.DetachedAnnotation, `{"deleteAction":`)), want: "is not understood and counts as empty"},
		"detached with a slip of the pen": {host: newHost(annotated(v1alpha1.DetachedAnnotation, `{"deleteAction":"wait"}`)), want: `deleteAction "wait" is not known and means delete`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkWarning(t, admission.HostWarnings(tt.host), tt.want)
		})
	}
}

func userData(h *host) {
	h.Spec.UserData, h.Spec.MetaData = &corev1.SecretReference{Name: "user"}, &corev1.SecretReference{Name: "meta"}
}

// checkWarning wants one warning with want in it, or none if want is empty.
func checkWarning(t *testing.T, got []string, want string) {
	t.Helper()
	if want == "" {
		if len(got) > 0 {
			t.Errorf("warned of %q", got)
		}
		return
	}
	if len(got) != 1 || !strings.Contains(got[0], want) || strings.Contains(got[0], "hunter2") {
		t.Errorf("got %q, want one with %q", got, want)
	}
}

func TestConflictWarnings(t *testing.T) {
	t.Parallel()
	const sameBMC = "spec.bmc.address: host lab/host-b has the same BMC"
	mine := func(address string) *host { return newHost(bmc(address), bootMAC("")) }
	theirs := func(address string) *host { return newHost(named("host-b"), bmc(address), bootMAC("")) }
	tests := map[string]struct {
		host, other *host
		want        string
	}{
		"the host itself":              {host: newHost(), other: newHost()},
		"another BMC":                  {host: mine("redfish://192.0.2.10"), other: theirs("redfish://192.0.2.11")},
		"the same BMC, written else":   {host: mine("redfish://[2001:DB8::1]:443/redfish/v1"), other: theirs("redfish-virtualmedia+https://[2001:db8:0::1]"), want: sameBMC},
		"the same name":                {host: mine("ipmi://BMC.example"), other: theirs("bmc.example"), want: sameBMC},
		"another port":                 {host: mine("ipmi://192.0.2.10:6230"), other: theirs("ipmi://192.0.2.10:6231")},
		"another system":               {host: mine("redfish://192.0.2.10/redfish/v1/Systems/1"), other: theirs("redfish://192.0.2.10/redfish/v1/Systems/2")},
		"the same system":              {host: mine("redfish://192.0.2.10/redfish/v1/Systems/1"), other: theirs("redfish://192.0.2.10/redfish/v1/Systems/1/"), want: sameBMC},
		"the only system and system 1": {host: mine("redfish://192.0.2.10"), other: theirs("redfish://192.0.2.10/redfish/v1/Systems/1"), want: sameBMC},
		"no BMC on either":             {host: mine(""), other: theirs("")},
		"the same MAC address": {
			host: newHost(bmc("")), other: newHost(bmc(""), named("host-b"), bootMAC("00:00:5E:00:53:01")),
			want: "spec.bootMACAddress: host lab/host-b has the same address 00:00:5e:00:53:01",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkWarning(t, admission.ConflictWarnings(tt.host, []host{*tt.other}), tt.want)
			if tt.want != "" && !shareKey(tt.host, tt.other) {
				t.Errorf("no key in common: %v and %v", admission.ConflictKeys(tt.host), admission.ConflictKeys(tt.other))
			}
		})
	}
}

func shareKey(a, b *host) bool {
	keys := " " + strings.Join(admission.ConflictKeys(a), " ") + " "
	for _, key := range admission.ConflictKeys(b) {
		if strings.Contains(keys, " "+key+" ") {
			return true
		}
	}
	return false
}
