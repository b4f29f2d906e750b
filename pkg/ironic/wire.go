package ironic

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// rereads is how often files are looked at for changes.
	rereads = 10 * time.Second
	// dialTimeout is for a connection, and again for its TLS handshake.
	dialTimeout = 30 * time.Second
	// maxAnswer bounds what is read of an answer, in bytes.
	maxAnswer = 64 << 20
)

// wire sends requests with the certificates and credentials that are in the
// files now.
type wire struct {
	cfg Config
	now func() time.Time

	mu      sync.Mutex
	http    *http.Transport
	user    string
	pass    string
	sum     [sha256.Size]byte
	checked time.Time
}

func newWire(cfg Config, now func() time.Time) (*wire, error) {
	w := &wire{cfg: cfg, now: now}
	if _, err := w.refresh(true); err != nil {
		return nil, err
	}
	return w, nil
}

// RoundTrip sends a request. If the certificates do not fit and the files have
// changed, it is sent once more with the new ones: nothing was sent before.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := w.refresh(false); err != nil {
		return nil, err
	}
	resp, err := w.send(r)
	if err == nil || !certificateTrouble(err) {
		return resp, err
	}
	changed, refreshErr := w.refresh(true)
	if !changed || refreshErr != nil {
		return resp, err
	}
	return w.send(r)
}

func (w *wire) send(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	transport, user, pass := w.http, w.user, w.pass
	w.mu.Unlock()
	r = r.Clone(r.Context())
	if r.GetBody != nil {
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		r.Body = body
	}
	if user != "" {
		r.SetBasicAuth(user, pass)
	}
	resp, err := transport.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

// refresh reads the files again, at most every few seconds unless it must. Files
// that are no good (half of them new, say) leave things as they are.
func (w *wire) refresh(must bool) (changed bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if !must && now.Sub(w.checked) < rereads {
		return false, nil
	}
	m, err := w.cfg.read()
	if err == nil && w.http != nil && m.sum() == w.sum {
		w.checked = now
		return false, nil
	}
	var fresh *http.Transport
	if err == nil {
		fresh, err = transport(m, w.cfg)
	}
	w.checked = now
	if err != nil && w.http == nil {
		return false, fmt.Errorf("ironic %q: %w", w.cfg.Name, err)
	}
	if err != nil {
		return false, nil // what was good before is used on, and what is wrong shows when it no longer works
	}
	if w.http != nil {
		w.http.CloseIdleConnections()
	}
	w.http, w.user, w.pass, w.sum = fresh, m.username, m.password, m.sum()
	return true, nil
}

// transport is an HTTP transport with these certificates.
func transport(m material, cfg Config) (*http.Transport, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: cfg.TLS.Insecure} //nolint:gosec // the operator's setting
	if len(bytes.TrimSpace(m.ca)) > 0 {
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(m.ca) {
			return nil, errors.New("the CA file holds no certificate in PEM form")
		}
	}
	if len(m.cert) > 0 && len(m.key) > 0 {
		pair, err := tls.X509KeyPair(m.cert, m.key)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSClientConfig: conf, TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: cfg.Concurrency, IdleConnTimeout: time.Minute,
	}, nil
}

func (w *wire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.http.CloseIdleConnections()
}
