package bmc_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bmc/bmctest"
)

func TestCheckFindsEveryVendorsSystem(t *testing.T) {
	for _, profile := range bmcsim.Profiles() {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, profile, bmc.Config{})
			var got bmc.System
			n, kinds := l.cost(func() {
				var err error
				got, err = l.open(t).Check(t.Context())
				must(t, err)
			})
			if n > 3 {
				t.Errorf("a check costs %d requests, want at most 3: %v", n, kinds)
			}
			if got.Path != l.host.OwnSystemPath() || got.Manufacturer == "" || got.Model == "" || got.SerialNumber == "" || got.Power != bmc.PowerOff || got.Health != bmc.HealthOK {
				t.Errorf("found %+v", got)
			}
			n, _ = l.cost(func() {
				_, err := l.open(t).Check(t.Context())
				must(t, err)
			})
			if n != 1 {
				t.Errorf("a second check costs %d requests, want 1", n)
			}
		})
	}
}

func TestPathOfTheSystem(t *testing.T) {
	for name, path := range map[string]string{
		"none": "", "a slash": "/", "the service root": "/redfish/v1", "the service root with a slash": "/redfish/v1/", "the system with a slash": "/redfish/v1/Systems/1/",
	} {
		for _, profile := range []string{bmcsim.HPE, bmcsim.Supermicro} { // both call their system 1
			t.Run(profile+" "+name, func(t *testing.T) {
				t.Parallel()
				findBy(t, newLab(t, profile, bmc.Config{}), path)
			})
		}
	}
}

// findBy checks that a path leads to the system in at most four requests.
func findBy(t *testing.T, l *lab, path string) {
	t.Helper()
	target := l.target()
	target.SystemPath = path
	n, kinds := l.cost(func() {
		got, err := bmctest.Open(t, l.pool, target).Check(t.Context())
		must(t, err)
		if got.Path != l.host.OwnSystemPath() {
			t.Errorf("found the system at %q", got.Path)
		}
	})
	if n > 4 {
		t.Errorf("a check costs %d requests, want at most 4: %v", n, kinds)
	}
}

func TestWrongPathOfTheSystem(t *testing.T) {
	for name, path := range map[string]string{
		"no such system":     "/redfish/v1/Systems/9",
		"the manager":        "/redfish/v1/Managers/iDRAC.Embedded.1",
		"the chassis":        "/redfish/v1/Chassis/System.Embedded.1",
		"something entirely": "/somewhere",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, bmcsim.Dell, bmc.Config{})
			target := l.target()
			target.SystemPath = path
			_, err := bmctest.Open(t, l.pool, target).Check(t.Context())
			e := explained(t, err, bmc.ErrNoSystem)
			if diff := cmp.Diff([]string{l.host.OwnSystemPath()}, e.Systems); diff != "" {
				t.Errorf("systems (-want +got):\n%s", diff)
			}
			if !strings.Contains(err.Error(), l.host.OwnSystemPath()) {
				t.Errorf("%q does not name the right path", err)
			}
		})
	}
}

func TestSeveralSystemsAndNoPath(t *testing.T) {
	s := bmctest.Rack(t, bmcsim.Config{})
	for range 7 {
		_, err := s.Add(bmcsim.HostSpec{Username: "root", Password: "same"})
		must(t, err)
	}
	b := bmctest.Open(t, bmctest.Pool(t, bmc.Config{}), bmc.Target{BaseURL: bmctest.Serve(t, s), Credentials: bmc.NewCredentials("root", "same")})
	_, err := b.Check(t.Context())
	e := explained(t, err, bmc.ErrSeveralSystems)
	if len(e.Systems) != 7 || !strings.Contains(err.Error(), "and 2 more") {
		t.Errorf("%d systems in %q", len(e.Systems), err)
	}
}

func TestCommonAddressTakesStandardTargets(t *testing.T) {
	s := bmctest.Rack(t, bmcsim.Config{Hosts: 8})
	base, pool := bmctest.Serve(t, s), bmctest.Pool(t, bmc.Config{})
	for _, h := range s.Hosts() {
		target := bmctest.Target(base, h)
		got, err := bmctest.Open(t, pool, target).Check(t.Context())
		must(t, err)
		if got.Path != h.SystemPath() {
			t.Errorf("%s: found %s", h.Name(), got.Path)
		}
		target.SystemPath = ""
		if got, err = bmctest.Open(t, pool, target).Check(t.Context()); err != nil || got.Path != h.SystemPath() {
			t.Errorf("%s without path: %v, %v", h.Name(), got.Path, err)
		}
	}
}

func TestWhyABMCCannotBeUsed(t *testing.T) {
	page := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>a printer</html>")) }
	tests := map[string]struct {
		base   func(*testing.T) string
		reason error
		says   string
	}{
		"nobody listens":          {nobody, bmc.ErrUnreachable, "refuses the connection"},
		"the name does not exist": {func(*testing.T) string { return "https://bmc..invalid" }, bmc.ErrUnknownHost, `"bmc..invalid" is unknown`},
		"a web page answers":      {func(t *testing.T) string { t.Helper(); return server(t, page) }, bmc.ErrNotRedfish, "no Redfish service"},
		"an empty server answers": {func(t *testing.T) string { t.Helper(); return server(t, http.NotFound) }, bmc.ErrNotRedfish, "no Redfish service"},
		"another kind of JSON": {func(t *testing.T) string {
			t.Helper()
			return server(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"a": 1}`)) })
		}, bmc.ErrNotRedfish, "no Redfish service"},
		"http where https is spoken": {func(t *testing.T) string { t.Helper(); return "http://" + secure(t, nil).Listener.Addr().String() }, bmc.ErrTLS, "wants https"},
		"https where http is spoken": {func(t *testing.T) string {
			t.Helper()
			return strings.Replace(server(t, page), "http://", "https://", 1)
		}, bmc.ErrTLS, "speaks no TLS"},
		"an unknown authority": {func(t *testing.T) string { t.Helper(); return secure(t, nil).URL }, bmc.ErrTLS, "disableCertificateVerification"},
		"a redirect to another place": {func(t *testing.T) string {
			t.Helper()
			return server(t, http.RedirectHandler("https://elsewhere.example/redfish/v1/", http.StatusMovedPermanently).ServeHTTP)
		}, bmc.ErrTLS, "another address"},
		"old TLS only": {func(t *testing.T) string { t.Helper(); return secure(t, &tls.Config{MaxVersion: tls.VersionTLS11}).URL }, bmc.ErrTLS, "TLS 1.2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bmctest.Open(t, bmctest.Pool(t, bmc.Config{}), bmc.Target{BaseURL: tc.base(t), Credentials: bmc.NewCredentials("admin", "canary-7")})
			_, err := b.Check(t.Context())
			wants(t, err, tc.reason)
			if !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%q does not say %q", err, tc.says)
			}
		})
	}
}

// secure serves a simulated host over TLS.
func secure(t *testing.T, cfg *tls.Config) *httptest.Server {
	t.Helper()
	s := bmctest.Rack(t, bmcsim.Config{})
	_, err := s.Add(bmcsim.HostSpec{Username: "admin", Password: "canary-7"})
	must(t, err)
	srv := httptest.NewUnstartedServer(s.Handler())
	srv.TLS = cfg
	srv.Config.ErrorLog = quiet()
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

func TestTLS(t *testing.T) {
	srv := secure(t, nil)
	trusted := x509.NewCertPool()
	trusted.AddCert(srv.Certificate())
	roots := func() *x509.CertPool { return trusted }
	name := strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)
	tests := map[string]struct {
		cfg      bmc.Config
		base     string
		insecure bool
		want     error
	}{
		"a trusted authority":           {bmc.Config{RootCAs: roots}, srv.URL, false, nil},
		"no verification":               {bmc.Config{}, srv.URL, true, nil},
		"verification is on by default": {bmc.Config{}, srv.URL, false, bmc.ErrTLS},
		"the certificate of another":    {bmc.Config{RootCAs: roots}, name, false, bmc.ErrTLS},
		"of another, not verified":      {bmc.Config{}, name, true, nil},
		"an expired certificate":        {bmc.Config{RootCAs: roots, Now: farFuture}, srv.URL, false, bmc.ErrTLS},
		"expired, not verified":         {bmc.Config{Now: farFuture}, srv.URL, true, nil},
	}
	for label, tc := range tests {
		t.Run(label, func(t *testing.T) {
			b := bmctest.Open(t, bmctest.Pool(t, tc.cfg), bmc.Target{BaseURL: tc.base, Credentials: bmc.NewCredentials("admin", "canary-7"), InsecureSkipVerify: tc.insecure})
			if _, err := b.Check(t.Context()); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

// Authorities that are renewed count from the next request on.
func TestOtherAuthorities(t *testing.T) {
	srv := secure(t, nil)
	trusted, roots := x509.NewCertPool(), x509.NewCertPool()
	trusted.AddCert(srv.Certificate())
	pool := bmctest.Pool(t, bmc.Config{RootCAs: func() *x509.CertPool { return roots }})
	b := bmctest.Open(t, pool, bmc.Target{BaseURL: srv.URL, Credentials: bmc.NewCredentials("admin", "canary-7")})
	_, err := b.Check(t.Context())
	wants(t, err, bmc.ErrTLS)
	roots = trusted
	_, err = b.Check(t.Context())
	must(t, err)
}

func farFuture() time.Time { return time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC) }

func TestSlowBMC(t *testing.T) {
	l := newLab(t, bmcsim.HPE, bmc.Config{RequestTimeout: 50 * time.Millisecond})
	l.host.SetFaults(bmcsim.Faults{Latency: time.Minute})
	_, err := l.open(t).Check(t.Context())
	wants(t, err, bmc.ErrTimeout)

	patient := bmctest.Pool(t, bmc.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err = bmctest.Open(t, patient, l.target()).Check(ctx); !errors.Is(err, bmc.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the caller's deadline: %v", err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err = bmctest.Open(t, patient, l.target()).Check(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("of a caller who left: %v", err)
	}
}

func TestBusyBMC(t *testing.T) {
	l := newLab(t, bmcsim.Dell, bmc.Config{})
	l.host.SetFaults(bmcsim.Faults{Unavailable: true, RetryAfter: 7 * time.Second})
	_, err := l.open(t).Check(t.Context())
	if e := explained(t, err, bmc.ErrBusy); e.RetryAfter != 7*time.Second || e.Status != http.StatusServiceUnavailable {
		t.Errorf("got %+v", e)
	}
	l.host.SetFaults(bmcsim.Faults{})
	_, err = l.open(t).Check(t.Context())
	must(t, err)
}

func TestTargetsThatAreNoAddress(t *testing.T) {
	pool := bmctest.Pool(t, bmc.Config{})
	for name, target := range map[string]bmc.Target{
		"nothing":         {},
		"no scheme":       {BaseURL: "192.0.2.1"},
		"another scheme":  {BaseURL: "ipmi://192.0.2.1"},
		"credentials":     {BaseURL: "https://admin:canary-7@192.0.2.1"},
		"a path":          {BaseURL: "https://192.0.2.1/redfish/v1/Systems/1"},
		"a relative path": {BaseURL: "https://192.0.2.1", SystemPath: "Systems/1"},
		"a host as path":  {BaseURL: "https://192.0.2.1", SystemPath: "//evil.example/x"},
		"a query":         {BaseURL: "https://192.0.2.1", SystemPath: "/redfish/v1/Systems/1?x"},
	} {
		if _, err := pool.BMC(target); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIPv6Addresses(t *testing.T) {
	pool := bmctest.Pool(t, bmc.Config{})
	for _, base := range []string{"https://[2001:db8::10]", "https://[2001:db8::10]:8443", "https://[fe80::1%25eth0]:8443"} {
		b, err := pool.BMC(bmc.Target{BaseURL: base, SystemPath: "/redfish/v1/Systems/1/"})
		must(t, err)
		if got, want := b.String(), base+"/redfish/v1/Systems/1"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, cfg := range map[string]bmc.Config{
		"no clock":         {},
		"a negative time":  {Now: time.Now, DialTimeout: -1},
		"a negative bound": {Now: time.Now, MaxConns: -1},
	} {
		if _, err := bmc.New(cfg); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
