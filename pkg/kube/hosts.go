package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Ref names one BareMetalHost for good: names are used again, uids are not.
type Ref struct{ Namespace, Name, UID string }

// RefOf is the name of a host.
func RefOf(o *v1alpha1.BareMetalHost) Ref {
	return Ref{Namespace: o.Namespace, Name: o.Name, UID: string(o.UID)}
}

// Hosts are the hosts of the watched namespaces as they were last seen, be it
// by the watch or in the answer to a write of our own, whichever is newer.
type Hosts struct {
	mu      sync.RWMutex
	byUID   map[string]*v1alpha1.BareMetalHost
	byName  map[types.NamespacedName]string              // to the uid
	naming  map[types.NamespacedName]map[string]struct{} // a Secret to the uids of the hosts that name it
	waiting int                                          // scopes that were not listed yet; 0 before the watch begins
	synced  chan struct{}
	changed []func(Ref)
}

func newHosts() *Hosts {
	return &Hosts{
		byUID: map[string]*v1alpha1.BareMetalHost{}, byName: map[types.NamespacedName]string{},
		naming: map[types.NamespacedName]map[string]struct{}{}, synced: make(chan struct{}),
	}
}

// OnChange calls f after each change of a host, its end included. It must be
// called before the watch begins; f must be quick.
func (h *Hosts) OnChange(f func(Ref)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changed = append(h.changed, f)
}

// Get is the host with that uid, nil if there is none.
func (h *Hosts) Get(uid string) *v1alpha1.BareMetalHost {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.byUID[uid]
}

// All are the hosts, in no order.
func (h *Hosts) All() []*v1alpha1.BareMetalHost {
	h.mu.RLock()
	defer h.mu.RUnlock()
	all := make([]*v1alpha1.BareMetalHost, 0, len(h.byUID))
	for _, o := range h.byUID {
		all = append(all, o)
	}
	return all
}

// Synced waits until every host that was there has been seen.
func (h *Hosts) Synced(ctx context.Context) error {
	select {
	case <-h.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ready is a health check: the hosts have been listed.
func (h *Hosts) Ready(context.Context) error {
	select {
	case <-h.synced:
		return nil
	default:
		return errors.New("the hosts have not been listed yet; is the CRD installed, and may this service list hosts?")
	}
}

// named are the hosts that name a Secret.
func (h *Hosts) named(secret types.NamespacedName) []Ref {
	h.mu.RLock()
	defer h.mu.RUnlock()
	refs := make([]Ref, 0, len(h.naming[secret]))
	for uid := range h.naming[secret] {
		refs = append(refs, RefOf(h.byUID[uid]))
	}
	return refs
}

// OfName is the host of that name, nil if there is none.
func (h *Hosts) OfName(name types.NamespacedName) *v1alpha1.BareMetalHost {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.byUID[h.byName[name]]
}

// Named is the host of that name.
func (h *Hosts) Named(name types.NamespacedName) (Ref, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	uid, ok := h.byName[name]
	return Ref{Namespace: name.Namespace, Name: name.Name, UID: uid}, ok
}

// seen takes a host from the watch.
func (h *Hosts) seen(o *v1alpha1.BareMetalHost) {
	if h.put(shorten(o), true) {
		h.tell(RefOf(o))
	}
}

// wrote takes a host from the answer to a write. One that has ended meanwhile
// stays ended.
func (h *Hosts) wrote(o *v1alpha1.BareMetalHost) { h.put(shorten(o), false) }

func (h *Hosts) put(o *v1alpha1.BareMetalHost, fresh bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	uid := string(o.UID)
	old, known := h.byUID[uid]
	if (!known && !fresh) || (known && !newer(o.ResourceVersion, old.ResourceVersion)) {
		// The watch brings what the answer to a write has brought before:
		// whoever waits for the watch is told all the same.
		return known && fresh
	}
	if known {
		h.forget(old)
	}
	h.byUID[uid] = o
	h.byName[client.ObjectKeyFromObject(o)] = uid
	for _, s := range SecretsOf(o) {
		key := types.NamespacedName{Namespace: o.Namespace, Name: s}
		if h.naming[key] == nil {
			h.naming[key] = map[string]struct{}{}
		}
		h.naming[key][uid] = struct{}{}
	}
	return true
}

// forget drops a host; the caller holds the lock.
func (h *Hosts) forget(o *v1alpha1.BareMetalHost) {
	uid := string(o.UID)
	delete(h.byUID, uid)
	if h.byName[client.ObjectKeyFromObject(o)] == uid {
		delete(h.byName, client.ObjectKeyFromObject(o))
	}
	for _, s := range SecretsOf(o) {
		key := types.NamespacedName{Namespace: o.Namespace, Name: s}
		delete(h.naming[key], uid)
		if len(h.naming[key]) == 0 {
			delete(h.naming, key)
		}
	}
}

// ended takes the end of a host from the watch.
func (h *Hosts) ended(uid string) {
	h.mu.Lock()
	o, known := h.byUID[uid]
	if known {
		h.forget(o)
	}
	h.mu.Unlock()
	if known {
		h.tell(RefOf(o))
	}
}

// listed takes a whole list of a scope: what is not in it has ended.
func (h *Hosts) listed(scope string, list []*v1alpha1.BareMetalHost) {
	there := map[string]bool{}
	for _, o := range list {
		there[string(o.UID)] = true
		h.seen(o)
	}
	for _, o := range h.All() {
		if !there[string(o.UID)] && (scope == "" || o.Namespace == scope) {
			h.ended(string(o.UID))
		}
	}
}

// awaits says how many scopes are to be listed before the hosts are synced.
func (h *Hosts) awaits(scopes int) { h.waiting = scopes }

// scopeListed counts the first list of each scope.
func (h *Hosts) scopeListed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting--; h.waiting == 0 {
		close(h.synced)
	}
}

func (h *Hosts) tell(r Ref) {
	h.mu.RLock()
	changed := slices.Clone(h.changed)
	h.mu.RUnlock()
	for _, f := range changed {
		f(r)
	}
}

// newer compares two resource versions of one kind of object.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}

// SecretsOf are the names of the Secrets that a host names, in its own
// namespace. References to other namespaces are not followed.
func SecretsOf(o *v1alpha1.BareMetalHost) []string {
	names := []string{o.Spec.BMC.CredentialsName, o.Spec.PreprovisioningNetworkDataName}
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" })
	slices.Sort(names)
	return slices.Compact(names)
}

// shorten drops what nobody reads from a host that is kept: who set which
// field, and the text of a status annotation that is not needed since the
// status is there. Its digest takes its place.
func shorten(o *v1alpha1.BareMetalHost) *v1alpha1.BareMetalHost {
	o.ManagedFields = nil
	if text := o.Annotations[v1alpha1.StatusAnnotation]; text != "" && !Unborn(o) && len(text) > len(Digest("")) {
		o.Annotations[v1alpha1.StatusAnnotation] = Digest(text)
	}
	return o
}

// Unborn reports whether a host's status is empty: nobody has looked at it
// yet, or its status was lost.
func Unborn(o *v1alpha1.BareMetalHost) bool {
	return o.Status.LastUpdated == nil && o.Status.Provisioning.State == v1alpha1.StateNone
}

// Digest stands for the text of an annotation that is not kept.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Read reads a host from the API. One that is another by its uid is ErrGone.
func (c *Cluster) Read(ctx context.Context, r Ref) (*v1alpha1.BareMetalHost, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	o := &v1alpha1.BareMetalHost{}
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, o); err != nil {
		return nil, translate("read host "+r.Namespace+"/"+r.Name, err)
	}
	if string(o.UID) != r.UID {
		return nil, fmt.Errorf("host %s/%s has another uid: %w", r.Namespace, r.Name, ErrGone)
	}
	return o, nil
}
