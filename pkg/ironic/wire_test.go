package ironic_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/ironic"
)

// pair is a self-signed certificate and its key, in PEM form.
type pair struct{ cert, key []byte }

func newPair(t *testing.T) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "ironic"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}),
	}
}

// tlsServer serves with the certificate that current holds at each connection,
// and asks for one of clients.
func tlsServer(t *testing.T, h http.Handler, current *atomic.Pointer[tls.Certificate], clients *atomic.Pointer[x509.CertPool]) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := &tls.Config{Certificates: []tls.Certificate{*current.Load()}}
		if pool := clients.Load(); pool != nil {
			c.ClientCAs, c.ClientAuth = pool, tls.RequireAndVerifyClientCert
		}
		return c, nil
	}}
	s.Config.SetKeepAlivesEnabled(false)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // handshakes are to fail here
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

func serve(t *testing.T, current *atomic.Pointer[tls.Certificate], p pair) {
	t.Helper()
	c, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	current.Store(&c)
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// B13: certificates and credentials that are replaced are used without a restart,
// and at once where the old ones no longer work.
func TestFilesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	a := newAPI(t)
	a.on("GET /nodes/"+uuid1, answer(200, nodeJSON(uuid1, "n", "active")))
	var current atomic.Pointer[tls.Certificate]
	var clients atomic.Pointer[x509.CertPool]
	old, fresh, client := newPair(t), newPair(t), newPair(t)
	serve(t, &current, old)
	write(t, path("ca.crt"), old.cert)
	url := tlsServer(t, a, &current, &clients)
	var now atomic.Int64
	c, err := ironic.New(ironic.Config{
		Name: "lab", Endpoint: url, Auth: ironic.Auth{Dir: path("auth")},
		TLS: ironic.TLS{CAFile: path("ca.crt"), CertFile: path("tls.crt"), KeyFile: path("tls.key")},
	}, func() time.Time { return time.Now().Add(time.Duration(now.Load())) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	get := func(what string) {
		t.Helper()
		if _, err := c.Get(t.Context(), uuid1); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	get("with the first certificate, no client certificate and no credentials")

	serve(t, &current, fresh)
	write(t, path("ca.crt"), fresh.cert)
	get("with another certificate")

	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(client.cert)
	clients.Store(pool)
	write(t, path("tls.crt"), client.cert)
	write(t, path("tls.key"), client.key)
	get("with a client certificate")

	if err := os.Mkdir(path("auth"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, path("auth/username"), []byte(" admin\n"))
	write(t, path("auth/password"), []byte("secret\n"))
	now.Add(int64(time.Minute))
	get("with credentials")
	requests := a.asked()
	if user, pass, ok := (&http.Request{Header: requests[len(requests)-1].Header}).BasicAuth(); !ok || user != "admin" || pass != "secret" {
		t.Errorf("credentials %v %q %q, want those of the files without white space", ok, user, pass)
	}

	// Half of a rotation, or an empty file, leaves things as they are.
	write(t, path("tls.key"), fresh.key)
	now.Add(int64(time.Minute))
	get("with a key that does not fit")
}

func TestUntrustedCertificate(t *testing.T) {
	a := newAPI(t)
	var current atomic.Pointer[tls.Certificate]
	serve(t, &current, newPair(t))
	url := tlsServer(t, a, &current, new(atomic.Pointer[x509.CertPool]))
	for name, tc := range map[string]struct {
		conf ironic.TLS
		good bool
	}{
		"is refused":               {ironic.TLS{}, false},
		"is taken where it may be": {ironic.TLS{Insecure: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ironic.New(ironic.Config{Name: "lab", Endpoint: url, TLS: tc.conf}, time.Now, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Version(t.Context())
			if tc.good && err != nil {
				t.Error(err)
			}
			if !tc.good && (!errors.Is(err, ironic.ErrNotReady) || !strings.Contains(err.Error(), "check the CA file")) {
				t.Errorf("error %v, want ErrNotReady that names the CA file", err)
			}
		})
	}
}

func TestBadMaterialIsRefusedAtStart(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ca.crt"), []byte("no certificate"))
	if err := os.Mkdir(filepath.Join(dir, "auth"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "auth", "username"), []byte("admin"))
	for name, cfg := range map[string]ironic.Config{
		"a CA file without a certificate": {TLS: ironic.TLS{CAFile: filepath.Join(dir, "ca.crt")}},
		"a client pair that is none":      {TLS: ironic.TLS{Cert: []byte("x"), Key: []byte("y")}},
		"credentials without a password":  {Auth: ironic.Auth{Dir: filepath.Join(dir, "auth")}},
		"a user name without a password":  {Auth: ironic.Auth{Username: "u"}},
		"a negative time-out":             {Timeout: -1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Name, cfg.Endpoint = "lab", "http://192.0.2.1"
			if _, err := ironic.New(cfg, time.Now, nil); err == nil {
				t.Error("no error")
			}
		})
	}
}
