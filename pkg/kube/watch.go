package kube

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Watch keeps Hosts up to date until ctx ends.
func (c *Cluster) Watch(ctx context.Context) {
	scopes := c.cfg.scopes()
	c.Hosts.awaits(len(scopes))
	watchAll(c.logged(ctx), c.client, scopes, &v1alpha1.BareMetalHost{}, &v1alpha1.BareMetalHostList{}, func(scope string) cache.ReflectorStore {
		return &store[*v1alpha1.BareMetalHost]{
			seen: c.Hosts.seen, ended: func(o *v1alpha1.BareMetalHost) { c.Hosts.ended(string(o.UID)) },
			listed: func(list []*v1alpha1.BareMetalHost) { c.Hosts.listed(scope, list) },
			first:  sync.OnceFunc(c.Hosts.scopeListed),
		}
	})
}

// watchAll lists and watches one kind of object in each scope until ctx ends.
func watchAll(ctx context.Context, c client.WithWatch, scopes []string, o client.Object, list client.ObjectList, into func(scope string) cache.ReflectorStore) {
	var all sync.WaitGroup
	for _, scope := range scopes {
		source := &source{client: c, scope: scope, list: list}
		all.Go(func() {
			cache.NewReflectorWithOptions(source, o, into(scope), cache.ReflectorOptions{Name: "metalbus"}).RunWithContext(ctx)
		})
	}
	all.Wait()
}

// source lists and watches one kind of object in one scope.
type source struct {
	client client.WithWatch
	scope  string
	list   client.ObjectList
}

func (s *source) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list := s.empty()
	return list, s.client.List(ctx, list, &client.ListOptions{Namespace: s.scope, Limit: o.Limit, Continue: o.Continue, Raw: &o})
}

func (s *source) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return s.client.Watch(ctx, s.empty(), &client.ListOptions{Namespace: s.scope, Raw: &o})
}

// List and Watch are asked for by cache.ListerWatcher, and called by nobody
// who can have a context.
func (s *source) List(o metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), o)
}

func (s *source) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), o)
}

func (s *source) empty() client.ObjectList { return s.list.DeepCopyObject().(client.ObjectList) }

// store takes what a reflector brings, and keeps nothing of it itself.
type store[T client.Object] struct {
	seen   func(T)
	ended  func(T)
	listed func([]T)
	// first is called after the first list.
	first func()
	// shrink makes an object smaller before it is kept anywhere; nil does not.
	shrink func(T) T
}

func (s *store[T]) Add(o any) error    { s.seen(s.shrunk(o)); return nil }
func (s *store[T]) Update(o any) error { s.seen(s.shrunk(o)); return nil }
func (s *store[T]) Delete(o any) error { s.ended(s.shrunk(o)); return nil }
func (s *store[T]) Resync() error      { return nil }

func (s *store[T]) Replace(list []any, _ string) error {
	all := make([]T, 0, len(list))
	for _, o := range list {
		all = append(all, s.shrunk(o))
	}
	s.listed(all)
	s.first()
	return nil
}

// Transformer lets a streamed list be made smaller object by object.
func (s *store[T]) Transformer() cache.TransformFunc {
	if s.shrink == nil {
		return nil
	}
	return func(o any) (any, error) { return s.shrunk(o), nil }
}

func (s *store[T]) shrunk(o any) T {
	t := o.(T)
	if s.shrink == nil {
		return t
	}
	return s.shrink(t)
}
