// Package life_test takes hosts through their lives with all services on a fake
// Ironic: from declared to available, provisioned, provisioned anew, available
// again, and gone.
package life_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/ironic/site"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

const images = "http://192.0.2.80/"

// wish is something to be deployed, and what comes of it.
type wish struct {
	set func(*v1alpha1.BareMetalHostSpec)
	// instance are keys of the node's instance_info.
	instance map[string]any
	deployBy string
	runs     string
	disk     string
	// drive is the config drive that the machine finds, but for what it is told of
	// itself.
	drive map[string]any
}

func disk(name string) wish {
	return wish{
		set: func(s *v1alpha1.BareMetalHostSpec) {
			s.Image = &v1alpha1.Image{URL: images + name, Checksum: strings.Repeat("a", 64), ChecksumType: v1alpha1.SHA256, DiskFormat: new("qcow2")}
			s.UserData = &corev1.SecretReference{Name: "user", Namespace: site.Namespace}
			s.NetworkData = &corev1.SecretReference{Name: "network"}
			s.MetaData = &corev1.SecretReference{Name: "meta"}
		},
		instance: map[string]any{"image_source": images + name, "image_os_hash_algo": "sha256", "image_os_hash_value": strings.Repeat("a", 64), "image_disk_format": "qcow2"},
		deployBy: "direct", runs: ironictest.RunsDisk, disk: images + name,
		drive: map[string]any{
			"user_data":    "#cloud-config\n",
			"network_data": map[string]any{"links": []any{}},
			"meta_data":    map[string]any{"rack": "r1"},
		},
	}
}

func checksumFile(name string) wish {
	w := disk(name)
	w.set = func(s *v1alpha1.BareMetalHostSpec) {
		s.Image = &v1alpha1.Image{URL: images + name, Checksum: images + name + ".md5sum"}
	}
	w.instance = map[string]any{"image_source": images + name, "image_checksum": images + name + ".md5sum"}
	w.drive = map[string]any{"meta_data": map[string]any{}}
	return w
}

func live(name string) wish {
	return wish{
		set: func(s *v1alpha1.BareMetalHostSpec) {
			s.Image = &v1alpha1.Image{URL: images + name, DiskFormat: new(v1alpha1.DiskFormatLiveISO)}
		},
		instance: map[string]any{"boot_iso": images + name}, deployBy: "ramdisk", runs: ironictest.RunsISO,
	}
}

func custom() wish {
	return wish{
		set:      func(s *v1alpha1.BareMetalHostSpec) { s.CustomDeploy = &v1alpha1.CustomDeploy{Method: "install_os"} },
		instance: map[string]any{}, deployBy: "custom-agent", // what it does with its config drive is its own affair
	}
}

// apply makes the wish the only one that the host has.
func (w wish) apply(o *v1alpha1.BareMetalHost) {
	clearWish(o)
	w.set(&o.Spec)
}

func clearWish(o *v1alpha1.BareMetalHost) {
	s := &o.Spec
	s.Image, s.CustomDeploy, s.UserData, s.NetworkData, s.MetaData = nil, nil, nil, nil, nil
}

// A host's whole life, with everything that can be deployed, one thing after the
// other.
func TestLives(t *testing.T) {
	const short = 10 * time.Millisecond
	s := site.New(t, ironictest.Config{Delays: ironictest.Delays{BMC: time.Millisecond, Power: short, Boot: short, Inspect: short, Step: short, Write: short, Heartbeat: short, PowerSync: time.Second}})
	s.Keep("user", map[string]string{"value": "#cloud-config\n"})
	s.Keep("network", map[string]string{"networkData": "links: []\n"})
	s.Keep("meta", map[string]string{"metaData": "rack: r1\n"})
	t.Run("lives", func(t *testing.T) {
		for name, first := range map[string]struct{ a, b wish }{
			"disk":     {disk("one.qcow2"), disk("two.qcow2")},
			"live":     {live("one.iso"), disk("two.qcow2")},
			"custom":   {custom(), live("two.iso")},
			"checksum": {checksumFile("one.raw"), custom()},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				whole(t, s, name, first.a, first.b)
			})
		}
	})
	for state, n := range s.Ironic.Nodes() {
		t.Errorf("%d nodes are left, %s", n, state)
	}
	for _, line := range s.Complaints() {
		t.Error(line)
	}
}

func whole(t *testing.T, s *site.Site, name string, a, b wish) {
	h := s.Declare(t, name, nil)
	h.Await(t, "available", site.In(v1alpha1.StateAvailable))
	if d := h.Shown().Status.HardwareDetails; d == nil || d.CPU.Count == 0 || len(d.NIC) == 0 || len(d.Storage) == 0 {
		t.Errorf("hardware %+v", d)
	}
	for _, w := range []wish{a, b} {
		s.User.Change(name, w.apply)
		h.Await(t, "running what it was last given", func(o *v1alpha1.BareMetalHost) bool { return site.Running(o) && carries(o) })
		check(t, s, h, w)
	}
	erased := h.Machine.View().Disk.Erases
	s.User.Change(name, clearWish)
	h.Await(t, "available again", site.In(v1alpha1.StateAvailable))
	if v := h.Machine.View(); v.Disk.Erases == erased {
		t.Error("its disk was not cleaned")
	}
	s.User.DeleteHost(name)
	h.Await(t, "gone", site.Gone)
	if v := h.Machine.View(); v.On {
		t.Error("it is still on")
	}
}

// carries reports whether the host has what its spec asks for.
func carries(o *v1alpha1.BareMetalHost) bool {
	p := o.Status.Provisioning
	if o.Spec.Image != nil {
		return p.Image.URL == o.Spec.Image.URL
	}
	return p.CustomDeploy != nil
}

func check(t *testing.T, s *site.Site, h *site.Host, w wish) {
	t.Helper()
	n, _ := s.Ironic.Node(site.Namespace + "~" + h.Name)
	info, _ := n["instance_info"].(map[string]any)
	got := map[string]any{}
	for _, key := range []string{"image_source", "boot_iso", "image_checksum", "image_os_hash_algo", "image_os_hash_value", "image_disk_format"} {
		if v, ok := info[key]; ok {
			got[key] = v
		}
	}
	if diff := cmp.Diff(w.instance, got); diff != "" {
		t.Errorf("instance_info (-want +got):\n%s", diff)
	}
	if n["deploy_interface"] != w.deployBy || n["protected"] != true {
		t.Errorf("deployed by %v, protected %v", n["deploy_interface"], n["protected"])
	}
	if _, given := info["configdrive"]; given == (w.deployBy == "ramdisk") {
		t.Errorf("a config drive was given: %v", given)
	}
	v := h.Machine.View()
	if !v.On || v.Runs != w.runs || v.Disk.Image != w.disk && w.disk != "" {
		t.Errorf("the machine is on %v, runs %q, has %q on its disk", v.On, v.Runs, v.Disk.Image)
	}
	if w.drive == nil {
		return
	}
	drive, _ := v.Disk.ConfigDrive.(map[string]any)
	if meta, ok := drive["meta_data"].(map[string]any); ok {
		if meta["metal3-name"] != h.Name || meta["uuid"] != string(h.Shown().UID) {
			t.Errorf("the machine is told %v of itself", meta)
		}
		for _, own := range []string{"uuid", "metal3-namespace", "metal3-name", "local-hostname", "local_hostname", "name"} {
			delete(meta, own)
		}
	}
	if diff := cmp.Diff(w.drive, drive); diff != "" {
		t.Errorf("config drive (-want +got):\n%s", diff)
	}
}
