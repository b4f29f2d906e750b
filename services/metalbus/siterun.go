package metalbus

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

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
