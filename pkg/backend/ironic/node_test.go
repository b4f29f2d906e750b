package ironic_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	backend "github.com/metalbus/metalbus/pkg/backend/ironic"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// inventories are hardware by uid.
type inventories map[string]*v1alpha1.HardwareDetails

func (i inventories) Hardware(_ context.Context, h lifecycle.Host) (*v1alpha1.HardwareDetails, error) {
	return i[h.UID], nil
}

// macs are the MAC addresses of the host's node.
func (l *lab) macs(h lifecycle.Host) []string {
	l.Helper()
	ports, err := ironic.NewReader(l.client).Ports(l.Context(), h.Registration.Node)
	if err != nil {
		l.Fatal(err)
	}
	var list []string
	for _, p := range ports {
		list = append(list, p.MAC)
	}
	slices.Sort(list)
	return list
}

// A node that is made anew gets the ports that its machine is known to have: without
// them Ironic would not know its agent. A MAC address that all BMCs show alike (B19)
// is let be where another node has it.
func TestPortsOfANewNode(t *testing.T) {
	const shared = "00:00:5e:00:53:ff"
	known := inventories{}
	l := newLab(t, ironictest.Config{}, func(_ *backend.Settings, b *backend.Beside) { b.Inventories = known })
	var hosts []lifecycle.Host
	for range 2 {
		h := l.host()
		macs := l.machine(h).Spec().MACs
		known[h.UID] = &v1alpha1.HardwareDetails{NIC: []v1alpha1.NIC{
			{MAC: strings.ToUpper(macs[0]), PXE: true}, {MAC: macs[1], IP: "192.0.2.1"}, {MAC: macs[1], IP: "2001:db8::1"}, {MAC: shared},
		}}
		hosts = append(hosts, l.record(l.enroll(h), lifecycle.Inspected{Digest: "d"}))
	}
	l.ironic.Forget()
	for i, h := range hosts {
		h = l.enroll(l.record(h, lifecycle.Lost{}))
		want := l.machine(h).Spec().MACs
		if i == 0 {
			want = append([]string{shared}, want...)
		}
		if diff := cmp.Diff(want, l.macs(h)); diff != "" {
			t.Errorf("ports of host %d (-want +got):\n%s", i, diff)
		}
	}
}

// A port that went missing is made again before the host counts as registered.
func TestMissingPort(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.host()
	l.ironic.Inject(1, ironictest.Fault{Status: 503, Text: "no workers"}, func(method, path string, _ []byte) bool {
		return method == "POST" && path == "/v1/ports"
	})
	h = l.enroll(h)
	if diff := cmp.Diff([]string{h.Intent.Spec.BootMACAddress}, l.macs(h)); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
}

// Two packaged Ironics make a node its own parent at each change. That is said, with
// what to do, instead of losing the host.
func TestHiddenNode(t *testing.T) {
	l := newLab(t, ironictest.Config{HidesPatched: true}, nil)
	h := l.does(l.enroll(l.host()), event.Inspect, lifecycle.Inspected{Digest: "d"})
	h = l.prepare(h)
	image := l.bench().Image
	h.Intent.Spec.Image, h.Intent.Spec.Online = &image, true
	h, p := l.fails(h, event.Deploy)
	for _, say := range []string{"parent_node", "29.0.5", "35.0.1"} {
		if !strings.Contains(p.Message, say) {
			t.Errorf("problem %q, want it to say %q", p.Message, say)
		}
	}
	if _, err := l.backend.Fleet(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := l.backend.Power(t.Context(), h)
	if err != nil || s.Fault == "" {
		t.Errorf("power %+v, error %v: want a fault", s, err)
	}
}

// What is asked of a node is on it from its first request on.
func TestNewNode(t *testing.T) {
	l := newLab(t, ironictest.Config{}, func(s *backend.Settings, _ *backend.Beside) { s.ExternalURLv6 = "http://[2001:db8::80]" })
	l.secrets.put("ramdisk-network", "1", map[string]string{"networkData": `{"links": []}`})
	h := l.host()
	spec := &h.Intent.Spec
	spec.BMC.Address = "redfish-virtualmedia+http://[2001:db8::10]:8443/redfish/v1/Systems/7"
	spec.BMC.DisableCertificateVerification = true
	spec.BootMode, spec.Architecture, spec.AutomatedCleaningMode = v1alpha1.UEFISecureBoot, "aarch64", v1alpha1.CleaningModeDisabled
	spec.PreprovisioningNetworkDataName = "ramdisk-network"
	spec.InspectionMode = v1alpha1.InspectionModeFast
	h = l.begin(h, event.Enroll)
	n := l.node(h)
	want := map[string]any{
		"driver": "redfish", "boot_interface": "redfish-virtual-media", "firmware_interface": "redfish", "raid_interface": "redfish", "inspect_interface": "redfish", "deploy_interface": "direct",
		"automated_clean": false, "disable_power_off": false, "properties": map[string]any{"capabilities": "boot_mode:uefi,secure_boot:true", "cpu_arch": "aarch64"},
		"network_data": map[string]any{"links": []any{}},
		"driver_info": map[string]any{
			"redfish_address": "http://[2001:db8::10]:8443", "redfish_system_id": "/redfish/v1/Systems/7", "redfish_username": "admin", "redfish_password": "******", "redfish_verify_ca": false,
			"deploy_iso": "http://192.0.2.80/agent.iso", "external_http_url": "http://[2001:db8::80]",
		},
		"extra": map[string]any{"metalbus_host": h.UID, "metalbus_credentials": "lab/host-1@1"},
	}
	got := map[string]any{}
	for k := range want {
		got[k] = n[k]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("node (-want +got):\n%s", diff)
	}
}

// A node of before our time, or of another tool, is taken over as it is: nothing of it
// is lost, and what it is told is what it lacks.
func TestTakeOver(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.host()
	spec := l.machine(h).Spec()
	info := map[string]any{
		"redfish_address": spec.Address, "redfish_system_id": spec.SystemID, "redfish_username": spec.Username, "redfish_password": spec.Password, "redfish_auth_type": "basic",
	}
	n, err := l.client.Create(t.Context(), map[string]any{"name": h.Intent.Name, "driver": "redfish", "driver_info": info, "extra": map[string]any{"rack": "r1"}})
	if err != nil {
		t.Fatal(err)
	}
	h = l.enroll(h)
	if h.Registration.Node != n.UUID {
		t.Fatalf("node %s, want %s", h.Registration.Node, n.UUID)
	}
	got := l.node(h)
	extra, _ := got["extra"].(map[string]any)
	kept, _ := got["driver_info"].(map[string]any)
	if extra["rack"] != "r1" || kept["redfish_auth_type"] != "basic" || extra["metalbus_host"] != h.UID {
		t.Errorf("extra %v, driver_info %v", extra, slices.Sorted(maps.Keys(kept)))
	}
}

// A machine that runs, and that nobody here has provisioned, is registered and left
// alone.
func TestUnknownMachineInUse(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.enroll(l.host())
	l.machine(h).SetPower(true)
	if err := l.ironic.Force(namespace+"~"+h.Intent.Name, ironictest.State{Provision: "active", Power: "power on"}); err != nil {
		t.Fatal(err)
	}
	before := l.machine(h).Changes()
	image := l.bench().Image
	h.Intent.Spec.Image, h.Intent.Spec.Online = &image, true
	for _, k := range []event.Kind{event.Inspect, event.Deploy} {
		if _, p := l.fails(h, k); p.Class != event.ClassConflict || !strings.Contains(p.Next, "externallyProvisioned") {
			t.Errorf("%s: problem %+v", k, p)
		}
	}
	if after := l.machine(h).Changes(); after != before {
		t.Errorf("the machine was changed: %v", l.machine(h).Acts())
	}
}

// A name that looks like another host's plain name is not taken for it.
func TestManyHostsKeepApart(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	seen := map[string]string{}
	for range 20 {
		h := l.enroll(l.host())
		if other, taken := seen[h.Registration.Node]; taken {
			t.Errorf("%s and %s have one node", h.Name(), other)
		}
		seen[h.Registration.Node] = h.Name()
	}
	if n := l.ironic.Nodes()["manageable"]; n != 20 {
		t.Errorf("nodes %s", fmt.Sprint(l.ironic.Nodes()))
	}
}
