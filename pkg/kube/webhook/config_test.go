package webhook

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		says []string // none: it is valid
	}{
		"a port":                   {nil, nil},
		"none":                     {[]string{"--webhook-port=0", "--tls-min-version=SSL3"}, nil},
		"a port beyond the last":   {[]string{"--webhook-port=70000"}, []string{"webhook-port 70000"}},
		"old TLS":                  {[]string{"--tls-min-version=TLS11", "--tls-max-version=TLS14"}, []string{`tls-min-version "TLS11": want TLS12 or TLS13`, `tls-max-version "TLS14"`}},
		"least above greatest":     {[]string{"--tls-min-version=TLS13", "--tls-max-version=TLS12"}, []string{"tls-min-version TLS13 is above"}},
		"a suite that there isn't": {[]string{"--tls-cipher-suites=TLS_BEST"}, []string{`tls-cipher-suites: "TLS_BEST"`}},
		"a curve that there isn't": {[]string{"--tls-curve-preferences=X25519,Curve9"}, []string{`tls-curve-preferences: "Curve9"`, "X25519MLKEM768"}},
		"every curve": {[]string{
			"--tls-curve-preferences=X25519,CurveP256,CurveP384,CurveP521,X25519MLKEM768,SecP256r1MLKEM768,SecP384r1MLKEM1024",
		}, nil},
		"a URL":                           {[]string{"--webhook-url=https://127.0.0.1:9443"}, nil},
		"a URL without TLS":               {[]string{"--webhook-url=http://127.0.0.1:9443"}, []string{"webhook-url"}},
		"a URL with a path":               {[]string{"--webhook-url=https://127.0.0.1:9443/x"}, []string{"nothing behind it"}},
		"a URL and another's certificate": {[]string{"--webhook-url=https://a:1", "--webhook-cert-dir=/certs"}, []string{"do not go together"}},
		"no Service":                      {[]string{"--webhook-service=", "--webhook-secret="}, []string{"webhook-service is empty", "webhook-secret is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var cfg Config
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			cfg.Bind(fs)
			if err := fs.Parse(append([]string{"--webhook-port=9443"}, tt.args...)); err != nil {
				t.Fatal(err)
			}
			err := cfg.Validate()
			if (err == nil) != (len(tt.says) == 0) {
				t.Fatalf("got %v", err)
			}
			for _, says := range tt.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%v does not say %q", err, says)
				}
			}
		})
	}
}

func TestWhatIsSpoken(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*Config)
		suites []uint16
		curves []tls.CurveID
		logs   string
	}{
		"as it comes": {change: func(*Config) {}},
		"chosen": {
			change: func(c *Config) {
				c.TLSCipherSuites, c.TLSCurves = []string{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}, []string{"CurveP384", "X25519"}
			},
			suites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}, curves: []tls.CurveID{tls.CurveP384, tls.X25519},
		},
		"insecure": {
			change: func(c *Config) { c.TLSCipherSuites = []string{"TLS_RSA_WITH_RC4_128_SHA"} },
			suites: []uint16{tls.TLS_RSA_WITH_RC4_128_SHA}, logs: "not secure",
		},
		"suites that are of no use": {
			change: func(c *Config) {
				c.TLSMinVersion, c.TLSCipherSuites = tls13, []string{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}
			},
			logs: "tls-cipher-suites is not used",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := defaults()
			tt.change(&cfg)
			var log bytes.Buffer
			got := cfg.tls(slog.New(slog.NewTextHandler(&log, nil)))
			if diff := cmp.Diff(tt.suites, got.CipherSuites); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.curves, got.CurvePreferences); diff != "" {
				t.Error(diff)
			}
			if got.MinVersion < tls.VersionTLS12 || !strings.Contains(log.String(), tt.logs) || (tt.logs == "") != (log.Len() == 0) {
				t.Errorf("at least %x; log %s", got.MinVersion, log.String())
			}
		})
	}
}
