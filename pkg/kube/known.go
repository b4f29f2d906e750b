package kube

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Known are the objects of one kind in the watched namespaces as they were last
// seen, for packages below this one. What it hands out is shared: it is read,
// never changed.
type Known[T client.Object] struct {
	c       *Cluster
	api     client.WithWatch
	one     T
	list    client.ObjectList
	changed func(T)
	shrink  func(T) T

	mu      sync.RWMutex
	objects map[types.NamespacedName]T
	waiting int // scopes that were not listed yet
	synced  chan struct{}
}

// NewKnown follows one kind through a client that knows it, once it runs. It
// calls changed after each change of an object, with the object as it is now,
// or as it was last when it has ended; changed must be quick.
func NewKnown[T client.Object](c *Cluster, api client.WithWatch, one T, list client.ObjectList, changed func(T)) *Known[T] {
	return &Known[T]{
		c: c, api: api, one: one, list: list, changed: changed,
		objects: map[types.NamespacedName]T{}, waiting: len(c.cfg.scopes()), synced: make(chan struct{}),
	}
}

// Shrink makes each object smaller before it is kept. It must be called before Run.
func (k *Known[T]) Shrink(shrink func(T) T) { k.shrink = shrink }

// Run keeps the objects up to date until ctx ends. It may be called once.
func (k *Known[T]) Run(ctx context.Context) {
	watchAll(k.c.logged(ctx), k.api, k.c.cfg.scopes(), k.one, k.list, func(scope string) cache.ReflectorStore {
		return &store[T]{
			seen: k.seen, ended: k.ended, first: sync.OnceFunc(k.scopeListed),
			listed: func(list []T) { k.listed(scope, list) }, shrink: k.shrink,
		}
	})
}

// Synced waits until every object that was there has been seen.
func (k *Known[T]) Synced(ctx context.Context) error {
	select {
	case <-k.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Get is the object of that name.
func (k *Known[T]) Get(key types.NamespacedName) (object T, there bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	object, there = k.objects[key]
	return object, there
}

// All are the objects, in no order.
func (k *Known[T]) All() []T {
	k.mu.RLock()
	defer k.mu.RUnlock()
	all := make([]T, 0, len(k.objects))
	for _, o := range k.objects {
		all = append(all, o)
	}
	return all
}

// Wrote takes an object from the answer to a write, if it is newer than what
// was seen.
func (k *Known[T]) Wrote(o T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := client.ObjectKeyFromObject(o)
	if old, there := k.objects[key]; there && old.GetUID() == o.GetUID() && newer(o.GetResourceVersion(), old.GetResourceVersion()) {
		k.objects[key] = o
	}
}

func (k *Known[T]) seen(o T) {
	k.mu.Lock()
	key := client.ObjectKeyFromObject(o)
	old, there := k.objects[key]
	fresh := !there || old.GetUID() != o.GetUID() || newer(o.GetResourceVersion(), old.GetResourceVersion())
	if fresh {
		k.objects[key] = o
	}
	k.mu.Unlock()
	k.changed(o) // also if the answer to a write was faster: somebody may wait for it
}

func (k *Known[T]) ended(o T) {
	k.mu.Lock()
	delete(k.objects, client.ObjectKeyFromObject(o))
	k.mu.Unlock()
	k.changed(o)
}

func (k *Known[T]) listed(scope string, list []T) {
	there := map[types.NamespacedName]bool{}
	for _, o := range list {
		there[client.ObjectKeyFromObject(o)] = true
		k.seen(o)
	}
	for _, o := range k.All() {
		if !there[client.ObjectKeyFromObject(o)] && (scope == "" || o.GetNamespace() == scope) {
			k.ended(o)
		}
	}
}

func (k *Known[T]) scopeListed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.waiting--; k.waiting == 0 {
		close(k.synced)
	}
}
