package service_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/metalbus/metalbus/pkg/service"
)

func TestHealthNamesWhatFails(t *testing.T) {
	bad := func(context.Context) error { return errors.New("no leader") }
	good := func(context.Context) error { return nil }
	tests := map[string]struct {
		alive, ready service.Check
		path         string
		want         int
		says         string
	}{
		"all is well":                        {good, good, "/readyz", 200, "[+] bus"},
		"trouble of others leaves it alive":  {good, bad, "/healthz", 200, "[+] loop"},
		"trouble of others is not ready":     {good, bad, "/readyz", 503, "[-] bus: no leader"},
		"what is not alive is not ready":     {bad, good, "/readyz", 503, "[-] loop: no leader"},
		"what is not alive is to be started": {bad, good, "/healthz", 503, "[-] loop: no leader"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := service.NewHealth()
			h.Alive("loop", tc.alive)
			h.Ready("bus", tc.ready)
			w := httptest.NewRecorder()
			h.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, tc.path, nil))
			if w.Code != tc.want || !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("got %d:\n%s\nwant %d with %q", w.Code, w.Body, tc.want, tc.says)
			}
		})
	}
}

func TestServicesShareAProcess(t *testing.T) {
	var log bytes.Buffer
	address := freeAddress(t)
	f, stop, err := service.Open(t.Context(), "registrar", service.Config{HealthAddress: address}, &log, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, frame := range []*service.Frame{f, f.For("inspector")} {
		seen := prometheus.NewCounter(prometheus.CounterOpts{Name: "metalbus_seen_total", Help: "x"})
		frame.Metrics.MustRegister(seen)
		seen.Inc()
		frame.Log.Info("seen")
	}
	metrics := get(t, "http://"+address+"/metrics")
	for _, want := range []string{
		`metalbus_seen_total{service="registrar"} 1`, `metalbus_seen_total{service="inspector"} 1`, `metalbus_build_info{`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
	for _, want := range []string{`"service":"registrar"`, `"service":"inspector"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in the log:\n%s", want, &log)
		}
	}
}

func TestAnAddressInUseSaysWhatToDo(t *testing.T) {
	cfg := service.Config{HealthAddress: freeAddress(t)}
	_, stop, err := service.Open(t.Context(), "a", cfg, io.Discard, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, _, err := service.Open(t.Context(), "b", cfg, io.Discard, time.Now); err == nil || !strings.Contains(err.Error(), "--health-address") {
		t.Errorf("got %v", err)
	}
}

func TestSpansGoToTheCollector(t *testing.T) {
	got := make(chan string, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.URL.Path }))
	defer collector.Close()
	f, stop, err := service.Open(t.Context(), "a", service.Config{TraceEndpoint: collector.URL}, io.Discard, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	_, span := f.Tracer.Tracer("test").Start(t.Context(), "look")
	span.End()
	stop()
	if path := <-got; path == "" {
		t.Error("no path")
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
