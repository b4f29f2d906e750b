package hostclaim

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
)

// hostEvent is what a change of a host means to claims.
type hostEvent struct {
	// claims are the ones that the host names, or named before.
	claims []types.NamespacedName
	// free is the host, if it can be taken into use and could not before.
	free *v1alpha1.BareMetalHost
}

// hosts finds hosts by name, and tells what their changes mean to claims.
type hosts struct {
	known *kube.Hosts

	mu    sync.Mutex
	uids  map[types.NamespacedName]string
	was   map[string]claimed // by uid
	heard func(hostEvent)
}

// claimed is what was known of a host before.
type claimed struct {
	claim types.NamespacedName
	free  bool
}

func newHosts(known *kube.Hosts) *hosts {
	h := &hosts{known: known, uids: map[types.NamespacedName]string{}, was: map[string]claimed{}}
	known.OnChange(h.changed)
	return h
}

// follow has f told from now on, nobody if it is nil.
func (h *hosts) follow(f func(hostEvent)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = f
}

func (h *hosts) get(key types.NamespacedName) (*v1alpha1.BareMetalHost, bool) {
	h.mu.Lock()
	uid, known := h.uids[key]
	h.mu.Unlock()
	if !known {
		return nil, false
	}
	o := h.known.Get(uid)
	return o, o != nil
}

func (h *hosts) changed(r kube.Ref) {
	e, heard := h.note(r)
	if heard != nil && (e.free != nil || len(e.claims) > 0) {
		heard(e)
	}
}

// note remembers a host as it is now.
func (h *hosts) note(r kube.Ref) (hostEvent, func(hostEvent)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.known.Get(r.UID) // nil if it has ended; read under the lock, so that the last call has the newest
	key, before := types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, h.was[r.UID]
	var now claimed
	if o == nil {
		delete(h.was, r.UID)
		if h.uids[key] == r.UID {
			delete(h.uids, key)
		}
	} else {
		now.claim, _ = claimOf(o)
		now.free = unfit(o) == ""
		h.was[r.UID], h.uids[key] = now, r.UID
	}
	var e hostEvent
	for _, claim := range []types.NamespacedName{before.claim, now.claim} {
		if claim.Name != "" {
			e.claims = append(e.claims, claim)
		}
	}
	if now.free && !before.free {
		e.free = o
	}
	return e, h.heard
}
