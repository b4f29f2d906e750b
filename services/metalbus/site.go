package metalbus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/metalbus/metalbus/deploy/crds"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/embedded"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/kube/setup"
	"github.com/metalbus/metalbus/pkg/service"
)

// Service is one of the services, to be run inside of this process.
type Service struct {
	Name string
	// Run runs it until ctx ends, and then finishes what is in hand.
	Run func(ctx context.Context, f *service.Frame, s Shared) error
}

// Shared is what the services of one process are given in common.
type Shared struct {
	// Bus and Server say how the bus is reached.
	Bus    bus.Config
	Server []bus.Option
	// Backends are the doors to the hardware.
	Backends *backend.Set
	// Kube is how Kubernetes is reached, and which namespaces count.
	Kube kube.Config
}

// OpenBackends makes the backend of the name, to which hosts go that name none.
// Where it pretends, an operation takes the delay. What it returns second lets
// go of it.
type OpenBackends func(name string, delay time.Duration, secrets kube.Access, now func() time.Time) (*backend.Set, func(context.Context), error)

// siteOptions say how an installation in one process is set up.
type siteOptions struct {
	Data folder
	Rack rackConfig
	// Grow: a rack that is there already gets as many hosts as Rack says; else
	// it stays as it is.
	Grow bool
	// Namespace, Image and Backend are those of the hosts. An empty Image asks
	// for none.
	Namespace, Image, Backend string
	// Kubeconfig names a cluster to use instead of one of our own; Kubeapi is
	// the program for that, to be looked for if empty.
	Kubeconfig, Kubeapi string
	// Bus is a NATS server to use instead of an embedded one, if it has URLs.
	Bus bus.Config
	// Listen is an address of the embedded NATS server for other programs.
	Listen string
	Frame  service.Config
}

// site is an installation in one process: NATS, a Kubernetes API, simulated
// BMCs and the services.
type site struct {
	siteOptions
	tool    Tool
	console *console

	plan       plan
	rack       *rack
	kubeconfig string
	cluster    *setup.Cluster
	frame      *service.Frame
	shared     Shared
	bus        *bus.Bus
	socket     string               // of an embedded NATS server
	counts     *prometheus.Registry // what the services count

	// fail ends everything with a cause.
	fail    context.CancelCauseFunc
	closers []closer
}

// closer undoes one step of the start.
type closer struct {
	what string // said when it is done, "" for nothing
	do   func() error
}

func (s *site) onClose(what string, do func() error) { s.closers = append(s.closers, closer{what, do}) }

// close undoes what open did, the last step first.
func (s *site) close() error {
	var errs []error
	for _, c := range slices.Backward(s.closers) {
		if err := c.do(); err != nil {
			errs = append(errs, err)
			continue
		}
		if c.what != "" {
			s.console.say("%s", c.what)
		}
	}
	s.closers = nil
	return errors.Join(errs...)
}

// open starts everything but the services. The context that it returns ends
// with ctx, or when a part ends by itself, with that as its cause. close must
// be called, also after an error.
func (s *site) open(ctx context.Context) (context.Context, error) {
	ctx, s.fail = context.WithCancelCause(ctx)
	s.onClose("", func() error { s.fail(nil); return nil })
	release, err := s.Data.take()
	if err != nil {
		return ctx, err
	}
	s.onClose("", func() error { release(); return nil })
	_ = os.Remove(s.Data.running()) // of a run that was killed
	for _, step := range []func(context.Context) error{
		s.findKubeapi, s.makePlan, s.openFrame, s.openRack, s.openKubeAndBus, s.prepareCluster, s.openBackends, s.tellOthers,
	} {
		if err := step(ctx); err != nil {
			return ctx, cause(ctx, err)
		}
	}
	return ctx, nil
}

// cause is why the context ended, if that is more than that it was cancelled.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil && !errors.Is(c, context.Canceled) {
		return c
	}
	return err
}

// findKubeapi finds the program of the Kubernetes API, before anything else is done.
func (s *site) findKubeapi(context.Context) (err error) {
	if s.Kubeconfig == "" {
		s.Kubeapi, err = findKubeapi(s.Kubeapi)
	}
	return err
}

// makePlan finds what the installation was begun with, or begins one.
func (s *site) makePlan(context.Context) error {
	old, found, err := s.Data.readPlan()
	switch {
	case err != nil:
		return err
	case !found:
		s.plan = plan{Simulator: "127.0.0.1:0", Backend: s.Backend}
		return nil
	case old.Backend != s.Backend:
		return usageError{fmt.Errorf("%s was begun with --backend %s: give that, or choose another folder with --data", s.Data, old.Backend)}
	case !s.Grow:
		s.Rack.Hosts = 0
	}
	s.plan = old
	return nil
}

// openFrame opens the log, the metrics and the health of the process.
func (s *site) openFrame(ctx context.Context) error {
	file, err := os.OpenFile(s.Data.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	s.onClose("", file.Close)
	var stop func()
	if s.frame, stop, err = service.Open(ctx, name, s.Frame, file, s.tool.Env.Now); err != nil {
		return err
	}
	s.onClose("", func() error { stop(); return nil })
	s.counts = prometheus.NewRegistry()
	s.console.say("logging to %s", s.Data.log())
	return nil
}

func (s *site) openRack(ctx context.Context) error {
	r, err := openRack(ctx, s.Rack, s.plan.Simulator, s.Data.machines(), s.tool.Env.Now)
	if err != nil && s.plan.Declared > 0 {
		return fmt.Errorf("%w; the hosts name it as their BMC address, so free it, or begin anew in another folder with --data", err)
	}
	if err != nil {
		return err
	}
	s.rack = r
	s.plan.Simulator = r.address()
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var serving sync.WaitGroup
	var ended error
	serving.Go(func() {
		if ended = r.serve(ctx); ended != nil {
			s.fail(ended)
		}
	})
	s.onClose("simulator stopped, its machines are kept in "+s.Data.machines(), func() error {
		stop()
		serving.Wait()
		return ended
	})
	if err := s.Data.writePlan(s.plan); err != nil {
		return err
	}
	s.console.say("%s answer at %s", r.describe(), r.url())
	return nil
}

// openKubeAndBus starts the Kubernetes API, which takes longest, and the bus
// meanwhile.
func (s *site) openKubeAndBus(ctx context.Context) error {
	kubeconfig := func(context.Context) (string, error) { return s.Kubeconfig, nil }
	if s.Kubeconfig == "" {
		api, err := s.startKubeapi(ctx)
		if err != nil {
			return err
		}
		kubeconfig = api.await
	}
	if err := s.openBus(ctx); err != nil {
		return err
	}
	var err error
	if s.kubeconfig, err = kubeconfig(ctx); err != nil {
		return err
	}
	if s.cluster, err = setup.Open(ctx, s.kubeconfig); err != nil {
		return err
	}
	s.console.say("Kubernetes API ready: KUBECONFIG=%s", s.kubeconfig)
	return nil
}

func (s *site) startKubeapi(ctx context.Context) (*kubeapi, error) {
	if err := s.awaitOrphan(ctx); err != nil {
		return nil, err
	}
	api, err := startKubeapi(s.Kubeapi, s.Data.kube(), s.Data.kubeapiLog())
	if err != nil {
		return nil, err
	}
	s.console.say("starting the Kubernetes API")
	stopping := make(chan struct{})
	go func() {
		select {
		case <-api.ended:
			s.fail(api.trouble())
		case <-stopping:
		}
	}()
	s.onClose("Kubernetes API stopped", func() error {
		close(stopping)
		return api.stop()
	})
	return api, nil
}

// awaitOrphan waits for the API of an earlier run that was killed: it takes a
// moment to notice, and then stops.
func (s *site) awaitOrphan(ctx context.Context) error {
	holder := filepath.Join(s.Data.kube(), "lock")
	ctx, cancel := context.WithTimeout(ctx, kubeapiGrace)
	defer cancel()
	for said := false; locked(holder); said = true {
		if !said {
			s.console.say("waiting for the Kubernetes API of an earlier run to stop")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the kubeapi that holds %s to stop: %w", holder, ctx.Err())
		case <-time.After(orphanPause):
		}
	}
	return nil
}

// orphanPause is the pause between two looks whether an earlier run's API has stopped.
const orphanPause = 100 * time.Millisecond

// openBus starts a NATS server or finds the one that was named, and connects
// the tool itself.
func (s *site) openBus(ctx context.Context) error {
	s.shared.Bus = s.Bus
	s.shared.Bus.StateDir = s.Data.notes()
	if err := os.MkdirAll(s.Data.notes(), 0o700); err != nil {
		return err
	}
	if len(s.Bus.URLs) == 0 {
		if err := s.startNATS(ctx); err != nil {
			return err
		}
	}
	cfg := s.shared.Bus
	cfg.Name = name
	var err error
	if s.bus, err = bus.Connect(ctx, cfg, append(s.shared.Server, bus.WithClock(s.tool.Env.Now), bus.WithLogger(s.frame.Log))...); err != nil {
		return err
	}
	s.onClose("", s.bus.Close)
	if err := s.prepareBus(ctx); err != nil {
		return err
	}
	s.console.say("bus ready")
	return nil
}

// prepareBus makes the streams, or sees that they are there on a NATS server
// of others, who decide on replicas and bytes.
func (s *site) prepareBus(ctx context.Context) error {
	if len(s.Bus.URLs) == 0 {
		_, err := s.bus.Init(ctx, bus.InitOptions{Replicas: 1, MaxBytes: laptopBytes})
		return err
	}
	for _, err := range s.bus.Hosts(ctx) {
		return err
	}
	return nil
}

// laptopBytes is what the streams may hold: enough for ten thousand hosts.
const laptopBytes = 2 << 30

func (s *site) startNATS(ctx context.Context) error {
	server, err := embedded.Start(embedded.Config{Dir: s.Data.nats(), SyncAlways: true, Listen: s.Listen})
	if err != nil {
		return err
	}
	s.onClose("bus stopped", func() error { server.Stop(); return nil })
	way, err := openSocket(ctx, s.Data.path("nats.sock"), server)
	if err != nil {
		return err
	}
	s.onClose("", way.close)
	s.shared.Server = []bus.Option{bus.WithServer(server)}
	s.socket = way.path
	if s.Listen != "" {
		s.console.say("NATS listens at %s", server.URL())
	}
	return nil
}

// prepareCluster brings our kinds and the namespace to the cluster.
func (s *site) prepareCluster(ctx context.Context) error {
	kinds, err := s.cluster.ApplyCRDs(ctx, crds.FS)
	if err != nil {
		return err
	}
	s.console.say("%s of objects served", count(kinds, "kind"))
	return s.cluster.EnsureNamespace(ctx, s.Namespace)
}

func (s *site) openBackends(ctx context.Context) error {
	s.shared.Kube = kube.Config{Access: kube.Access{Kubeconfig: s.kubeconfig}, Identity: name + "-up", LeaseNamespace: s.Namespace}
	if s.Kubeconfig != "" {
		s.shared.Kube.Namespaces = []string{s.Namespace} // the others are somebody's
	}
	delay := time.Duration(s.Rack.Delay * float64(bootTime()))
	set, stop, err := s.tool.OpenBackends(s.Backend, delay, s.shared.Kube.Access, s.tool.Env.Now)
	if err != nil {
		return err
	}
	s.shared.Backends = set
	s.onClose("", func() error { stop(context.WithoutCancel(ctx)); return nil })
	return nil
}

// tellOthers writes down how other processes reach the installation.
func (s *site) tellOthers(context.Context) error {
	b := s.shared.Bus
	err := writeJSON(s.Data.running(), running{
		Socket: s.socket, URLs: b.URLs, Auth: b.Auth, TLS: b.TLS, APIPrefix: b.APIPrefix, Cluster: b.Cluster,
		Kubeconfig: s.kubeconfig, Simulator: s.rack.url(),
	})
	s.onClose("", func() error { return os.Remove(s.Data.running()) })
	return err
}

// startServices runs the services until ctx ends.
func (s *site) startServices(ctx context.Context) {
	var all sync.WaitGroup
	for _, one := range s.tool.Services {
		f := s.frame.For(one.Name)
		f.Metrics = both{f.Metrics, prometheus.WrapRegistererWith(prometheus.Labels{"service": one.Name}, s.counts)}
		all.Go(func() {
			if err := one.Run(ctx, f, s.shared); ctx.Err() == nil {
				s.fail(fmt.Errorf("%s ended: %w; see %s", one.Name, err, s.Data.log()))
			}
		})
	}
	s.onClose("services stopped, with nothing left in hand", func() error {
		s.fail(nil)
		all.Wait()
		return nil
	})
	s.console.say("%s running", count(len(s.tool.Services), "service"))
}

// declare declares the hosts of the rack that have not been declared yet.
// Those that have stay as they are, also where somebody has deleted them.
func (s *site) declare(ctx context.Context) error {
	hosts := len(s.rack.sim.Hosts())
	if hosts <= s.plan.Declared {
		s.console.say("%s declared by an earlier run stay as they are", count(hosts, "host"))
		return nil
	}
	manifests, err := s.rack.manifests(s.plan.Declared, s.Namespace, s.Image)
	if err != nil {
		return err
	}
	if _, err := s.cluster.CreateMissing(ctx, manifests, func(int) {}); err != nil {
		return err
	}
	s.console.say("%s declared in namespace %s", count(hosts-s.plan.Declared, "host"), s.Namespace)
	s.plan.Declared = hosts
	return s.Data.writePlan(s.plan)
}
