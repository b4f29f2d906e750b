package metalbus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/backend/ironic"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/kube/preprov"
	"github.com/metalbus/metalbus/pkg/kube/setup"
	"github.com/metalbus/metalbus/pkg/service"
	"github.com/metalbus/metalbus/pkg/slots"
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
	// Slots are how many long operations each backend is asked for at once.
	Slots slots.Limits
	// Ramdisks are the settings of PreprovisioningImages.
	Ramdisks preprov.Config
}

// Doors are what backends are made of.
type Doors struct {
	// Name is the backend that hosts go to that name none.
	Name string
	// Delay is how long an operation takes where it is pretended.
	Delay time.Duration
	// Ironic says which Ironics there are, for the backend of that name.
	Ironic ironic.Config
	// Slots are to be of these backends.
	Slots slots.Limits
	// Secrets is how Secrets are read.
	Secrets kube.Access
	// Bus holds the inventories of hosts.
	Bus *bus.Bus
	// Metrics take what the backends count.
	Metrics prometheus.Registerer
	Now     func() time.Time
}

// OpenBackends makes the backends. What it returns second lets go of them.
type OpenBackends func(context.Context, Doors) (*backend.Set, func(context.Context), error)

// siteOptions say how an installation in one process is set up.
type siteOptions struct {
	Data folder
	Rack rackConfig
	// Grow: a rack that is there already gets as many hosts as Rack says; else
	// it stays as it is.
	Grow bool
	// Demo: the folder is a demo's.
	Demo bool
	// Namespace, Image and Backend are those of the hosts. An empty Image asks
	// for none.
	Namespace, Image, Backend string
	// Ironic says which Ironics there are, if that is the Backend; Ramdisks whether
	// each host boots an image of its own there.
	Ironic   ironic.Config
	Ramdisks preprov.Config
	// Slots are how many long operations each backend is asked for at once.
	Slots slots.Limits
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
		s.plan = plan{Simulator: "127.0.0.1:0", Backend: s.Backend, Demo: s.Demo}
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
	file, err := newLog(s.Data.log())
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
