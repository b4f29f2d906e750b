package bus_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
)

func TestConfigSaysAllThatIsWrong(t *testing.T) {
	cfg := bus.Config{
		Cluster: "No Good", Name: "a.b", Workers: -1, URLs: []string{"nats://good", "u:hunter2@host"},
		Auth: bus.Auth{CredsFile: "c", NKeyFile: "k", UserFile: "u"}, TLS: bus.TLS{CertFile: "c"},
		Timing: bus.Timing{Window: time.Second},
	}
	_, err := bus.Connect(t.Context(), cfg)
	if err == nil {
		t.Fatal("was taken")
	}
	for _, want := range []string{"cluster", "name", "address number 2", "workers", "credentials of several kinds", "password file", "key file", "window"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error shows a password: %v", err)
	}
}

// guarded is a NATS server that asks for credentials.
func guarded(tb testing.TB, change func(*server.Options)) (url string) {
	tb.Helper()
	opts := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: tb.TempDir(), NoSigs: true, NoLog: true}
	change(opts)
	s, err := server.NewServer(opts)
	if err != nil {
		tb.Fatal(err)
	}
	s.Start()
	tb.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		tb.Fatal("not ready")
	}
	return s.ClientURL()
}

func file(tb testing.TB, content []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func TestConnectWithCredentials(t *testing.T) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		server      func(*server.Options)
		good, wrong bus.Auth
	}{
		"a user and a password": {
			func(o *server.Options) { o.Username, o.Password = "metal", "hunter2" },
			bus.Auth{UserFile: file(t, []byte("metal\n")), PasswordFile: file(t, []byte("hunter2\n"))},
			bus.Auth{UserFile: file(t, []byte("metal")), PasswordFile: file(t, []byte("wrong"))},
		},
		"an NKey": {
			func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: public}} },
			bus.Auth{NKeyFile: file(t, seed)},
			bus.Auth{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := guarded(t, c.server)
			cfg := bus.Config{URLs: []string{url}, Cluster: bustest.Cluster, Name: "test", Auth: c.good}
			bustest.Connect(t, cfg)
			cfg.Auth = c.wrong
			began := time.Now()
			_, err := bus.Connect(t.Context(), cfg)
			if err == nil || !strings.Contains(err.Error(), "credentials") || strings.Contains(err.Error(), "wrong") {
				t.Errorf("error %v", err)
			}
			if time.Since(began) > 5*time.Second {
				t.Error("it was tried again, though the answer will not change")
			}
		})
	}
}

func TestAnErrorShowsNoPassword(t *testing.T) {
	address := strings.Replace(guarded(t, func(o *server.Options) { o.Username, o.Password = "metal", "hunter2" }), "nats://", "nats://metal:letmein@", 1)
	_, err := bus.Connect(t.Context(), bus.Config{URLs: []string{address}, Cluster: bustest.Cluster, Name: "test"})
	if err == nil || strings.Contains(err.Error(), "letmein") || strings.Contains(err.Error(), "metal:") {
		t.Errorf("error %v", err)
	}
}

func TestConnectByTLS(t *testing.T) {
	ca, cert, key := certificates(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pemCA, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	pool.AppendCertsFromPEM(pemCA)
	url := guarded(t, func(o *server.Options) {
		o.TLS, o.TLSVerify, o.TLSTimeout = true, true, 5
		o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS13}
	})
	cfg := bus.Config{URLs: []string{url}, Cluster: bustest.Cluster, Name: "test", TLS: bus.TLS{CAFile: ca, CertFile: cert, KeyFile: key}}
	bustest.Connect(t, cfg)

	other, _, _ := certificates(t)
	cfg.TLS.CAFile = other
	if _, err := bus.Connect(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server of another authority: error %v", err)
	}
}

// certificates are an authority and a key pair that it signed, as PEM files.
func certificates(tb testing.TB) (ca, cert, key string) {
	tb.Helper()
	fail := func(err error) {
		if err != nil {
			tb.Helper()
			tb.Fatal(err)
		}
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fail(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, template, template, &caKey.PublicKey, caKey)
	fail(err)
	ownKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fail(err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "nats"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: template.NotBefore, NotAfter: template.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, template, &ownKey.PublicKey, caKey)
	fail(err)
	keyDER, err := x509.MarshalECPrivateKey(ownKey)
	fail(err)
	block := func(kind string, der []byte) string {
		return file(tb, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return block("CERTIFICATE", caDER), block("CERTIFICATE", der), block("EC PRIVATE KEY", keyDER)
}

func TestConnectWaitsForTheServer(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := bus.Config{URLs: []string{"nats://" + l.Addr().String()}, Cluster: bustest.Cluster, Name: "test"}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := bus.Connect(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the context's", err)
	}
	connected := make(chan error, 1)
	go func() {
		b, err := bus.Connect(t.Context(), cfg)
		if err == nil {
			err = b.Close()
		}
		connected <- err
	}()
	guarded(t, func(o *server.Options) { o.Port = port })
	if err := <-connected; err != nil {
		t.Error(err)
	}
}

func TestReadinessFollowsTheConnection(t *testing.T) {
	clock := &leapClock{}
	s := bustest.Server(t)
	b := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "registrar", Timing: bustest.Timing()}, bus.WithServer(s), bus.WithClock(clock.now))
	ready := func() error { return b.Ready(t.Context()) }
	if err := ready(); err != nil {
		t.Errorf("connected: %v", err)
	}
	bustest.Serve(t, b, bustest.Registrar(enrollIn("create")))
	bustest.Await(t, "a service without its consumers not to be ready", func() bool { return errors.Is(ready(), bus.ErrNotInitialized) })
	if _, err := b.Init(t.Context(), small()); err != nil {
		t.Fatal(err)
	}
	bustest.Await(t, "the service to find its consumers", func() bool { return ready() == nil })

	s.Stop()
	bustest.Await(t, "the outage to be noticed", func() bool { clock.by.Add(int64(time.Second)); return ready() != nil })
	if by := time.Duration(clock.by.Load()); by < 30*time.Second {
		t.Errorf("not ready after %s: a short outage is none", by)
	}
	if err := b.Healthy(t.Context()); err != nil {
		t.Errorf("unhealthy, though it goes on by itself: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if b.Healthy(t.Context()) == nil {
		t.Error("healthy, though it is closed")
	}
}
