package bmcsim

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	graceTimeout  = 2 * time.Second
)

// Serve answers for all hosts on l until ctx ends, then lets requests end and
// closes l. It returns nil after an end by ctx. A TLS listener makes it https.
func (s *Sim) Serve(ctx context.Context, l net.Listener) error {
	return serveUntil(ctx, l, s.Handler())
}

// Serve answers for this host's BMC alone on l, as Sim.Serve does for all.
func (h *Host) Serve(ctx context.Context, l net.Listener) error {
	return serveUntil(ctx, l, h.Handler())
}

func serveUntil(ctx context.Context, l net.Listener, h http.Handler) error {
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		// Dropped connections are what the simulator does on purpose.
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	cancel() // event streams and delays end at once
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), graceTimeout)
	defer stop()
	if err := srv.Shutdown(grace); err != nil {
		_ = srv.Close() // whoever is left has been warned
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
