package kube

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Handler looks at one host. The host may be gone: Hosts no longer has it then.
// It is called for each host when serving begins, and again whenever the host,
// a Secret that it names or its HardwareData has changed; never twice at once
// for one host, and possibly once for several changes. After an error it is
// called again after a growing delay, after again > 0 once that has passed.
type Handler func(ctx context.Context, r Ref) (again time.Duration, err error)

// The delay after an error grows from firstRetry to lastRetry.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Serve hands hosts to look until ctx ends, that many at once. It begins when
// the hosts, and the metadata of Secrets and HardwareData, have been listed.
// Watch must run. Only one Serve may run at a time.
func (c *Cluster) Serve(ctx context.Context, workers int, look Handler) error {
	if err := c.Hosts.Synced(ctx); err != nil {
		return err
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[Ref](firstRetry, lastRetry)
	queue := workqueue.NewTypedRateLimitingQueue[Ref](limiter)
	c.serving(queue)
	defer c.serving(nil)

	var all sync.WaitGroup
	listed := make(chan struct{})
	all.Go(func() { c.refs.watch(ctx, func(r Ref) { queue.Add(r) }, func() { close(listed) }) })
	select {
	case <-listed:
	case <-ctx.Done():
	}
	for _, o := range c.Hosts.All() {
		queue.Add(RefOf(o))
	}
	for range workers {
		all.Go(func() { c.work(ctx, queue, look) })
	}
	<-ctx.Done()
	queue.ShutDown()
	all.Wait()
	return nil
}

// Nudge has a host looked at soon, if Serve runs here.
func (c *Cluster) Nudge(r Ref) { c.queued.add(r) }

// served is the queue of the Serve that runs, if one does.
type served struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[Ref]
}

func (c *Cluster) serving(q workqueue.TypedRateLimitingInterface[Ref]) {
	c.queued.mu.Lock()
	defer c.queued.mu.Unlock()
	c.queued.queue = q
}

func (s *served) add(r Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue != nil {
		s.queue.Add(r)
	}
}

func (c *Cluster) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[Ref], look Handler) {
	for {
		r, over := queue.Get()
		if over {
			return
		}
		again, err := look(ctx, r)
		switch {
		case err != nil:
			c.log.Debug("a look at a host failed and is repeated", keyHost, r.Namespace+"/"+r.Name, keyUID, r.UID, keyError, err)
			queue.AddRateLimited(r)
		case again > 0:
			queue.Forget(r)
			queue.AddAfter(r, again)
		default:
			queue.Forget(r)
		}
		queue.Done(r)
	}
}
