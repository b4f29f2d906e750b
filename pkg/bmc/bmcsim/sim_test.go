package bmcsim_test

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

func TestSameSeedGivesTheSameRack(t *testing.T) {
	a, b := rack(t, bmcsim.Config{Hosts: 8, Seed: "x"}), rack(t, bmcsim.Config{Hosts: 8, Seed: "x"})
	other := rack(t, bmcsim.Config{Hosts: 8, Seed: "y"})
	if diff := cmp.Diff(a.Views(), b.Views()); diff != "" {
		t.Errorf("racks of one seed differ:\n%s", diff)
	}
	ids, macs := map[string]bool{}, map[string]bool{}
	for _, s := range []*bmcsim.Sim{a, other} {
		for _, h := range s.Hosts() {
			_, pass := h.Credentials()
			ids[h.ID()], ids[pass] = true, true
			for _, m := range h.MACs() {
				macs[m] = true
			}
		}
	}
	if len(ids) != 32 {
		t.Errorf("%d ids and passwords are unique, want 32", len(ids))
	}
	if want := 2 * 2 * (4 + 4 + 2 + 2); len(macs) != want {
		t.Errorf("%d MACs are unique, want %d", len(macs), want)
	}
}

func TestAddAndRemove(t *testing.T) {
	s := rack(t, bmcsim.Config{Hosts: 1})
	h, err := s.Add(bmcsim.HostSpec{Name: "blue", Profile: bmcsim.HPE, Username: "u", Password: "p"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Host("blue") != h || s.Host(h.ID()) != h || h.Profile() != bmcsim.HPE {
		t.Error("the host is not found")
	}
	for name, spec := range map[string]bmcsim.HostSpec{
		"a name that is taken":  {Name: "blue"},
		"a name with a dot":     {Name: "a.b"},
		"an unknown profile":    {Name: "green", Profile: "toaster"},
		"a name with a capital": {Name: "Blue"},
	} {
		if _, err := s.Add(spec); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	c := asOwner(t, s, h)
	c.must(http.StatusOK, http.MethodGet, h.SystemPath(), nil)
	if !s.Remove("blue") || s.Remove("blue") {
		t.Error("removing twice is not told apart")
	}
	c.must(http.StatusUnauthorized, http.MethodGet, h.SystemPath(), nil)
	s.Close()
	if _, err := s.Add(bmcsim.HostSpec{}); err == nil {
		t.Error("a closed simulator takes hosts")
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, cfg := range map[string]bmcsim.Config{
		"no clock":           {},
		"a negative number":  {Now: time.Now, Hosts: -1},
		"a bad prefix":       {Now: time.Now, NamePrefix: "-"},
		"an unknown profile": {Now: time.Now, Profiles: []string{"toaster"}},
	} {
		if _, err := bmcsim.New(cfg); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestManifests(t *testing.T) {
	s := rack(t, bmcsim.Config{Hosts: 2})
	h := s.Hosts()[0]
	user, pass := h.Credentials()
	b, err := s.Manifests(bmcsim.ManifestOptions{BaseURL: "https://127.0.0.1:8000", Namespace: "lab", Image: image})
	if err != nil {
		t.Fatal(err)
	}
	docs := strings.Split(string(b), "---\n")[1:]
	if len(docs) != 4 {
		t.Fatalf("%d documents, want 4", len(docs))
	}
	var secret, host map[string]any
	for i, into := range []*map[string]any{&secret, &host} {
		if err := yaml.Unmarshal([]byte(docs[i]), into); err != nil {
			t.Fatal(err)
		}
	}
	wantSecret := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "stringData": map[string]any{"username": user, "password": pass},
		"metadata": map[string]any{"name": "sim-1-bmc", "namespace": "lab", "labels": map[string]any{"environment.metal3.io": "baremetal"}},
	}
	if diff := cmp.Diff(wantSecret, secret); diff != "" {
		t.Errorf("Secret (-want +got):\n%s", diff)
	}
	wantHost := map[string]any{
		"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": map[string]any{"name": "sim-1", "namespace": "lab"},
		"spec": map[string]any{
			"online": true, "bootMACAddress": h.MACs()[0], "image": map[string]any{"url": image, "format": "live-iso"},
			"bmc": map[string]any{
				"address":         "redfish-virtualmedia+https://127.0.0.1:8000/redfish/v1/Systems/" + h.ID(),
				"credentialsName": "sim-1-bmc", "disableCertificateVerification": true,
			},
		},
	}
	if diff := cmp.Diff(wantHost, host); diff != "" {
		t.Errorf("BareMetalHost (-want +got):\n%s", diff)
	}
	if _, err := s.Manifests(bmcsim.ManifestOptions{BaseURL: "127.0.0.1:8000"}); err == nil {
		t.Error("an address without scheme is accepted")
	}
}

// heap is the live heap after a full collection.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// use takes a host through what a provisioned one has been through.
func use(c *caller, h *bmcsim.Host) {
	user, pass := h.Credentials()
	r := c.must(http.StatusCreated, http.MethodPost, "/redfish/v1/SessionService/Sessions", map[string]string{"UserName": user, "Password": pass})
	c.token = r.header.Get("X-Auth-Token")
	for _, part := range []string{"", "/Processors", "/EthernetInterfaces", "/Storage", "/Bios"} {
		c.do(http.MethodGet, h.SystemPath()+part+"?$expand=.", nil)
	}
	insert(c, h, drive(h))
	for range 4 {
		c.reset(http.StatusNoContent, h.SystemPath(), "On")
		c.reset(http.StatusNoContent, h.SystemPath(), "ForceOff")
	}
}

func TestAHostCostsLittleMemory(t *testing.T) {
	const hosts, inUse, limit = 2000, 200, 50 << 10
	before := heap()
	s := rack(t, bmcsim.Config{Hosts: hosts})
	fresh := heap()
	for _, h := range s.Hosts()[:inUse] {
		use(asOwner(t, s, h), h)
	}
	used := heap()
	idle := (fresh - before) / hosts
	busy := idle + (used-fresh)/inUse
	t.Logf("%d bytes of heap a host when new, %d when used", idle, busy)
	if busy > limit {
		t.Errorf("a host costs %d bytes, want at most %d", busy, limit)
	}
	runtime.KeepAlive(s)
}

func BenchmarkPowerRead(b *testing.B) {
	s, err := bmcsim.New(bmcsim.Config{Now: time.Now, Hosts: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	h := s.Hosts()[0]
	user, pass := h.Credentials()
	benchGet(b, s.Handler(), user, pass, h.SystemPath())
}

func BenchmarkExpandedProcessors(b *testing.B) {
	s, err := bmcsim.New(bmcsim.Config{Now: time.Now, Hosts: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	h := s.Hosts()[0]
	user, pass := h.Credentials()
	benchGet(b, s.Handler(), user, pass, h.SystemPath()+"/Processors?$expand=.")
}
