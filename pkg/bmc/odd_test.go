package bmc_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/bmc/bmctest"
)

// odd is a hand-made BMC without sessions. Bodies are by path, answers to changes by
// method and path: a status, or a function of the body.
type odd struct {
	tree    map[string]string
	changes map[string]func(body string) (int, string)

	mu  sync.Mutex
	got []string // changes that were made
}

func (o *odd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimRight(r.URL.Path, "/")
	if r.Method != http.MethodGet {
		b, _ := io.ReadAll(r.Body)
		status, answer := http.StatusNotFound, ""
		if f := o.changes[r.Method+" "+path]; f != nil {
			status, answer = f(string(b))
		}
		o.mu.Lock()
		o.got = append(o.got, string(b))
		o.mu.Unlock()
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
		return
	}
	body, has := o.tree[path]
	if path == "/redfish/v1" {
		body, has = `{"RedfishVersion": "1.0.0"}`, true
	}
	if !has {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(body))
}

func (o *odd) open(t *testing.T) *bmc.BMC {
	t.Helper()
	target := bmc.Target{BaseURL: server(t, o.ServeHTTP), SystemPath: system, Credentials: bmc.NewCredentials("u", "p")}
	return bmctest.Open(t, bmctest.Pool(t, bmc.Config{}), target)
}

func refuse(message string) (int, string) {
	return http.StatusBadRequest, `{"error": {"code": "x", "message": "y", "@Message.ExtendedInfo": [{"MessageId": "Base.1.8.X", "Message": "` + message + `"}]}}`
}

// A manager may keep its drives in a place of its own, and a drive may want the
// protocol apart from the address.
func TestDrivesInAPlaceOfTheirOwn(t *testing.T) {
	const insert = "/redfish/v1/Managers/m/Media/1/Insert"
	o := &odd{
		tree: map[string]string{
			system:                           `{"Links": {"ManagedBy": [{"@odata.id": "/redfish/v1/Managers/m"}]}}`,
			"/redfish/v1/Managers/m":         `{"VirtualMedia": {"@odata.id": "/redfish/v1/Managers/m/Media"}}`,
			"/redfish/v1/Managers/m/Media":   `{"Members": [{"@odata.id": "/redfish/v1/Managers/m/Media/0"}, {"@odata.id": "/redfish/v1/Managers/m/Media/1"}]}`,
			"/redfish/v1/Managers/m/Media/0": `{"@odata.id": "/redfish/v1/Managers/m/Media/0", "MediaTypes": ["Floppy"]}`,
			"/redfish/v1/Managers/m/Media/1": `{"@odata.id": "/redfish/v1/Managers/m/Media/1", "MediaTypes": ["DVD"], "WriteProtected": true, "Image": null,
				"Actions": {"#VirtualMedia.InsertMedia": {"target": "` + insert + `"}, "#VirtualMedia.EjectMedia": {"target": "/x"}}}`,
		},
		changes: map[string]func(string) (int, string){"POST " + insert: func(body string) (int, string) {
			if !strings.Contains(body, `"TransferProtocolType":"HTTP"`) {
				return refuse("The property TransferProtocolType is missing.")
			}
			return http.StatusNoContent, ""
		}},
	}
	b := o.open(t)
	must(t, b.InsertMedia(t.Context(), iso))
	want := []string{`{"Image":"` + iso + `","Inserted":true,"WriteProtected":true}`, `{"Image":"` + iso + `","TransferProtocolType":"HTTP"}`}
	if diff := cmp.Diff(want, o.got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	drives, err := b.Drives(t.Context())
	must(t, err)
	if len(drives) != 2 || drives[1].Path != "/redfish/v1/Managers/m/Media/1" {
		t.Errorf("drives: %+v", drives)
	}
}

func TestABMCWithoutVirtualMediaSaysSo(t *testing.T) {
	for name, tree := range map[string]map[string]string{
		"no manager":          {system: `{}`},
		"an empty manager":    {system: `{"Links": {"ManagedBy": [{"@odata.id": "/redfish/v1/Managers/m"}]}}`, "/redfish/v1/Managers/m": `{}`},
		"a floppy drive only": {system: `{"VirtualMedia": {"@odata.id": "/vm"}}`, "/vm": `{"Members": [{"@odata.id": "/vm/0"}]}`, "/vm/0": `{"@odata.id": "/vm/0", "MediaTypes": ["Floppy"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := (&odd{tree: tree}).open(t)
			wants(t, b.InsertMedia(t.Context(), iso), bmc.ErrRefused)
			wants(t, b.EjectMedia(t.Context()), bmc.ErrRefused)
		})
	}
}

func TestABMCThatDoesNotSetTheBootModeIsAskedWithout(t *testing.T) {
	o := &odd{tree: map[string]string{system: `{}`}, changes: map[string]func(string) (int, string){"PATCH " + system: func(body string) (int, string) {
		if strings.Contains(body, "Mode") {
			return refuse("The property BootSourceOverrideMode is a read only property.")
		}
		return http.StatusOK, `{}`
	}}}
	must(t, o.open(t).SetBootOnce(t.Context(), bmc.Cd, bmc.UEFI))
	want := `{"Boot":{"BootSourceOverrideEnabled":"Once","BootSourceOverrideTarget":"Cd"}}`
	if diff := cmp.Diff(want, o.got[len(o.got)-1]); diff != "" {
		t.Errorf("the last change (-want +got):\n%s", diff)
	}
}

func TestOldNetworkPorts(t *testing.T) {
	o := &odd{tree: map[string]string{
		system:                  `{"Links": {"Chassis": [{"@odata.id": "/redfish/v1/Chassis/c"}]}}`,
		"/redfish/v1/Chassis/c": `{"NetworkAdapters": {"@odata.id": "/na"}}`,
		"/na":                   `{"Members": [{"@odata.id": "/na/1"}]}`,
		"/na/1":                 `{"Manufacturer": "Intel", "Model": "X710", "NetworkDeviceFunctions": {"@odata.id": "/na/1/f"}, "NetworkPorts": {"@odata.id": "/na/1/p"}}`,
		"/na/1/f":               `{"Members": [{"@odata.id": "/na/1/f/1"}]}`,
		"/na/1/f/1":             `{"Id": "f1", "Ethernet": {"MACAddress": null, "PermanentMACAddress": "AA:BB:CC:00:00:02"}}`,
		"/na/1/p":               `{"Members": [{"@odata.id": "/na/1/p/1"}]}`,
		"/na/1/p/1":             `{"Id": "p1", "AssociatedNetworkAddresses": ["AA:BB:CC:00:00:02"], "CurrentLinkSpeedMbps": 10000}`,
	}}
	want := []v1alpha1.NIC{{Name: "f1", Model: "Intel X710", MAC: "aa:bb:cc:00:00:02", SpeedGbps: 10}}
	if diff := cmp.Diff(want, inventory(t, o.open(t)).NIC); diff != "" {
		t.Errorf("NICs (-want +got):\n%s", diff)
	}
}

func TestPagedCollections(t *testing.T) {
	o := &odd{tree: map[string]string{
		system: `{"Memory": {"@odata.id": "/m"}}`,
		"/m":   `{"Members": [{"@odata.id": "/m/1"}], "Members@odata.nextLink": "/m2?$skip=1"}`,
		"/m2":  `{"Members": [{"@odata.id": "/m/2"}]}`,
		"/m/1": `{"CapacityMiB": 1024}`,
		"/m/2": `{"CapacityMiB": 2048}`,
	}}
	if got := inventory(t, o.open(t)).RAMMebibytes; got != 3072 {
		t.Errorf("%d MiB, want 3072", got)
	}
}
