package hostclaim

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
)

// Controller gives the claims of a cluster their hosts.
type Controller struct {
	cluster *kube.Cluster
	client  client.WithWatch
	log     *slog.Logger
	now     func() time.Time
	hosts   *hosts
}

// New is a Controller of the claims of the namespaces that c watches. It must
// be made before the hosts are watched.
func New(c *kube.Cluster, log *slog.Logger, now func() time.Time) (*Controller, error) {
	k, err := c.NewClient()
	if err != nil {
		return nil, err
	}
	return &Controller{cluster: c, client: k, log: log, now: now, hosts: newHosts(c.Hosts)}, nil
}

// Run works until ctx ends, again if it is called again. Two may run at once,
// which changes nothing but the number of conflicts.
func (c *Controller) Run(ctx context.Context) error {
	queue := kube.NewQueue("HostClaim", c.log)
	s := &seen{hosts: c.hosts}
	s.claims = kube.NewKnown(c.cluster, c.client, &v1alpha1.HostClaim{}, &v1alpha1.HostClaimList{}, func(claim *v1alpha1.HostClaim) {
		queue.Add(client.ObjectKeyFromObject(claim))
	})
	s.policies = kube.NewKnown(c.cluster, c.client, &v1alpha1.HostDeployPolicy{}, &v1alpha1.HostDeployPolicyList{}, func(*v1alpha1.HostDeployPolicy) {
		s.nudgeWaiting(queue, nil)
	})
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all.Go(func() { s.claims.Run(ctx) })
	all.Go(func() { s.policies.Run(ctx) })
	for _, synced := range []func(context.Context) error{s.claims.Synced, s.policies.Synced, c.cluster.Hosts.Synced} {
		if err := synced(ctx); err != nil {
			return err
		}
	}
	c.hosts.follow(func(e hostEvent) { s.heard(queue, e) })
	defer c.hosts.follow(nil)
	claims := &claimer{seen: s, store: api{client: c.client, wrote: s.claims.Wrote}, now: c.now, random: rand.IntN}
	queue.Run(ctx, 1, claims.look)
	return nil
}

// seen is what was last seen of claims, policies and hosts.
type seen struct {
	claims   *kube.Known[*v1alpha1.HostClaim]
	policies *kube.Known[*v1alpha1.HostDeployPolicy]
	hosts    *hosts
}

func (s *seen) Claim(key types.NamespacedName) (*v1alpha1.HostClaim, bool) { return s.claims.Get(key) }

func (s *seen) Policies() []*v1alpha1.HostDeployPolicy { return s.policies.All() }

func (s *seen) Host(key types.NamespacedName) (*v1alpha1.BareMetalHost, bool) {
	return s.hosts.get(key)
}

func (s *seen) Hosts() []*v1alpha1.BareMetalHost { return s.hosts.known.All() }

// heard has the claims looked at that a change of a host matters to.
func (s *seen) heard(queue *kube.Queue, e hostEvent) {
	for _, key := range e.claims {
		queue.Add(key)
	}
	if e.free != nil {
		s.nudgeWaiting(queue, e.free)
	}
}

// nudgeWaiting has the claims looked at that have no host; of those that a free
// host could help, if it is given, only these.
func (s *seen) nudgeWaiting(queue *kube.Queue, free *v1alpha1.BareMetalHost) {
	for _, claim := range s.claims.All() {
		if noteOf(claim).chosen.Name != "" || claim.Status.BareMetalHost != nil {
			continue
		}
		if free != nil {
			selector, err := selectorOf(claim)
			if err != nil || !selector.Matches(labels.Set(free.Labels)) {
				continue
			}
		}
		queue.Add(client.ObjectKeyFromObject(claim))
	}
}
