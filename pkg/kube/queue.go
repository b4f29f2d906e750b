package kube

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// The keys of the log lines of queues.
const (
	keyKind   = "kind"
	keyObject = "object"
)

// Queue has objects looked at, for packages below this one: each as soon as it
// is added, never twice at once, and again after a growing delay if the look
// failed.
type Queue struct {
	what  string
	log   *slog.Logger
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]
}

// NewQueue is a queue for objects of what its log lines call what.
func NewQueue(what string, log *slog.Logger) *Queue {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry)
	return &Queue{what: what, log: log, queue: workqueue.NewTypedRateLimitingQueue(limiter)}
}

// Add has an object looked at soon.
func (q *Queue) Add(key types.NamespacedName) { q.queue.Add(key) }

// Run looks at objects until ctx ends, that many at once. After look has
// returned again > 0 the object is looked at once more when that has passed. It
// may be called once.
func (q *Queue) Run(ctx context.Context, workers int, look func(context.Context, types.NamespacedName) (again time.Duration, err error)) {
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for q.next(ctx, look) {
			}
		})
	}
	<-ctx.Done()
	q.queue.ShutDown()
	all.Wait()
}

func (q *Queue) next(ctx context.Context, look func(context.Context, types.NamespacedName) (time.Duration, error)) bool {
	key, over := q.queue.Get()
	if over {
		return false
	}
	defer q.queue.Done(key)
	again, err := look(ctx, key)
	if err != nil {
		if ctx.Err() == nil {
			q.log.Debug("a look failed and is repeated", keyKind, q.what, keyObject, key.String(), keyError, err)
		}
		q.queue.AddRateLimited(key)
		return true
	}
	q.queue.Forget(key)
	if again > 0 {
		q.queue.AddAfter(key, again)
	}
	return true
}
