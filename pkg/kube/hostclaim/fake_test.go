package hostclaim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
)

// world is an API in memory that remembers what it was, so that caches can be
// behind, and refuses writes that are behind.
type world struct {
	mu       sync.Mutex
	rev      int
	claims   map[types.NamespacedName][]version[*v1alpha1.HostClaim]
	hosts    map[types.NamespacedName][]version[*v1alpha1.BareMetalHost]
	policies []*v1alpha1.HostDeployPolicy
	// labelsError keeps labels of namespaces from being read.
	labelsError error

	// random decides on delays and conflicts out of nothing; nil has none.
	random *rand.Rand
	// refuses are hosts that the API does not let be written.
	refuses map[types.NamespacedName]bool
	// wrongs are writes that must not have been.
	wrongs []string
	writes int
}

// version is an object as it was from some time on; nil since it has gone.
type version[T any] struct {
	since  time.Time
	object T
}

func newWorld() *world {
	return &world{
		claims: map[types.NamespacedName][]version[*v1alpha1.HostClaim]{}, hosts: map[types.NamespacedName][]version[*v1alpha1.BareMetalHost]{},
		refuses: map[types.NamespacedName]bool{},
	}
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func (w *world) next() string { w.rev++; return strconv.Itoa(w.rev) }

func (w *world) putHost(h *v1alpha1.BareMetalHost) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keepHost(h)
}

// keepHost is putHost under the lock: between the check of a version and the
// write nobody else writes.
func (w *world) keepHost(h *v1alpha1.BareMetalHost) {
	h.ResourceVersion = w.next()
	k := key(h.Namespace, h.Name)
	w.hosts[k] = append(w.hosts[k], version[*v1alpha1.BareMetalHost]{time.Now(), h})
}

func (w *world) putClaim(c *v1alpha1.HostClaim) *v1alpha1.HostClaim {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.keepClaim(c)
}

// keepClaim is putClaim under the lock.
func (w *world) keepClaim(c *v1alpha1.HostClaim) *v1alpha1.HostClaim {
	c.ResourceVersion = w.next()
	k := key(c.Namespace, c.Name)
	w.claims[k] = append(w.claims[k], version[*v1alpha1.HostClaim]{time.Now(), c})
	return c
}

func latest[T any](all []version[T], at time.Time) (object T, there bool) {
	for _, v := range slices.Backward(all) {
		if !v.since.After(at) {
			return v.object, true
		}
	}
	return object, false
}

// pause takes some time, as requests do, and may end in a conflict that nobody
// has caused.
func (w *world) pause(ctx context.Context) error {
	if w.random == nil {
		return nil
	}
	w.mu.Lock()
	took, conflict := time.Duration(w.random.IntN(50))*time.Millisecond, w.random.IntN(5) == 0
	w.mu.Unlock()
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return ctx.Err()
	}
	if conflict {
		return kube.ErrConflict
	}
	return nil
}

func (w *world) Host(_ context.Context, k types.NamespacedName) (*v1alpha1.BareMetalHost, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h, there := latest(w.hosts[k], time.Now()); there && h != nil {
		return h.DeepCopy(), nil
	}
	return nil, kube.ErrGone
}

func (w *world) Labels(context.Context, string) (map[string]string, error) { return nil, w.labelsError }

func (w *world) claimAt(k types.NamespacedName, version string) (*v1alpha1.HostClaim, error) {
	c, there := latest(w.claims[k], time.Now())
	switch {
	case !there || c == nil:
		return nil, kube.ErrGone
	case c.ResourceVersion != version:
		return nil, kube.ErrConflict
	}
	w.writes++
	return c.DeepCopy(), nil
}

func (w *world) Note(ctx context.Context, claim *v1alpha1.HostClaim, n note) (*v1alpha1.HostClaim, error) {
	if noteOf(claim) == n {
		return claim, nil
	}
	if err := w.pause(ctx); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now, err := w.claimAt(key(claim.Namespace, claim.Name), claim.ResourceVersion)
	if err != nil {
		return nil, err
	}
	now.Finalizers, now.Annotations = nil, nil
	if n.finalizer {
		now.Finalizers = []string{v1alpha1.HostClaimFinalizer}
	}
	if n.chosen.Name != "" {
		now.Annotations = map[string]string{v1alpha1.ChosenHostAnnotation: n.chosen.String()}
	}
	return w.keepClaim(now), nil
}

func (w *world) Consume(ctx context.Context, host *v1alpha1.BareMetalHost, consumer *corev1.ObjectReference) (*v1alpha1.BareMetalHost, error) {
	if err := w.pause(ctx); err != nil {
		return nil, err
	}
	k := key(host.Namespace, host.Name)
	w.mu.Lock()
	defer w.mu.Unlock()
	now, there := latest(w.hosts[k], time.Now())
	switch {
	case !there || now == nil:
		return nil, kube.ErrGone
	case w.refuses[k]:
		return nil, fmt.Errorf("%w: not today", errRefused)
	case now.ResourceVersion != host.ResourceVersion:
		return nil, kube.ErrConflict
	}
	if old := now.Spec.ConsumerRef; old != nil && consumer != nil && *old != *consumer {
		w.wrongs = append(w.wrongs, fmt.Sprintf("%s of %s is given to %s", k, old.Name, consumer.Name))
	}
	w.writes++
	now = now.DeepCopy()
	now.Spec.ConsumerRef = consumer
	w.keepHost(now)
	return now, nil
}

func (w *world) WriteStatus(ctx context.Context, claim *v1alpha1.HostClaim, status v1alpha1.HostClaimStatus) (*v1alpha1.HostClaim, error) {
	if err := w.pause(ctx); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now, err := w.claimAt(key(claim.Namespace, claim.Name), claim.ResourceVersion)
	if err != nil {
		return nil, err
	}
	now.Status = status
	return w.keepClaim(now), nil
}

// behind is a cache that is some time behind the world.
type behind struct {
	*world
	by time.Duration
}

func (b behind) Claim(k types.NamespacedName) (*v1alpha1.HostClaim, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, there := latest(b.claims[k], time.Now().Add(-b.by))
	return c, there && c != nil
}

func (b behind) Policies() []*v1alpha1.HostDeployPolicy { return b.policies }

// cached is the world's Host for the cache, whose name the store has.
type cached struct{ behind }

func (c cached) Host(k types.NamespacedName) (*v1alpha1.BareMetalHost, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, there := latest(c.hosts[k], time.Now().Add(-c.by))
	return h, there && h != nil
}

func (c cached) Hosts() []*v1alpha1.BareMetalHost {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*v1alpha1.BareMetalHost
	for _, versions := range c.hosts {
		if h, there := latest(versions, time.Now().Add(-c.by)); there && h != nil {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b *v1alpha1.BareMetalHost) int { return slices.Compare([]string{a.Name}, []string{b.Name}) })
	return all
}

// now is a claim as it is.
func (w *world) claim(t *testing.T, name string) *v1alpha1.HostClaim {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	c, there := latest(w.claims[key("team", name)], time.Now())
	if !there || c == nil {
		t.Fatalf("claim %s is not there", name)
	}
	return c
}

func newHost(name string, changes ...func(*v1alpha1.BareMetalHost)) *v1alpha1.BareMetalHost {
	h := &v1alpha1.BareMetalHost{}
	h.Namespace, h.Name, h.UID = "lab", name, types.UID("uid-"+name)
	h.Status.Provisioning.State = v1alpha1.StateAvailable
	for _, change := range changes {
		change(h)
	}
	return h
}

func newClaim(name string, changes ...func(*v1alpha1.HostClaim)) *v1alpha1.HostClaim {
	c := &v1alpha1.HostClaim{}
	c.Namespace, c.Name, c.UID, c.Generation = "team", name, types.UID("uid-"+name), 1
	for _, change := range changes {
		change(c)
	}
	return c
}

func newPolicy(namespace string, who *v1alpha1.HostClaimNamespaces) *v1alpha1.HostDeployPolicy {
	p := &v1alpha1.HostDeployPolicy{Spec: v1alpha1.HostDeployPolicySpec{HostClaimNamespaces: who}}
	p.Namespace, p.Name = namespace, "policy"
	return p
}

func everybody() *v1alpha1.HostClaimNamespaces { return &v1alpha1.HostClaimNamespaces{} }
