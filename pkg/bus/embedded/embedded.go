// Package embedded runs a NATS server with JetStream inside of the process, for
// laptops, small sites and tests. It listens on nothing unless it is told to:
// services connect to it with bus.WithServer.
package embedded

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Config of the server.
type Config struct {
	// Dir is where everything is stored. It survives the process.
	Dir string
	// SyncAlways makes each event safe against a power cut before it is
	// acknowledged. It costs an fsync for each; leave it off in tests only.
	SyncAlways bool
	// Listen is an address for other processes to connect to, host:port; ""
	// for none. Port 0 chooses one.
	Listen string
	// Quiet is how long the server may take to start; 10 s if 0.
	Ready time.Duration
}

// Server is a running server. It is a nats.InProcessConnProvider.
type Server struct{ s *server.Server }

// Start starts a server and waits until it takes connections.
func Start(cfg Config) (*Server, error) {
	opts, err := cfg.options()
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("configure the NATS server: %w", err)
	}
	s.Start()
	if cfg.Ready == 0 {
		cfg.Ready = 10 * time.Second
	}
	if !s.ReadyForConnections(cfg.Ready) {
		s.Shutdown()
		return nil, fmt.Errorf("the NATS server in %q was not ready after %s: is another process using the directory or the address?", cfg.Dir, cfg.Ready)
	}
	return &Server{s}, nil
}

func (cfg Config) options() (*server.Options, error) {
	if cfg.Dir == "" {
		return nil, errors.New("the NATS server needs a directory")
	}
	opts := &server.Options{
		ServerName: "metalbus", JetStream: true, StoreDir: cfg.Dir, SyncAlways: cfg.SyncAlways,
		NoSigs: true, NoLog: true, DontListen: cfg.Listen == "",
		JetStreamMaxMemory: -1, JetStreamMaxStore: -1,
	}
	if cfg.Listen == "" {
		return opts, nil
	}
	addr, err := net.ResolveTCPAddr("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen address %q: %w", cfg.Listen, err)
	}
	opts.Host, opts.Port = addr.IP.String(), addr.Port
	if addr.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	return opts, nil
}

// InProcessConn is a connection to the server.
func (s *Server) InProcessConn() (net.Conn, error) { return s.s.InProcessConn() }

// URL is where the server listens, "" if it does not.
func (s *Server) URL() string {
	if s.s.Addr() == nil {
		return ""
	}
	return s.s.ClientURL()
}

// Stop ends the server and waits until all is stored.
func (s *Server) Stop() {
	s.s.Shutdown()
	s.s.WaitForShutdown()
}
