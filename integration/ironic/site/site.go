// Package site runs the five services on a fake Ironic: in the process of the test,
// over JetStream, between a small Kubernetes API and machines that are held in
// memory. The backends are put together as in the services' own programs. The
// services hurry where they wait for nobody, so that a test can see them try again
// and again.
package site

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/metalbus/metalbus/pkg/assembly"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/backend/ironic"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/bus/embedded"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/kube/kubetest"
	"github.com/metalbus/metalbus/services/inspector"
	"github.com/metalbus/metalbus/services/powermonitor"
	"github.com/metalbus/metalbus/services/projector"
	"github.com/metalbus/metalbus/services/provisioner"
	"github.com/metalbus/metalbus/services/registrar"
)

// Namespace is where the hosts of a site are.
const Namespace = "lab"

// A Site is an installation.
type Site struct {
	API *kubetest.Server
	// User is somebody with kubectl.
	User   kubetest.User
	Ironic *ironictest.Ironic
	// Address is where Ironic answers.
	Address string
	// Bus is a connection of the test's own.
	Bus *bus.Bus

	tb       testing.TB
	nats     *embedded.Server
	backends assembly.Backends
	access   kube.Access
	log      *Log
	stop     func()
}

// New is a site on an Ironic of that kind, whose services run until the test ends.
func New(tb testing.TB, cfg ironictest.Config) *Site {
	tb.Helper()
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	i, address, end, err := ironictest.Start(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(end)
	s := &Site{API: kubetest.New(tb), Ironic: i, Address: address, tb: tb, nats: bustest.Server(tb), log: &Log{}}
	s.User = kubetest.NewUser(tb, s.API.Config(), Namespace)
	s.access.Kubeconfig = filepath.Join(tb.TempDir(), "kubeconfig")
	if err := os.WriteFile(s.access.Kubeconfig, []byte(s.API.Kubeconfig()), 0o600); err != nil {
		tb.Fatal(err)
	}
	set := ironic.DefaultSettings()
	set.RestAge, set.Ramdisk.ISO = 20*time.Millisecond, "http://192.0.2.80/agent.iso"
	s.backends = assembly.Backends{Names: []string{ironic.Name}, Ironic: ironic.Config{One: ironic.One{Endpoint: address}, Settings: set}}
	s.Bus = s.connect(tb.Context(), "test")
	s.Begin()
	tb.Cleanup(func() { s.stop() })
	return s
}

// timing are the waits of tests, but for those of claims, which a busy computer
// would miss, and for the pauses after failures, which are to be seen to grow.
func timing() bus.Timing {
	t := bustest.Timing()
	t.Window, t.Handling, t.Quarantine, t.AckWait, t.Reply = 5*time.Second, 12*time.Second, 15*time.Second, 15*time.Second, 5*time.Second
	t.Resume, t.Forgotten = 20*time.Second, 40*time.Second
	t.BackOff, t.BackOffMax = 50*time.Millisecond, time.Second
	t.Busy, t.BusyMax, t.Refused = 50*time.Millisecond, time.Second, 100*time.Millisecond
	t.Retry, t.RetryMax = 50*time.Millisecond, time.Second
	t.Poll = 20 * time.Millisecond
	return t
}

func (s *Site) connect(ctx context.Context, name string) *bus.Bus {
	s.tb.Helper()
	b, err := bus.Connect(ctx, bus.Config{Cluster: bustest.Cluster, Name: name, Timing: timing()}, bus.WithServer(s.nats), bus.WithLogger(s.log.logger(name)))
	if err != nil {
		s.tb.Fatal(err)
	}
	if _, err := b.Init(ctx, bus.InitOptions{Replicas: 1, MaxBytes: 1 << 30, Memory: true}); err != nil {
		s.tb.Fatal(err)
	}
	return b
}

// Begin begins the services, which remember nothing of any that ran before.
func (s *Site) Begin() {
	s.tb.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.tb.Context()))
	var running sync.WaitGroup
	run := func(name string, f func(context.Context, *bus.Bus) error) {
		b := s.connect(ctx, name)
		running.Go(func() {
			if err := errors.Join(f(ctx, b), b.Close()); err != nil && ctx.Err() == nil {
				s.log.add(fmt.Sprintf("%s ended: %v", name, err))
			}
		})
	}
	for name, worker := range workers() {
		run(name, s.stage(worker))
	}
	run("projector", s.project)
	s.stop = func() { cancel(); running.Wait() }
}

// End ends the services before the test does.
func (s *Site) End() {
	s.stop()
	s.stop = func() {}
}

// Restart ends the services and begins them anew.
func (s *Site) Restart() {
	s.tb.Helper()
	s.stop()
	s.Begin()
}

// watched is how often a host's power is looked at.
const watched = 100 * time.Millisecond

func workers() map[string]func(*backend.Set, *bus.Bus) bus.Worker {
	return map[string]func(*backend.Set, *bus.Bus) bus.Worker{
		"registrar": func(set *backend.Set, b *bus.Bus) bus.Worker {
			return registrar.New(set, b, time.Now, registrar.Config{})
		},
		"inspector": func(set *backend.Set, b *bus.Bus) bus.Worker { return inspector.New(set, b) },
		"provisioner": func(set *backend.Set, b *bus.Bus) bus.Worker {
			return provisioner.New(set, b, time.Now, provisioner.DefaultConfig())
		},
		"powermonitor": func(set *backend.Set, _ *bus.Bus) bus.Worker {
			return powermonitor.New(set, time.Now, powermonitor.Config{Every: watched})
		},
	}
}

// stage runs a service that has backends, each with clients of its own.
func (s *Site) stage(worker func(*backend.Set, *bus.Bus) bus.Worker) func(context.Context, *bus.Bus) error {
	return func(ctx context.Context, b *bus.Bus) error {
		secrets, err := kube.OpenSecrets(s.access)
		if err != nil {
			return err
		}
		set, closeAll, err := s.backends.Open(ctx, assembly.Around{Secrets: secrets, Documents: b, Now: time.Now})
		if err != nil {
			return err
		}
		defer closeAll(ctx)
		return b.Serve(ctx, worker(set, b))
	}
}

func (s *Site) project(ctx context.Context, b *bus.Bus) error {
	registry := prometheus.NewRegistry()
	log := s.log.logger("projector")
	c, err := kube.New(s.API.Config(), kube.Config{Identity: "projector", Namespaces: []string{Namespace}, EventsPerSecond: 10000}, kube.Options{Log: log, Metrics: registry, Now: time.Now})
	if err != nil {
		return err
	}
	cfg := projector.DefaultConfig()
	cfg.StatusDelay = 10 * time.Millisecond
	return projector.New(cfg, c, b, projector.Options{Log: log, Metrics: registry, Now: time.Now}).Run(ctx)
}

// Complaints are log lines that no test may cause: steps that the table of states
// refuses, faults of ours, and services that ended.
func (s *Site) Complaints() []string { return s.log.all() }

// Log keeps complaints.
type Log struct {
	mu    sync.Mutex
	lines []string
}

func (l *Log) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *Log) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.lines...)
}

func (l *Log) logger(service string) *slog.Logger {
	return slog.New(&complaints{Handler: slog.DiscardHandler, log: l}).With("service", service)
}

// complaints is a handler that keeps what should not happen.
type complaints struct {
	slog.Handler
	attrs []slog.Attr
	log   *Log
}

// Enabled for what is worse than news.
func (*complaints) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// WithAttrs keeps the attributes.
func (c *complaints) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &complaints{Handler: c.Handler, attrs: append(c.attrs[:len(c.attrs):len(c.attrs)], attrs...), log: c.log}
}

// WithGroup has no meaning here.
func (c *complaints) WithGroup(string) slog.Handler { return c }

// Handle keeps a line if its outcome is one that must not be.
func (c *complaints) Handle(_ context.Context, r slog.Record) error {
	line, outcome := r.Message, ""
	note := func(a slog.Attr) bool {
		if a.Key == "outcome" {
			outcome = a.Value.String()
		}
		line += " " + a.String()
		return true
	}
	for _, a := range c.attrs {
		note(a)
	}
	r.Attrs(note)
	switch outcome {
	case "not allowed", "fault", "panic", "unreadable", "deadly":
		c.log.add(line)
	}
	return nil
}
