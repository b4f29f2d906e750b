package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/metalbus/metalbus/pkg/kube"
)

const (
	// headerTime bounds the head of a request, whoever sends it.
	headerTime = 10 * time.Second
	// closeTime bounds the last answers.
	closeTime = 5 * time.Second
)

// Server is the webhook of one process.
type Server struct {
	cfg          Config
	log          *slog.Logger
	now          func() time.Time
	metrics      *metrics
	handlers     http.Handler
	certificates *certificates

	mu      sync.Mutex
	address string // where it listens, "" while it does not
}

// Options are what a Server uses of its surroundings.
type Options struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Now     func() time.Time
}

// New is a webhook over the hosts that c sees. It must be made before they are
// watched.
func New(cfg Config, c *kube.Cluster, o Options) (*Server, error) {
	if cfg.Namespace == "" {
		cfg.Namespace = c.Config().LeaseNamespace
	}
	s := newServer(cfg, c.Hosts, o)
	if cfg.CertificateFolder != "" {
		s.certificates.source = &files{folder: cfg.CertificateFolder}
		return s, nil
	}
	api, err := c.NewClient()
	if err != nil {
		return nil, err
	}
	s.certificates.source = &authority{cfg: cfg, client: api, log: o.Log, now: o.Now}
	return s, nil
}

func newServer(cfg Config, h hosts, o Options) *Server {
	s := &Server{cfg: cfg, log: o.Log, now: o.Now, metrics: newMetrics(o.Metrics)}
	s.certificates = &certificates{log: o.Log, expires: s.metrics.expires}
	mux := http.NewServeMux()
	for _, h := range hooks(newIndex(h), cfg.GuardDeletion) {
		mux.Handle("POST "+h.path(), s.handler(h))
	}
	s.handlers = mux
	return s
}

// Start takes the questions of the Kubernetes API until ctx ends. It fails if
// it can not listen.
func (s *Server) Start(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(s.cfg.Port)))
	if err != nil {
		return fmt.Errorf("serve the webhook: %w; choose another --webhook-port, or 0 for none", err)
	}
	spoken := s.cfg.tls(s.log)
	spoken.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.certificates.current() }
	server := &http.Server{
		Handler: s.handlers, TLSConfig: spoken, ReadHeaderTimeout: headerTime, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	s.listens(l.Addr().String())
	defer s.listens("")
	s.log.Info("serving the webhook", keyAddress, l.Addr().String())

	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all.Go(func() { s.certificates.keep(ctx) })
	all.Go(func() {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		_ = server.Shutdown(last) // what is not answered by then is asked again
	})
	if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the webhook: %w", err)
	}
	return nil
}

func (s *Server) listens(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.address = address
}

// Ready is a health check: the webhook listens, and has a certificate that is
// valid.
func (s *Server) Ready(context.Context) error {
	s.mu.Lock()
	address := s.address
	s.mu.Unlock()
	if address == "" {
		return errors.New("the webhook does not listen yet")
	}
	c, err := s.certificates.current()
	if err != nil {
		return err
	}
	if end := c.Leaf.NotAfter; s.now().After(end) {
		return fmt.Errorf("the certificate of the webhook ran out on %s", end.Format(time.RFC3339))
	}
	return nil
}
