package bmc_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bmc/bmctest"
)

// inventoryCeilings are the requests that reading the hardware may cost, with a
// session open.
func inventoryCeilings() map[string]int {
	return map[string]int{
		bmcsim.Dell:       6,  // system, processors, interfaces, controllers, 2 controllers with drives
		bmcsim.HPE:        5,  // the same with 1 controller
		bmcsim.OpenBMC:    8,  // system, processors, memory, chassis, adapters, functions, ports, simple storage
		bmcsim.Supermicro: 17, // no expansion: 5 collections with 11 members, and the system
	}
}

func inventory(t *testing.T, b *bmc.BMC) v1alpha1.HardwareDetails {
	t.Helper()
	got, err := b.Inventory(t.Context())
	must(t, err)
	for _, n := range got.Notes {
		t.Errorf("note: %s", n)
	}
	return got.Details
}

func TestInventoryOfEveryVendor(t *testing.T) {
	want := map[string]v1alpha1.HardwareDetails{
		bmcsim.Dell: {
			SystemVendor: v1alpha1.HardwareSystemVendor{Manufacturer: "Dell Inc.", ProductName: "PowerEdge R650"},
			Firmware:     v1alpha1.Firmware{BIOS: v1alpha1.BIOS{Version: "1.12.4"}},
			RAMMebibytes: 256 << 10,
			CPU:          v1alpha1.CPU{Arch: "x86_64", Model: "Intel(R) Xeon(R) Gold 6330 CPU @ 2.00GHz", ClockMegahertz: 4000, Count: 112},
			NIC:          []v1alpha1.NIC{{Name: "NIC.Integrated.1-1-1", SpeedGbps: 25}, {Name: "NIC.Integrated.1-2-1", SpeedGbps: 25}, {Name: "NIC.Embedded.1-1-1", SpeedGbps: 1}, {Name: "NIC.Embedded.2-1-1"}},
			Storage: []v1alpha1.Storage{
				{Name: "Disk.Bay.0:Enclosure.Internal.0-1:RAID.SL.3-1", Type: v1alpha1.SSD, SizeBytes: 480103981056, Vendor: "INTEL", Model: "SSDSC2KB480G8R"},
				{Name: "Disk.Bay.1:Enclosure.Internal.0-1:RAID.SL.3-1", Type: v1alpha1.SSD, SizeBytes: 480103981056, Vendor: "INTEL", Model: "SSDSC2KB480G8R"},
				{Name: "Disk.Bay.2:Enclosure.Internal.0-1:RAID.SL.3-1", Type: v1alpha1.HDD, Rotational: true, SizeBytes: 2000398934016, Vendor: "SEAGATE", Model: "ST2000NX0463"},
				{Name: "Disk.Bay.3:Enclosure.Internal.0-1:RAID.SL.3-1", Type: v1alpha1.HDD, Rotational: true, SizeBytes: 2000398934016, Vendor: "SEAGATE", Model: "ST2000NX0463"},
			},
		},
		bmcsim.HPE: {
			SystemVendor: v1alpha1.HardwareSystemVendor{Manufacturer: "HPE", ProductName: "ProLiant DL360 Gen10 Plus"},
			Firmware:     v1alpha1.Firmware{BIOS: v1alpha1.BIOS{Version: "U46 v1.60 (01/13/2022)"}},
			RAMMebibytes: 192 << 10,
			CPU:          v1alpha1.CPU{Arch: "x86_64", Model: "Intel(R) Xeon(R) Silver 4314 CPU @ 2.40GHz", ClockMegahertz: 4000, Count: 64},
			NIC:          []v1alpha1.NIC{{Name: "1", SpeedGbps: 10}, {Name: "2", SpeedGbps: 10}, {Name: "3"}, {Name: "4"}},
			Storage: []v1alpha1.Storage{
				{Name: "DA000000", Type: v1alpha1.NVME, SizeBytes: 1600321314816, Vendor: "HPE", Model: "MO001600KXAVP"},
				{Name: "DA000001", Type: v1alpha1.NVME, SizeBytes: 1600321314816, Vendor: "HPE", Model: "MO001600KXAVP"},
			},
		},
		bmcsim.Supermicro: {
			SystemVendor: v1alpha1.HardwareSystemVendor{Manufacturer: "Supermicro", ProductName: "SYS-620P-TRT"},
			Firmware:     v1alpha1.Firmware{BIOS: v1alpha1.BIOS{Version: "1.4b"}},
			RAMMebibytes: 64 << 10,
			CPU:          v1alpha1.CPU{Arch: "x86_64", Model: "Intel(R) Xeon(R) Silver 4309Y CPU @ 2.80GHz", ClockMegahertz: 3600, Count: 16},
			NIC:          []v1alpha1.NIC{{Name: "1", SpeedGbps: 10}, {Name: "2"}, {Name: "ToManager", MAC: "00:00:5e:00:53:ff"}},
			Storage: []v1alpha1.Storage{
				{Name: "Disk.Bay.0", Type: v1alpha1.SSD, SizeBytes: 960197124096, Vendor: "Micron", Model: "Micron_5300_MTFDDAK960TDS"},
				{Name: "Disk.Bay.1", Type: v1alpha1.SSD, SizeBytes: 960197124096, Vendor: "Micron", Model: "Micron_5300_MTFDDAK960TDS"},
			},
		},
		bmcsim.OpenBMC: {
			SystemVendor: v1alpha1.HardwareSystemVendor{Manufacturer: "Ampere(R)", ProductName: "Mt. Jade"},
			Firmware:     v1alpha1.Firmware{BIOS: v1alpha1.BIOS{Version: "2.10.100.02"}},
			RAMMebibytes: 128 << 10,
			CPU:          v1alpha1.CPU{Arch: "aarch64", Model: "Ampere(R) Altra(R) Processor", ClockMegahertz: 3000, Count: 80},
			NIC:          []v1alpha1.NIC{{Name: "fn0", Model: "Mellanox Technologies ConnectX-6 Lx", SpeedGbps: 100}, {Name: "fn1", Model: "Mellanox Technologies ConnectX-6 Lx"}},
			Storage: []v1alpha1.Storage{
				{Name: "nvme0", Type: v1alpha1.NVME, SizeBytes: 960197124096, Vendor: "SAMSUNG", Model: "MZ1L2960HCJR-00A07"},
				{Name: "nvme1", Type: v1alpha1.NVME, SizeBytes: 960197124096, Vendor: "SAMSUNG", Model: "MZ1L2960HCJR-00A07"},
			},
		},
	}
	for _, profile := range bmcsim.Profiles() {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, profile, bmc.Config{})
			b := l.open(t)
			_, err := b.Check(t.Context())
			must(t, err)
			var got v1alpha1.HardwareDetails
			n, kinds := l.cost(func() { got = inventory(t, b) })
			if most := inventoryCeilings()[profile]; n > most {
				t.Errorf("the inventory costs %d requests, want at most %d: %v", n, most, kinds)
			}
			checkIdentity(t, l.host, &got)
			if diff := cmp.Diff(want[profile], got); diff != "" {
				t.Errorf("hardware (-want +got):\n%s", diff)
			}
		})
	}
}

// checkIdentity looks at what tells one machine from another, and takes it out.
func checkIdentity(t *testing.T, h *bmcsim.Host, d *v1alpha1.HardwareDetails) {
	t.Helper()
	if d.SystemVendor.SerialNumber == "" {
		t.Error("the machine has no serial number")
	}
	d.SystemVendor.SerialNumber = ""
	var macs []string
	for i := range d.NIC {
		if d.NIC[i].MAC != "00:00:5e:00:53:ff" {
			macs = append(macs, d.NIC[i].MAC)
			d.NIC[i].MAC = ""
		}
	}
	if diff := cmp.Diff(h.MACs(), macs); diff != "" {
		t.Errorf("MAC addresses (-want +got):\n%s", diff)
	}
	for i := range d.Storage {
		s := &d.Storage[i]
		if s.Model == "MZ1L2960HCJR-00A07" {
			continue // simple storage knows no more
		}
		prefix, length := "0x5000", 18
		if s.Type == v1alpha1.NVME {
			prefix, length = "eui.5000", 20
		}
		if s.SerialNumber == "" || !strings.HasPrefix(s.WWN, prefix) || len(s.WWN) != length || s.WWNWithExtension != s.WWN {
			t.Errorf("disk %s has serial number %q and WWN %q", s.Name, s.SerialNumber, s.WWN)
		}
		s.SerialNumber, s.WWN, s.WWNWithExtension = "", "", ""
	}
}

func TestInventoryIsTheSameAtTheCommonAddress(t *testing.T) {
	s := bmctest.Rack(t, bmcsim.Config{Hosts: 4})
	base, pool := bmctest.Serve(t, s), bmctest.Pool(t, bmc.Config{})
	for _, h := range s.Hosts() {
		shared := inventory(t, bmctest.Open(t, pool, bmctest.Target(base, h)))
		alone := inventory(t, bmctest.Open(t, pool, bmctest.TargetAlone(bmctest.ServeAlone(t, h), h)))
		if diff := cmp.Diff(alone, shared); diff != "" {
			t.Errorf("%s (-alone +shared):\n%s", h.Profile(), diff)
		}
	}
}

// oddBMC serves a hand-made tree: paths to bodies.
func oddBMC(t *testing.T, tree map[string]string) *bmc.BMC {
	t.Helper()
	base := server(t, func(w http.ResponseWriter, r *http.Request) {
		body, has := tree[strings.TrimRight(r.URL.Path, "/")]
		switch {
		case r.URL.Path == "/redfish/v1/":
			body, has = `{"RedfishVersion": "1.0.0", "Systems": {"@odata.id": "/redfish/v1/Systems"}}`, true
		case body == "broken":
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		if !has {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(body))
	})
	return bmctest.Open(t, bmctest.Pool(t, bmc.Config{}), bmc.Target{BaseURL: base, SystemPath: "/redfish/v1/Systems/1", Credentials: bmc.NewCredentials("u", "p")})
}

const system = "/redfish/v1/Systems/1"

// collectionOf makes the bodies of a collection of the system, and of its members.
func collectionOf(tree map[string]string, name string, members ...string) {
	var links []string
	for i, m := range members {
		path := fmt.Sprintf("%s/%s/%d", system, name, i)
		tree[path] = m
		links = append(links, fmt.Sprintf(`{"@odata.id": %q}`, path))
	}
	tree[system+"/"+name] = fmt.Sprintf(`{"Members": [%s]}`, strings.Join(links, ","))
}

// B17: the speed of a network card is what the BMC knows, in whole Gbit/s; unknown is
// 0, and nothing is made up.
func TestB17SpeedOfNICs(t *testing.T) {
	for name, tc := range map[string]struct {
		says string
		want int
	}{
		"25 Gbit/s":                    {`"SpeedMbps": 25000`, 25},
		"0 means no link":              {`"SpeedMbps": 0`, 0},
		"not said":                     {`"FullDuplex": true`, 0},
		"null":                         {`"SpeedMbps": null`, 0},
		"-1 is never shown":            {`"SpeedMbps": -1`, 0},
		"100 Mbit/s is below 1":        {`"SpeedMbps": 100`, 0},
		"1 Gbit/s":                     {`"SpeedMbps": 1000`, 1},
		"2.5 Gbit/s is not rounded up": {`"SpeedMbps": 2500`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := map[string]string{system: `{"@odata.type": "#ComputerSystem.v1_0_0.ComputerSystem", "EthernetInterfaces": {"@odata.id": "` + system + `/EthernetInterfaces"}}`}
			collectionOf(tree, "EthernetInterfaces", `{"Id": "eth0", "MACAddress": "AA:BB:CC:00:00:02", `+tc.says+`}`)
			got := inventory(t, oddBMC(t, tree)).NIC
			if diff := cmp.Diff([]v1alpha1.NIC{{Name: "eth0", MAC: "aa:bb:cc:00:00:02", SpeedGbps: tc.want}}, got); diff != "" {
				t.Errorf("NICs (-want +got):\n%s", diff)
			}
			if b, err := json.Marshal(got); err != nil || tc.want == 0 && strings.Contains(string(b), "speedGbps") {
				t.Errorf("unknown is shown: %s %v", b, err)
			}
		})
	}
}

// B18: memory is never 0 while any source has a number, and a source that is missing
// does not fail the inspection.
func TestB18MemoryFromTheBestSource(t *testing.T) {
	const module = `{"Id": "1", "CapacityMiB": 2048}`
	for name, tc := range map[string]struct {
		summary string
		modules []string
		want    int
	}{
		"the summary":                        {`{"TotalSystemMemoryGiB": 4}`, nil, 4096},
		"the summary to the nearest MiB":     {`{"TotalSystemMemoryGiB": 3.8370}`, nil, 3929},
		"the modules if the summary is 0":    {`{"TotalSystemMemoryGiB": 0}`, []string{module, module}, 4096},
		"the modules if the summary is null": {`{"TotalSystemMemoryGiB": null}`, []string{module}, 2048},
		"the modules without a summary":      {`null`, []string{module}, 2048},
		"an empty slot counts nothing":       {`null`, []string{module, `{"Id": "2", "CapacityMiB": 2048, "Status": {"State": "Absent"}}`}, 2048},
		"a module without a size":            {`null`, []string{module, `{"Id": "2", "CapacityMiB": null}`}, 2048},
		"nothing known is no failure":        {`null`, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := map[string]string{system: `{"@odata.type": "#ComputerSystem.v1_0_0.ComputerSystem", "MemorySummary": ` + tc.summary + `, "Memory": {"@odata.id": "` + system + `/Memory"}}`}
			if tc.modules != nil {
				collectionOf(tree, "Memory", tc.modules...)
			}
			if got := inventory(t, oddBMC(t, tree)).RAMMebibytes; got != tc.want {
				t.Errorf("%d MiB, want %d", got, tc.want)
			}
		})
	}
}

// B19: a card that has the same address on every machine is one entry among others,
// and an address that is listed twice is one card.
func TestB19SharedAddresses(t *testing.T) {
	s := bmctest.Rack(t, bmcsim.Config{Hosts: 2, Profiles: []string{bmcsim.Supermicro}})
	base, pool := bmctest.Serve(t, s), bmctest.Pool(t, bmc.Config{})
	for _, h := range s.Hosts() {
		var macs []string
		for _, n := range inventory(t, bmctest.Open(t, pool, bmctest.Target(base, h))).NIC {
			macs = append(macs, n.MAC)
		}
		if diff := cmp.Diff(append(h.MACs(), "00:00:5e:00:53:ff"), macs); diff != "" {
			t.Errorf("%s (-want +got):\n%s", h.Name(), diff)
		}
	}
	tree := map[string]string{system: `{"EthernetInterfaces": {"@odata.id": "` + system + `/EthernetInterfaces"}}`}
	collectionOf(tree, "EthernetInterfaces",
		`{"Id": "a", "MACAddress": "aa:bb:cc:00:00:02"}`, `{"Id": "b", "MACAddress": "AA-BB-CC-00-00-02"}`, `{"Id": "c", "MACAddress": "00:00:00:00:00:00"}`,
		`{"Id": "d", "MACAddress": "n/a", "PermanentMACAddress": "aabbcc000004"}`, `{"Id": "e", "MACAddress": null}`, `{"Id": "f", "MACAddress": "aa:bb:cc:00:00:06", "Status": {"State": "Absent"}}`)
	want := []v1alpha1.NIC{{Name: "a", MAC: "aa:bb:cc:00:00:02"}, {Name: "d", MAC: "aa:bb:cc:00:00:04"}}
	if diff := cmp.Diff(want, inventory(t, oddBMC(t, tree)).NIC); diff != "" {
		t.Errorf("NICs (-want +got):\n%s", diff)
	}
}

func TestOddPartsDoNotSpoilTheInventory(t *testing.T) {
	tree := map[string]string{system: `{"Manufacturer": " Acme ", "BiosVersion": "1", "ProcessorSummary": {"Count": 2, "CoreCount": 12, "Model": "Old CPU"},
		"Processors": {"@odata.id": "` + system + `/Processors"}, "EthernetInterfaces": {"@odata.id": "` + system + `/EthernetInterfaces"}, "Storage": {"@odata.id": "` + system + `/Storage"}}`}
	tree[system+"/Processors"] = "broken"
	tree[system+"/Storage"] = "broken"
	collectionOf(tree, "EthernetInterfaces", `{"Id": "a", "MACAddress": 7}`, "broken", "<html>", `{"Id": "b", "MACAddress": "aa:bb:cc:00:00:02"}`)
	got, err := oddBMC(t, tree).Inventory(t.Context())
	must(t, err)
	want := v1alpha1.HardwareDetails{
		SystemVendor: v1alpha1.HardwareSystemVendor{Manufacturer: "Acme"}, Firmware: v1alpha1.Firmware{BIOS: v1alpha1.BIOS{Version: "1"}},
		CPU: v1alpha1.CPU{Model: "Old CPU", Count: 12}, NIC: []v1alpha1.NIC{{Name: "b", MAC: "aa:bb:cc:00:00:02"}},
	}
	if diff := cmp.Diff(want, got.Details); diff != "" {
		t.Errorf("hardware (-want +got):\n%s", diff)
	}
	if len(got.Notes) < 3 {
		t.Errorf("notes: %q", got.Notes)
	}
}

func TestInventoryFailsWholeWhenTheBMCFails(t *testing.T) {
	for name, tc := range map[string]struct {
		faults bmcsim.Faults
		reason error
	}{
		"a broken connection": {bmcsim.Faults{Drop: true}, bmc.ErrUnreachable},
		"a busy BMC":          {bmcsim.Faults{Unavailable: true}, bmc.ErrBusy},
		"a lost system":       {bmcsim.Faults{Lost: true}, bmc.ErrNoSystem},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, bmcsim.Dell, bmc.Config{})
			b := l.open(t)
			_, err := b.Check(t.Context())
			must(t, err)
			l.host.SetFaults(tc.faults)
			_, err = b.Inventory(t.Context())
			wants(t, err, tc.reason)
		})
	}
}
