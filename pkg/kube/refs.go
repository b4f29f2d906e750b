package kube

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// refs are the objects beside the hosts that hosts depend on: Secrets and
// HardwareData. Of a Secret that a host names its metadata are remembered, of
// HardwareData its version. Other Secrets are forgotten soon, and content is never
// kept.
type refs struct {
	c *Cluster

	mu      sync.Mutex
	secrets map[types.NamespacedName]secretMeta
	// fresh are Secrets that no host names, or not yet: most are made right before
	// their host.
	fresh    map[types.NamespacedName]secretMeta
	hardware map[types.NamespacedName]string // to the resourceVersion
	nudge    func(Ref)
}

// secretMeta is what is remembered of a Secret.
type secretMeta struct {
	version   string
	labelled  bool
	finalized bool
	owners    []types.UID
	deleting  bool
	// moving: clusterctl has moved it to another cluster and is about to
	// delete it here.
	moving bool
}

// mostFresh is how many Secrets are remembered that no host names.
const mostFresh = 4096

func newRefs(c *Cluster) *refs {
	return &refs{
		c: c, secrets: map[types.NamespacedName]secretMeta{}, fresh: map[types.NamespacedName]secretMeta{},
		hardware: map[types.NamespacedName]string{}, nudge: func(Ref) {},
	}
}

func metaOf(o client.Object) secretMeta {
	_, labelled := o.GetLabels()[v1alpha1.LabelEnvironmentName]
	_, moving := o.GetAnnotations()[v1alpha1.DeleteForMoveAnnotation]
	m := secretMeta{
		version: o.GetResourceVersion(), labelled: labelled, moving: moving,
		finalized: slices.Contains(o.GetFinalizers(), v1alpha1.SecretFinalizer),
		deleting:  o.GetDeletionTimestamp() != nil,
	}
	for _, owner := range o.GetOwnerReferences() {
		if owner.Controller == nil || !*owner.Controller {
			m.owners = append(m.owners, owner.UID)
		}
	}
	return m
}

// watch keeps the metadata up to date until ctx ends. It calls nudge for each
// host that a change may matter to.
// listed is called once all that is there has been seen.
func (r *refs) watch(ctx context.Context, nudge func(Ref), listed func()) {
	r.mu.Lock()
	r.nudge = nudge
	r.mu.Unlock()
	ctx = r.c.logged(ctx)
	waiting := atomic.Int64{}
	waiting.Store(int64(2 * len(r.c.cfg.scopes())))
	first := func() {
		if waiting.Add(-1) == 0 {
			listed()
		}
	}
	var all sync.WaitGroup
	all.Go(func() { r.watchMeta(ctx, secretKind(), first, r.secretSeen, r.secretEnded, r.secretsListed) })
	all.Go(func() { r.watchMeta(ctx, hardwareKind(), first, r.hardwareSeen, r.hardwareEnded, r.hardwareListed) })
	all.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	// Nobody keeps these up to date from now on.
	r.nudge = func(Ref) {}
	clear(r.secrets)
	clear(r.fresh)
	clear(r.hardware)
}

func secretKind() schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind("Secret") }

func hardwareKind() schema.GroupVersionKind { return v1alpha1.GroupVersion.WithKind("HardwareData") }

type metadata = metav1.PartialObjectMetadata

func (r *refs) watchMeta(ctx context.Context, kind schema.GroupVersionKind, first func(), seen, ended func(*metadata), listed func(string, []*metadata)) {
	one, list := &metadata{}, &metav1.PartialObjectMetadataList{}
	one.SetGroupVersionKind(kind)
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	watchAll(ctx, r.c.client, r.c.cfg.scopes(), one, list, func(scope string) cache.ReflectorStore {
		return &store[*metadata]{
			seen: seen, ended: ended, first: sync.OnceFunc(first), shrink: essence,
			listed: func(all []*metadata) { listed(scope, all) },
		}
	})
}

// essence is what of an object's metadata is looked at.
func essence(o *metadata) *metadata {
	small := &metadata{TypeMeta: o.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, DeletionTimestamp: o.DeletionTimestamp,
		Finalizers: o.Finalizers, OwnerReferences: o.OwnerReferences,
	}}
	if v, ok := o.Labels[v1alpha1.LabelEnvironmentName]; ok {
		small.Labels = map[string]string{v1alpha1.LabelEnvironmentName: v}
	}
	if v, ok := o.Annotations[v1alpha1.DeleteForMoveAnnotation]; ok {
		small.Annotations = map[string]string{v1alpha1.DeleteForMoveAnnotation: v}
	}
	return small
}

func (r *refs) secretSeen(o *metadata) {
	key := client.ObjectKeyFromObject(o)
	hosts := r.c.Hosts.named(key)
	r.mu.Lock()
	old, known := r.secrets[key]
	changed := !known || newer(o.ResourceVersion, old.version)
	switch {
	case len(hosts) == 0:
		delete(r.secrets, key)
		if len(r.fresh) >= mostFresh {
			clear(r.fresh)
		}
		r.fresh[key] = metaOf(o)
	case changed:
		r.secrets[key] = metaOf(o)
	}
	r.mu.Unlock()
	if changed {
		r.tell(hosts)
	}
}

func (r *refs) secretEnded(o *metadata) {
	key := client.ObjectKeyFromObject(o)
	r.mu.Lock()
	delete(r.fresh, key)
	m := metaOf(o)
	if m.moving { // to its hosts it is as it was: they are being moved too
		r.secrets[key] = m
	} else {
		delete(r.secrets, key)
	}
	r.mu.Unlock()
	if !m.moving {
		r.tell(r.c.Hosts.named(key))
	}
}

func (r *refs) secretsListed(scope string, list []*metadata) {
	there := map[types.NamespacedName]bool{}
	for _, o := range list {
		there[client.ObjectKeyFromObject(o)] = true
		r.secretSeen(o)
	}
	r.mu.Lock()
	maps.DeleteFunc(r.fresh, func(key types.NamespacedName, _ secretMeta) bool {
		return !there[key] && (scope == "" || key.Namespace == scope)
	})
	var gone []types.NamespacedName
	for key := range r.secrets {
		if !there[key] && (scope == "" || key.Namespace == scope) {
			gone = append(gone, key)
			delete(r.secrets, key)
		}
	}
	r.mu.Unlock()
	for _, key := range gone {
		r.tell(r.c.Hosts.named(key))
	}
}

func (r *refs) hardwareSeen(o *metadata) {
	key := client.ObjectKeyFromObject(o)
	r.mu.Lock()
	old, known := r.hardware[key]
	changed := !known || newer(o.ResourceVersion, old)
	if changed {
		r.hardware[key] = o.ResourceVersion
	}
	r.mu.Unlock()
	if changed {
		r.tellOf(key)
	}
}

func (r *refs) hardwareEnded(o *metadata) {
	key := client.ObjectKeyFromObject(o)
	r.mu.Lock()
	delete(r.hardware, key)
	r.mu.Unlock()
	r.tellOf(key)
}

func (r *refs) hardwareListed(scope string, list []*metadata) {
	there := map[types.NamespacedName]bool{}
	for _, o := range list {
		there[client.ObjectKeyFromObject(o)] = true
		r.hardwareSeen(o)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.hardware {
		if !there[key] && (scope == "" || key.Namespace == scope) {
			delete(r.hardware, key)
		}
	}
}

func (r *refs) tellOf(host types.NamespacedName) {
	if ref, ok := r.c.Hosts.Named(host); ok {
		r.tell([]Ref{ref})
	}
}

func (r *refs) tell(hosts []Ref) {
	r.mu.Lock()
	nudge := r.nudge
	r.mu.Unlock()
	for _, ref := range hosts {
		nudge(ref)
	}
}

// secret is what is remembered of a Secret, else what the API says now. It is
// false if the Secret does not exist.
func (r *refs) secret(ctx context.Context, key types.NamespacedName) (secretMeta, bool, error) {
	if m, known := r.remembered(key); known {
		return m, true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	o := &metadata{}
	o.SetGroupVersionKind(secretKind())
	if err := r.c.client.Get(ctx, key, o); client.IgnoreNotFound(err) != nil {
		return secretMeta{}, false, translate("look for Secret "+key.String(), err)
	} else if err != nil {
		return secretMeta{}, false, nil
	}
	r.remember(o)
	return metaOf(o), true, nil
}

// remembered is what is remembered of a Secret that a host names from now on.
func (r *refs) remembered(key types.NamespacedName) (secretMeta, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, known := r.secrets[key]; known {
		return m, true
	}
	m, known := r.fresh[key]
	if known {
		r.secrets[key] = m
		delete(r.fresh, key)
	}
	return m, known
}

func (r *refs) remember(o client.Object) {
	key := client.ObjectKeyFromObject(o)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.fresh, key)
	if old, known := r.secrets[key]; !known || newer(o.GetResourceVersion(), old.version) {
		r.secrets[key] = metaOf(o)
	}
}
