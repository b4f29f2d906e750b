package ironic_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	backend "github.com/metalbus/metalbus/pkg/backend/ironic"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// instance is what the node was told to deploy.
func (l *lab) instance(h lifecycle.Host) map[string]any {
	l.Helper()
	info, _ := l.node(h)["instance_info"].(map[string]any)
	return info
}

// Images of every kind come to the node as Ironic wants to be told of them.
func TestImages(t *testing.T) {
	const (
		disk   = "http://192.0.2.80/os.qcow2"
		sha512 = "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
	)
	hints := map[string]any{"name": "s== /dev/sda"}
	tests := map[string]struct {
		spec      func(*v1alpha1.BareMetalHostSpec)
		want      map[string]any
		deployBy  string
		bootsFrom any
		runs      string
	}{
		"a disk image with a checksum of unknown kind": {
			func(s *v1alpha1.BareMetalHostSpec) {
				s.Image = &v1alpha1.Image{URL: disk, Checksum: "http://192.0.2.80/os.sum", DiskFormat: new("qcow2")}
			},
			map[string]any{"image_source": disk, "image_checksum": "http://192.0.2.80/os.sum", "image_disk_format": "qcow2", "root_device": hints, "capabilities": map[string]any{}},
			"direct", "Default", ironictest.RunsDisk,
		},
		"a disk image with a checksum of a known kind": {
			func(s *v1alpha1.BareMetalHostSpec) {
				s.Image = &v1alpha1.Image{URL: disk, Checksum: sha512, ChecksumType: v1alpha1.SHA512}
				s.BootMode = v1alpha1.UEFISecureBoot
				s.RootDeviceHints = &v1alpha1.RootDeviceHints{DeviceName: "/dev/disk/by-path/pci-0000:01", WWN: "0x55", MinSizeGigabytes: 100, Model: "Fast", Rotational: new(false)}
			},
			map[string]any{
				"image_source": disk, "image_os_hash_algo": "sha512", "image_os_hash_value": sha512, "capabilities": map[string]any{"secure_boot": "true"},
				"root_device": map[string]any{"by_path": "s== /dev/disk/by-path/pci-0000:01", "wwn": "s== 0x55", "size": ">= 100", "model": "<in> Fast", "rotational": "false"},
			},
			"direct", "Default", ironictest.RunsDisk,
		},
		"a live image": {
			func(s *v1alpha1.BareMetalHostSpec) {
				s.Image = &v1alpha1.Image{URL: "http://192.0.2.80/live.iso", DiskFormat: new(v1alpha1.DiskFormatLiveISO)}
			},
			map[string]any{"boot_iso": "http://192.0.2.80/live.iso", "root_device": hints, "capabilities": map[string]any{}},
			"ramdisk", "Default", ironictest.RunsISO,
		},
		"a custom deployment": {
			func(s *v1alpha1.BareMetalHostSpec) { s.CustomDeploy = &v1alpha1.CustomDeploy{Method: "install_os"} },
			map[string]any{"root_device": hints, "capabilities": map[string]any{}},
			"custom-agent", nil, ironictest.RunsNothing,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, ironictest.Config{}, nil)
			h := l.available(l.host())
			tc.spec(&h.Intent.Spec)
			h = l.deploy(h)
			n := l.node(h)
			got := l.instance(h)
			maps.DeleteFunc(got, func(k string, _ any) bool { return k == "configdrive" })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("instance_info (-want +got):\n%s", diff)
			}
			info, _ := n["driver_info"].(map[string]any)
			if n["deploy_interface"] != tc.deployBy || info["force_persistent_boot_device"] != tc.bootsFrom || n["instance_uuid"] != h.UID {
				t.Errorf("deploy interface %v, boot device %v, instance %v", n["deploy_interface"], info["force_persistent_boot_device"], n["instance_uuid"])
			}
			if v := l.machine(h).View(); v.Runs != tc.runs {
				t.Errorf("the machine runs %q, want %q", v.Runs, tc.runs)
			}
		})
	}
}

// Each image leaves nothing of the one before it at the node.
func TestImagesInTurn(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.available(l.host())
	live := &v1alpha1.Image{URL: "http://192.0.2.80/live.iso", DiskFormat: new(v1alpha1.DiskFormatLiveISO)}
	disk := &v1alpha1.Image{URL: "http://192.0.2.80/os.qcow2", Checksum: "x"}
	for _, image := range []*v1alpha1.Image{live, disk, live} {
		h.Intent.Spec.Image = image
		h = l.deploy(h)
		want := map[bool]string{true: "ramdisk", false: "direct"}[image == live]
		if by := l.node(h)["deploy_interface"]; by != want {
			t.Errorf("%s is deployed by %v, want %s", image.URL, by, want)
		}
		h = l.does(h, event.Undeploy, lifecycle.Deprovisioned{})
	}
}

// An OCI image comes with the login of its registry, wherever that stands in the
// Secret, and the login nowhere else.
func TestPullSecret(t *testing.T) {
	const user, pass = "puller", "p4ss:word"
	auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + pass))
	tests := map[string]struct {
		url  string
		key  string
		data any
		want string // "" for a problem
	}{
		"a login of dockerconfigjson": {"oci://registry.example/os@sha256:1", ".dockerconfigjson", map[string]any{"auths": map[string]any{"registry.example": map[string]any{"auth": auth}}}, user + ":" + pass},
		"a login with a port":         {"oci://registry.example:5000/os", ".dockerconfigjson", map[string]any{"auths": map[string]any{"registry.example:5000": map[string]any{"username": user, "password": pass}}}, user + ":" + pass},
		"a login of dockercfg":        {"oci://registry.example/os", ".dockercfg", map[string]any{"https://registry.example": map[string]any{"auth": auth}}, user + ":" + pass},
		"Docker's own registry":       {"oci://docker.io/library/os", ".dockerconfigjson", map[string]any{"auths": map[string]any{"https://index.docker.io/v1/": map[string]any{"auth": auth}}}, user + ":" + pass},
		"a login of another registry": {"oci://registry.example/os", ".dockerconfigjson", map[string]any{"auths": map[string]any{"other.example": map[string]any{"auth": auth}}}, ""},
		"a login that is none":        {"oci://registry.example/os", ".dockerconfigjson", map[string]any{"auths": map[string]any{"registry.example": map[string]any{"auth": "%"}}}, ""},
		"a Secret of another type":    {"oci://registry.example/os", "password", "x", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, ironictest.Config{}, nil)
			h := l.available(l.host())
			raw, err := json.Marshal(tc.data)
			if err != nil {
				t.Fatal(err)
			}
			l.secrets.put("pull", "1", map[string]string{tc.key: string(raw)})
			h.Intent.Spec.Image = &v1alpha1.Image{URL: tc.url, OCIAuthSecretName: new("pull")}
			if tc.want == "" {
				h.Intent.Spec.Online = true
				_, p := l.fails(h, event.Deploy)
				if !strings.Contains(p.Message, `failed to extract credentials from secret "pull"`) || strings.Contains(p.Message, pass) {
					t.Errorf("problem %+v", p)
				}
				return
			}
			l.deploy(h)
			if got := l.sent("image_pull_secret"); got != tc.want {
				t.Errorf("pull secret %q, want %q", got, tc.want)
			}
		})
	}
}

// sent is the value that was last set at a key of instance_info.
func (l *lab) sent(key string) (value any) {
	l.Helper()
	for _, r := range l.ironic.Requests() {
		var patch []struct {
			Path  string `json:"path"`
			Value any    `json:"value"`
		}
		if r.Method != "PATCH" {
			continue
		}
		if err := json.Unmarshal(r.Body, &patch); err != nil {
			l.Fatal(err)
		}
		for _, p := range patch {
			if p.Path == "/instance_info/"+key {
				value = p.Value
			}
		}
	}
	return value
}

// drives are the config drives that were sent, in order.
func (l *lab) drives() []map[string]any {
	l.Helper()
	var list []map[string]any
	for _, r := range l.ironic.Requests() {
		var body struct {
			Target string         `json:"target"`
			Drive  map[string]any `json:"configdrive"`
		}
		if r.Method == "PUT" && json.Unmarshal(r.Body, &body) == nil && body.Target == "active" {
			list = append(list, body.Drive)
		}
	}
	return list
}

// B22: every attempt carries the same config drive, and there is one whatever parts
// of it are given.
func TestB22ConfigDrive(t *testing.T) {
	meta := func(h lifecycle.Host, more map[string]any) map[string]any {
		m := map[string]any{"uuid": h.UID, "metal3-namespace": "lab", "metal3-name": "host-1", "local-hostname": "host-1", "local_hostname": "host-1", "name": "host-1"}
		maps.Copy(m, more)
		return m
	}
	ref := func(name string) *corev1.SecretReference { return &corev1.SecretReference{Name: name} }
	here := func(name string) *corev1.SecretReference {
		return &corev1.SecretReference{Name: name, Namespace: "lab"}
	}
	network := map[string]any{"links": []any{map[string]any{"id": "eth0"}}}
	tests := map[string]struct {
		spec func(*v1alpha1.BareMetalHostSpec)
		want func(h lifecycle.Host) map[string]any
	}{
		"nothing given": {func(*v1alpha1.BareMetalHostSpec) {}, func(h lifecycle.Host) map[string]any { return map[string]any{"meta_data": meta(h, nil)} }},
		"user data": {
			func(s *v1alpha1.BareMetalHostSpec) { s.UserData = here("user") },
			func(h lifecycle.Host) map[string]any {
				return map[string]any{"meta_data": meta(h, nil), "user_data": "#cloud-config\n"}
			},
		},
		"network data only": {
			func(s *v1alpha1.BareMetalHostSpec) { s.NetworkData = ref("network") },
			func(h lifecycle.Host) map[string]any {
				return map[string]any{"meta_data": meta(h, nil), "network_data": network}
			},
		},
		"the ramdisk's network data serve where there are no others": {
			func(s *v1alpha1.BareMetalHostSpec) { s.PreprovisioningNetworkDataName = "network" },
			func(h lifecycle.Host) map[string]any {
				return map[string]any{"meta_data": meta(h, nil), "network_data": network}
			},
		},
		"metadata win over ours": {
			func(s *v1alpha1.BareMetalHostSpec) { s.MetaData = ref("meta") },
			func(h lifecycle.Host) map[string]any {
				return map[string]any{"meta_data": meta(h, map[string]any{"local-hostname": "special", "rack": "r1"})}
			},
		},
		"empty values are as good as none": {
			func(s *v1alpha1.BareMetalHostSpec) { s.UserData, s.NetworkData = ref("empty"), ref("empty") },
			func(h lifecycle.Host) map[string]any { return map[string]any{"meta_data": meta(h, nil)} },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, ironictest.Config{}, nil)
			l.secrets.put("user", "1", map[string]string{"userData": "#cloud-config\n"})
			l.secrets.put("network", "1", map[string]string{"value": "links:\n- id: eth0\n"})
			l.secrets.put("meta", "1", map[string]string{"metaData": `{"local-hostname": "special", "rack": "r1"}`})
			l.secrets.put("empty", "1", map[string]string{"userData": "", "networkData": ""})
			h := l.available(l.host())
			tc.spec(&h.Intent.Spec)
			h = l.deployedAtSecond(h)
			want := tc.want(h)
			if diff := cmp.Diff([]map[string]any{want, want}, l.drives()); diff != "" {
				t.Errorf("config drives (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("a live image has none", func(t *testing.T) {
		l := newLab(t, ironictest.Config{}, nil)
		h := l.available(l.host())
		h.Intent.Spec.Image = &v1alpha1.Image{URL: "http://192.0.2.80/live.iso", DiskFormat: new(v1alpha1.DiskFormatLiveISO)}
		l.deploy(h)
		if d := l.drives(); len(d) != 1 || d[0] != nil {
			t.Errorf("config drives %v", d)
		}
	})
}

// deployedAtSecond deploys a host whose first deployment fails.
func (l *lab) deployedAtSecond(h lifecycle.Host) lifecycle.Host {
	l.Helper()
	image := l.bench().Image
	h.Intent.Spec.Image, h.Intent.Spec.Online = &image, true
	l.machine(h).SetFaults(ironictest.Faults{FailDeploy: "write_image"})
	h, p := l.fails(h, event.Deploy)
	if p.Type != v1alpha1.ProvisioningError || !strings.Contains(p.Message, image.URL) || !strings.Contains(p.Message, image.Checksum) {
		l.Errorf("problem %+v", p)
	}
	l.machine(h).SetFaults(ironictest.Faults{})
	return l.deploy(l.does(h, event.Undeploy, lifecycle.Deprovisioned{}))
}

// What is wrong with a Secret is said without its content, and a Secret of another
// namespace is not even read (B31).
func TestBadSecrets(t *testing.T) {
	tests := map[string]struct {
		spec func(*v1alpha1.BareMetalHostSpec)
		says string
	}{
		"a missing Secret": {func(s *v1alpha1.BareMetalHostSpec) { s.UserData = &corev1.SecretReference{Name: "gone"} }, "gone"},
		"a missing key":    {func(s *v1alpha1.BareMetalHostSpec) { s.MetaData = &corev1.SecretReference{Name: "odd"} }, "has neither key metaData nor value"},
		"no YAML":          {func(s *v1alpha1.BareMetalHostSpec) { s.NetworkData = &corev1.SecretReference{Name: "odd"} }, "neither a YAML nor a JSON object"},
		"B31: another namespace": {
			func(s *v1alpha1.BareMetalHostSpec) {
				s.UserData = &corev1.SecretReference{Name: "admin-token", Namespace: "kube-system"}
			}, "must be in same namespace as host lab/host-1",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, ironictest.Config{}, nil)
			l.secrets.put("odd", "1", map[string]string{"networkData": "S3cret: [canary"})
			h := l.available(l.host())
			image := l.bench().Image
			h.Intent.Spec.Image, h.Intent.Spec.Online = &image, true
			tc.spec(&h.Intent.Spec)
			_, p := l.fails(h, event.Deploy)
			if !strings.Contains(p.Message, tc.says) || strings.Contains(p.Message+p.Next, "S3cret") {
				t.Errorf("problem %+v, want it to say %q", p, tc.says)
			}
			for _, read := range l.secrets.read {
				if strings.HasPrefix(read, "kube-system/") {
					t.Errorf("the Secret %s was read", read)
				}
			}
		})
	}
}

// An image that Ironic cannot fetch, and one that it refuses at once, are told with
// their address, and the next one is tried afresh.
func TestBadImage(t *testing.T) {
	l := newLab(t, ironictest.Config{Images: func(address, _ string) error {
		if strings.Contains(address, "broken") {
			return errors.New("there is no such file")
		}
		return nil
	}}, nil)
	h := l.available(l.host())
	h.Intent.Spec.Online = true
	h.Intent.Spec.Image = &v1alpha1.Image{URL: "http://u:hunter22@192.0.2.80/broken.qcow2", Checksum: "x"}
	h, p := l.fails(h, event.Deploy)
	if p.Class != event.ClassImage || !strings.Contains(p.Message, "//192.0.2.80/broken.qcow2") || strings.Contains(p.Message, "hunter22") {
		t.Errorf("problem %+v", p)
	}
	h = l.does(h, event.Undeploy, lifecycle.Deprovisioned{})
	h.Intent.Spec.Image = &v1alpha1.Image{URL: "http://192.0.2.80/good.qcow2", Checksum: "x"}
	l.deploy(h)
}

// The ramdisk of an installation comes to the node in the form that it can boot.
func TestRamdisks(t *testing.T) {
	all := backend.RamdiskURLs{ISO: "http://192.0.2.80/a.iso", Kernel: "http://192.0.2.80/a.kernel", Initrd: "http://192.0.2.80/a.initrd"}
	tests := map[string]struct {
		urls   backend.RamdiskURLs
		scheme string
		want   map[string]any
	}{
		"an ISO where it can be booted": {all, "redfish-virtualmedia+https", map[string]any{"deploy_iso": all.ISO}},
		"a kernel where it cannot":      {all, "redfish+https", map[string]any{"deploy_kernel": all.Kernel, "deploy_ramdisk": all.Initrd}},
		"nothing, which is Ironic's":    {backend.RamdiskURLs{}, "redfish+https", map[string]any{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, ironictest.Config{}, func(s *backend.Settings, _ *backend.Beside) { s.Ramdisk = tc.urls })
			h := l.host()
			h.Intent.Spec.BMC.Address = strings.Replace(h.Intent.Spec.BMC.Address, "redfish-virtualmedia+https", tc.scheme, 1)
			h = l.enroll(h)
			got := map[string]any{}
			info, _ := l.node(h)["driver_info"].(map[string]any)
			for k, v := range info {
				if strings.HasPrefix(k, "deploy_") {
					got[k] = v
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("driver_info (-want +got):\n%s", diff)
			}
		})
	}
}

// A ramdisk of a host's own is waited for, and its problem told, where it is to be
// booted; registration does not need it.
func TestBuiltRamdisk(t *testing.T) {
	own := &event.RamdiskWish{Waits: "the PreprovisioningImage lab/host-1 to be built"}
	l := newLab(t, ironictest.Config{}, nil)
	h := l.host()
	h.Intent.Ramdisk = own
	h = l.enroll(h)
	u, ok := l.look(h, event.Inspect).(lifecycle.Underway)
	if !ok || u.For != own.Waits {
		t.Fatalf("%#v, want to wait for the image", u)
	}
	h.Intent.Ramdisk = &event.RamdiskWish{Problem: "Architecture not supported"}
	b, ok := l.look(h, event.Inspect).(lifecycle.Broken)
	if !ok || b.Problem.Type != v1alpha1.RegistrationError || !strings.Contains(b.Problem.Message, "Architecture not supported") {
		t.Fatalf("%#v, want the image's error", b)
	}
	h.Intent.Ramdisk = &event.RamdiskWish{Initrd: "http://192.0.2.80/i"}
	if b, ok := l.look(h, event.Inspect).(lifecycle.Broken); !ok || !strings.Contains(b.Problem.Message, "not acceptable to provisioner") {
		t.Fatalf("%#v, want an initrd without a kernel refused", b)
	}
	h.Intent.Ramdisk = &event.RamdiskWish{Kernel: "http://192.0.2.80/k", Initrd: "http://192.0.2.80/i", Params: "a=b"}
	h = l.does(h, event.Inspect, lifecycle.Inspected{Digest: "d"})
	info, _ := l.node(h)["driver_info"].(map[string]any)
	if info["deploy_ramdisk"] != "http://192.0.2.80/i" || info["kernel_append_params"] != "%default% a=b" {
		t.Errorf("driver_info %v", info)
	}
}

// An image that is built for the host has its network data in it; one that serves
// all gets them beside it.
func TestNetworkOfBuiltRamdisk(t *testing.T) {
	for name, tc := range map[string]struct {
		own  event.RamdiskWish
		want any
	}{
		"one that is built for the host": {event.RamdiskWish{ISO: "http://192.0.2.80/own.iso"}, map[string]any{}},
		"one that serves all":            {event.RamdiskWish{ISO: "http://192.0.2.80/all.iso", Plain: true}, map[string]any{"links": []any{}}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, ironictest.Config{}, nil)
			l.secrets.put("ramdisk-network", "1", map[string]string{"networkData": `{"links": []}`})
			h := l.host()
			h.Intent.Spec.PreprovisioningNetworkDataName, h.Intent.Ramdisk = "ramdisk-network", &tc.own
			h = l.enroll(h)
			if diff := cmp.Diff(tc.want, l.node(h)["network_data"]); diff != "" {
				t.Errorf("network_data (-want +got):\n%s", diff)
			}
		})
	}
}

// A host in use neither waits for an image of its own nor fails by one.
func TestHostInUseNeedsNoRamdisk(t *testing.T) {
	for name, own := range map[string]event.RamdiskWish{
		"one that is waited for": {Waits: "the image"}, "one that went bad": {Problem: "Architecture not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, ironictest.Config{}, nil)
			h := l.deploy(l.available(l.host()))
			h.Intent.Ramdisk = &own
			for _, k := range []event.Kind{event.Enroll, event.Adopt, event.PowerOn, event.Service} {
				if o, ok := l.look(h, k).(lifecycle.Finished); !ok {
					t.Errorf("%s: %#v, want it to be as it is", k, o)
				}
			}
		})
	}
}
