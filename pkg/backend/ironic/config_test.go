package ironic_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	backend "github.com/metalbus/metalbus/pkg/backend/ironic"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// configured is the configuration from flags and environment.
func configured(t *testing.T, env map[string]string, args ...string) *backend.Config {
	t.Helper()
	c := &backend.Config{}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.Bind(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	for name, value := range env { // as the frame of services does
		if err := fs.Set(strings.ToLower(strings.ReplaceAll(name, "_", "-")), value); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// The variables that deployments of the operator that we follow set are understood.
func TestVariables(t *testing.T) {
	c := configured(t, map[string]string{
		"IRONIC_ENDPOINT": "https://192.0.2.5:6385/v1/", "METAL3_AUTH_ROOT_DIR": "/auth", "IRONIC_CACERT_FILE": "/ca", "IRONIC_CLIENT_CERT_FILE": "/cert",
		"IRONIC_CLIENT_PRIVATE_KEY_FILE": "/key", "IRONIC_INSECURE": "True", "IRONIC_CLIENT_TIMEOUT": "45s", "IRONIC_CLIENT_CACHE_TTL": "10s",
		"DEPLOY_KERNEL_URL": "http://192.0.2.80/k", "DEPLOY_RAMDISK_URL": "http://192.0.2.80/r", "DEPLOY_ISO_URL": "http://192.0.2.80/i",
		"PROVISIONING_NETWORK_DISABLED": "true", "IRONIC_EXTERNAL_URL_V6": "http://[2001:db8::1]",
		"LIVE_ISO_FORCE_PERSISTENT_BOOT_DEVICE": "Always", "DIRECT_DEPLOY_FORCE_PERSISTENT_BOOT_DEVICE": "Never",
	})
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	one, s := c.One, c.Settings
	want := backend.One{
		Endpoint: "https://192.0.2.5:6385/v1/", AuthRoot: "/auth", CAFile: "/ca", CertFile: "/cert", KeyFile: "/key", Insecure: true, Timeout: 45 * time.Second, Discovery: 10 * time.Second,
	}
	if one != want {
		t.Errorf("%+v, want %+v", one, want)
	}
	if s.Ramdisk != (backend.RamdiskURLs{Kernel: "http://192.0.2.80/k", Initrd: "http://192.0.2.80/r", ISO: "http://192.0.2.80/i"}) ||
		!s.NoProvisioningNetwork || s.ExternalURLv6 != "http://[2001:db8::1]" || s.LiveISOBootDevice != "Always" || s.DiskBootDevice != "Never" {
		t.Errorf("settings %+v", s)
	}
}

func TestBadConfig(t *testing.T) {
	tests := map[string]struct {
		env  map[string]string
		says []string
	}{
		"no endpoint":              {nil, []string{"ironic-endpoint"}},
		"an endpoint that is none": {map[string]string{"IRONIC_ENDPOINT": "ironic"}, []string{`"ironic" is not like http://`}},
		"an initrd alone":          {map[string]string{"IRONIC_ENDPOINT": "http://192.0.2.5", "DEPLOY_RAMDISK_URL": "http://192.0.2.80/r"}, []string{"deploy-ramdisk-url: give deploy-kernel-url too"}},
		"a URL that is none":       {map[string]string{"IRONIC_ENDPOINT": "http://192.0.2.5", "DEPLOY_ISO_URL": "x"}, []string{"deploy-iso-url: want a URL"}},
		"all at once": {
			map[string]string{"LIVE_ISO_FORCE_PERSISTENT_BOOT_DEVICE": "always", "SOFT_POWER_OFF_TIMEOUT": "1ms"},
			[]string{"ironic-endpoint", `live-iso-force-persistent-boot-device "always"`, "soft-power-off-timeout 1ms"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := configured(t, tc.env).Validate()
			for _, s := range tc.says {
				if err == nil || !strings.Contains(err.Error(), s) {
					t.Errorf("error %v, want it to say %q", err, s)
				}
			}
		})
	}
}

func listFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ironics.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Several Ironics take the hosts that their selectors choose.
func TestSeveralIronics(t *testing.T) {
	var urls []string
	for range 2 {
		_, url, stop, err := ironictest.Start(ironictest.Config{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		urls = append(urls, url)
	}
	c := configured(t, nil, "--ironics-file", listFile(t, `
ironics:
- name: south
  endpoint: `+urls[0]+`
- name: north
  endpoint: `+urls[1]+`
  selector: site=north,rack in (r1,r2)
  concurrency: 4
  timeout: 10s
  ramdisk: {iso: http://192.0.2.80/north.iso}
`))
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	list, stop, err := c.Open(backend.Beside{Secrets: &secrets{}, Now: time.Now}, prometheus.NewPedanticRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if len(list) != 2 || list[0].Name() != "south" || list[1].Name() != "north" {
		t.Fatalf("backends %v", list)
	}
	host := func(labels map[string]string) lifecycle.Host {
		var h lifecycle.Host
		h.Intent.Labels = labels
		return h
	}
	for _, tc := range []struct {
		labels       map[string]string
		south, north bool
	}{
		{map[string]string{"site": "north", "rack": "r2"}, false, true},
		{map[string]string{"site": "north", "rack": "r3"}, false, false},
		{nil, false, false},
	} {
		h := host(tc.labels)
		if s, n := list[0].Claims(h), list[1].Claims(h); s != tc.south || n != tc.north {
			t.Errorf("labels %v: south %v, north %v", tc.labels, s, n)
		}
	}
}

func TestBadListOfIronics(t *testing.T) {
	tests := map[string]struct {
		text string
		says []string
	}{
		"nothing":          {"", []string{"list at least one Ironic"}},
		"a misspelt field": {"ironics:\n- name: a\n  endpont: http://192.0.2.5\n", []string{"endpont"}},
		"a name twice": {
			"ironics:\n- {name: a, endpoint: 'http://192.0.2.5'}\n- {name: a, endpoint: 'http://192.0.2.6'}\n", []string{"ironics[1]", `the name "a" is used twice`},
		},
		"all at once": {
			"ironics:\n- {endpoint: x}\n- {name: b, endpoint: 'http://192.0.2.6', selector: '!!', timeout: soon}\n",
			[]string{"ironics[0]: name", `"x" is not like`, "ironics[1]", "soon"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := configured(t, nil, "--ironics-file", listFile(t, tc.text))
			_, _, err := c.Open(backend.Beside{Secrets: &secrets{}, Now: time.Now}, nil)
			for _, s := range tc.says {
				if err == nil || !strings.Contains(err.Error(), s) {
					t.Errorf("error %v, want it to say %q", err, s)
				}
			}
		})
	}
}
