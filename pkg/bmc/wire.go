package bmc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// wires are the connections to BMCs, with and without verified certificates.
type wires struct {
	cfg      Config
	insecure *http.Client

	mu       sync.Mutex
	verified *http.Client
	roots    *x509.CertPool // of verified
}

// Half of the bound on connections is for requests under way, half for connections
// that are kept open between them.

func inFlight(maxConns int) int { return max(1, maxConns/2) }

const (
	keepIdle     = 30 * time.Second // BMCs close idle connections early themselves
	maxHeader    = 64 << 10
	maxRedirects = 3
)

var errRedirected = errors.New("redirected elsewhere") // never leaves the package

func newWires(cfg Config) *wires {
	if cfg.RootCAs == nil {
		cfg.RootCAs = func() *x509.CertPool { return nil }
	}
	roots := cfg.RootCAs()
	return &wires{cfg: cfg, roots: roots, verified: newClient(cfg, roots, false), insecure: newClient(cfg, nil, true)}
}

func newClient(cfg Config, roots *x509.CertPool, insecure bool) *http.Client {
	idle := max(1, cfg.MaxConns/4) // for each of the two clients
	return &http.Client{
		CheckRedirect: sameHost,
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: cfg.DialTimeout}).DialContext,
			TLSHandshakeTimeout: cfg.DialTimeout,
			TLSClientConfig: &tls.Config{
				MinVersion: tls.VersionTLS12, RootCAs: roots, Time: cfg.Now,
				InsecureSkipVerify: insecure, //nolint:gosec // the user asked for it, host by host
			},
			MaxIdleConns: idle, MaxIdleConnsPerHost: idle, IdleConnTimeout: keepIdle,
			MaxResponseHeaderBytes: maxHeader,
			Proxy:                  nil, // BMCs are on their own network; nobody stands between
		},
	}
}

// sameHost follows redirects within the BMC only, since requests carry a token.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > maxRedirects || req.Method != first.Method || req.URL.Host != first.URL.Host || req.URL.Scheme != first.URL.Scheme {
		return errRedirected
	}
	return nil
}

// client sends requests. With other authorities than before there is another one:
// what is under way at the old one ends there.
func (w *wires) client(insecure bool) *http.Client {
	if insecure {
		return w.insecure
	}
	roots := w.cfg.RootCAs()
	w.mu.Lock()
	defer w.mu.Unlock()
	if roots != w.roots {
		w.verified.CloseIdleConnections()
		w.verified, w.roots = newClient(w.cfg, roots, false), roots
	}
	return w.verified
}

func (w *wires) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.verified.CloseIdleConnections()
	w.insecure.CloseIdleConnections()
}

// pathOf gives the path of a link that a BMC sent; "" if it leads elsewhere.
func pathOf(link string) string {
	u, err := url.Parse(link)
	if err != nil || len(u.Path) == 0 || u.Path[0] != '/' {
		return ""
	}
	return u.EscapedPath()
}
