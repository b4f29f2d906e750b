package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Lead runs work while this replica is the one that holds the Lease of that
// name, again and again until ctx ends. The context of work ends with the
// Lease. Two replicas may overlap for moments: what must not happen twice has
// to be safe by itself.
func (c *Cluster) Lead(ctx context.Context, name string, work func(context.Context) error) error {
	leases, err := v1.NewForConfig(c.rest)
	if err != nil {
		return fmt.Errorf("make a client for Leases: %w", err)
	}
	for ctx.Err() == nil {
		if err := c.term(c.logged(ctx), leases, name, work); err != nil {
			return err
		}
	}
	return nil
}

// term is one time of being elected and leading. It ends with the Lease, with
// ctx, or when the work ends by itself.
func (c *Cluster) term(ctx context.Context, leases v1.LeasesGetter, name string, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var began, over bool
	ended := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: c.cfg.LeaseNamespace, Name: name}, Client: leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.cfg.Identity},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true, Name: name,
		Callbacks: leaderelection.LeaderCallbacks{
			// It is called on a goroutine of its own, which may come too late.
			OnStartedLeading: func(ctx context.Context) {
				mu.Lock()
				began = !over
				mu.Unlock()
				if began {
					c.log.Info("began to lead", keyIdentity, c.cfg.Identity)
					ended <- work(ctx)
					cancel()
				}
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("set up leader election: %w", err)
	}
	elector.Run(ctx)
	mu.Lock()
	over = true
	led := began
	mu.Unlock()
	if !led {
		return nil
	}
	err = <-ended
	c.log.Info("no longer leads", keyIdentity, c.cfg.Identity)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
