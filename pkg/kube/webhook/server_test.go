package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
)

// begin runs a webhook on a port of its own until the test ends, and returns
// its address once it is ready.
func begin(t *testing.T, s *Server) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	s.cfg.Port = port
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := s.Ready(t.Context()); err == nil {
			t.Error("it is ready though it has ended")
		}
	})
	eventually(t, func() error { return s.Ready(t.Context()) })
	return fmt.Sprint("127.0.0.1:", port)
}

func eventually(t *testing.T, do func() error) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for {
		err := do()
		if err == nil {
			return
		}
		select {
		case <-ticks.C:
		case <-deadline:
			t.Fatal(err)
		}
	}
}

func writePair(t *testing.T, folder string, k keys) {
	t.Helper()
	data, err := k.encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{certificateKey, privateKey} {
		if err := os.WriteFile(filepath.Join(folder, name), data[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func defaults() Config {
	return Config{TLSMinVersion: tls12, TLSMaxVersion: tls13, Service: "s", Namespace: "n", Secret: "s", Port: 1}
}

func TestServesTheAPI(t *testing.T) {
	t.Parallel()
	k := mustRenew(t, keys{}, names(), time.Now())
	folder := t.TempDir()
	writePair(t, folder, k)
	cfg := defaults()
	cfg.TLSMaxVersion = tls12
	registry := prometheus.NewRegistry()
	s := newServer(cfg, newFakeHosts(), Options{Log: slog.New(slog.DiscardHandler), Metrics: registry, Now: time.Now})
	s.certificates.source = &files{folder: folder}
	address := begin(t, s)

	roots := x509.NewCertPool()
	roots.AddCert(k.bundle[0])
	api := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	defer api.CloseIdleConnections()
	r, err := api.Post("https://"+address+"/validate-metal3-io-v1alpha1-baremetalhost", "application/json",
		bytes.NewReader(question(t, admissionv1.Create, nil, newHost("a"))))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(text), `"allowed":true`) {
		t.Errorf("%s %s %v", r.Status, text, err)
	}
	if r.TLS.Version != tls.VersionTLS12 || r.ProtoMajor != 2 {
		t.Errorf("TLS %x, HTTP %d", r.TLS.Version, r.ProtoMajor)
	}
	want := map[string]float64{
		"metalbus_webhook_requests_total":                            1,
		"metalbus_webhook_certificate_expiry_timestamp_seconds":      float64(k.serving.Leaf.NotAfter.Unix()),
		"metalbus_webhook_request_duration_seconds (how many times)": 1,
	}
	if diff := cmp.Diff(want, gathered(t, registry)); diff != "" {
		t.Errorf("metrics (-want +got)\n%s", diff)
	}
	if _, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}); err == nil {
		t.Error("TLS 1.3 was spoken")
	}
}

// gathered is the sum of each metric.
func gathered(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if h := m.GetHistogram(); h != nil {
				sums[f.GetName()+" (how many times)"] += float64(h.GetSampleCount())
				continue
			}
			sums[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sums
}

func TestCannotListen(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cfg := defaults()
	cfg.Port = taken.Addr().(*net.TCPAddr).Port
	s := testServer(t, cfg, newFakeHosts())
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "--webhook-port") {
		t.Errorf("got %v", err)
	}
}

func TestReadyNeedsAValidCertificate(t *testing.T) {
	t.Parallel()
	s := testServer(t, defaults(), newFakeHosts())
	s.listens("somewhere")
	k := mustRenew(t, keys{}, names(), birth)
	for name, tt := range map[string]struct {
		shown *tls.Certificate
		now   time.Time
		says  string
	}{
		"none yet":     {nil, birth, "no certificate yet"},
		"a valid one":  {&k.serving, birth, ""},
		"one too late": {&k.serving, birth.Add(servingLife + day), "ran out on 2026-04-02"},
	} {
		t.Run(name, func(t *testing.T) {
			s.certificates.shown.Store(tt.shown)
			s.now = func() time.Time { return tt.now }
			err := s.Ready(t.Context())
			if (tt.says == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
		})
	}
}

// What cert-manager renews is shown soon after; what is half written is not.
func TestFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	first, second := mustRenew(t, keys{}, names(), birth), mustRenew(t, keys{}, names(), birth)
	folder := t.TempDir()
	writePair(t, folder, first)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := &certificates{source: &files{folder: folder}, log: slog.New(slog.NewTextHandler(&log, nil)), expires: prometheus.NewGauge(prometheus.GaugeOpts{Name: "x"})}
		ctx, cancel := context.WithCancel(t.Context())
		go c.keep(ctx)
		defer synctest.Wait()
		defer cancel()
		shows := func(want keys) {
			t.Helper()
			synctest.Wait()
			if got, err := c.current(); err != nil || !got.Leaf.Equal(want.serving.Leaf) {
				t.Fatalf("another certificate, %v", err)
			}
		}
		shows(first)
		if err := os.WriteFile(filepath.Join(folder, privateKey), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * filesEvery)
		shows(first)
		writePair(t, folder, second)
		time.Sleep(lastRetry)
		shows(second)
		if n := strings.Count(log.String(), "could not be kept"); n != 1 {
			t.Errorf("it complained %d times, want once:\n%s", n, log.String())
		}
	})
}

func TestRetriesGrow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := &brokenSource{}
		c := &certificates{source: source, log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		c.keep(ctx)
		if n := source.asked.Load(); n < 100 || n > 140 {
			t.Errorf("asked %d times in an hour", n)
		}
	})
}

type brokenSource struct{ asked atomic.Int32 }

func (b *brokenSource) every() time.Duration                { return time.Minute }
func (b *brokenSource) watch(ctx context.Context, _ func()) { <-ctx.Done() }
func (b *brokenSource) fetch(context.Context) (*tls.Certificate, error) {
	b.asked.Add(1)
	return nil, io.ErrUnexpectedEOF
}
