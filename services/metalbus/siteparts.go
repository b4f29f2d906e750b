package metalbus

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/metalbus/metalbus/deploy/crds"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/embedded"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/kube/setup"
)

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
	set, stop, err := s.tool.OpenBackends(ctx, Doors{
		Name: s.Backend, Delay: delay, Ironic: s.Ironic, Slots: s.Slots, Secrets: s.shared.Kube.Access, Bus: s.bus, Metrics: s.frame.Metrics, Now: s.tool.Env.Now,
	})
	if err != nil {
		return err
	}
	s.shared.Backends, s.shared.Slots, s.shared.Ramdisks = set, s.Slots, s.Ramdisks
	s.onClose("", func() error { stop(context.WithoutCancel(ctx)); return nil })
	return nil
}
