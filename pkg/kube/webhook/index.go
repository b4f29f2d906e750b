package webhook

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
	"github.com/metalbus/metalbus/pkg/kube"
)

// errUnseen: the hosts are not known yet, so it is not known who uses what.
var errUnseen = errors.New("the hosts have not been listed yet; try again in a moment")

// hosts are the hosts as they were last seen.
type hosts interface {
	Get(uid string) *v1alpha1.BareMetalHost
	OnChange(func(kube.Ref))
	Ready(context.Context) error
}

// index finds hosts by what they name: a BMC, a boot MAC address, a
// HostNetworkAttachment. It is safe for concurrent use.
type index struct {
	hosts hosts

	mu   sync.RWMutex
	keys map[string][]string            // of each uid
	uids map[string]map[string]struct{} // of each key
}

// newIndex follows the hosts from now on. It must be made before they are
// watched.
func newIndex(h hosts) *index {
	i := &index{hosts: h, keys: map[string][]string{}, uids: map[string]map[string]struct{}{}}
	h.OnChange(i.update)
	return i
}

// attachmentKey tells attachments from the other keys.
const attachmentKey = "attachment/"

func keysOf(o *v1alpha1.BareMetalHost) []string {
	keys := admission.ConflictKeys(o)
	for _, a := range admission.AttachmentKeys(o) {
		keys = append(keys, attachmentKey+a)
	}
	return keys
}

func (i *index) update(r kube.Ref) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var keys []string
	if o := i.hosts.Get(r.UID); o != nil { // read under the lock, so that the last update has the newest
		keys = keysOf(o)
	}
	if slices.Equal(keys, i.keys[r.UID]) {
		return
	}
	for _, key := range i.keys[r.UID] {
		delete(i.uids[key], r.UID)
		if len(i.uids[key]) == 0 {
			delete(i.uids, key)
		}
	}
	delete(i.keys, r.UID)
	for _, key := range keys {
		if i.uids[key] == nil {
			i.uids[key] = map[string]struct{}{}
		}
		i.uids[key][r.UID] = struct{}{}
	}
	if len(keys) > 0 {
		i.keys[r.UID] = keys
	}
}

// find is the hosts that have one of the keys, by namespace and name.
func (i *index) find(keys ...string) []v1alpha1.BareMetalHost {
	i.mu.RLock()
	uids := map[string]struct{}{}
	for _, key := range keys {
		for uid := range i.uids[key] {
			uids[uid] = struct{}{}
		}
	}
	i.mu.RUnlock()
	var found []v1alpha1.BareMetalHost
	for uid := range uids {
		if o := i.hosts.Get(uid); o != nil {
			found = append(found, *o)
		}
	}
	slices.SortFunc(found, func(a, b v1alpha1.BareMetalHost) int {
		return slices.Compare([]string{a.Namespace, a.Name}, []string{b.Namespace, b.Name})
	})
	return found
}

// like are the hosts that may be the same machine as o, as far as they are
// known.
func (i *index) like(o *v1alpha1.BareMetalHost) []v1alpha1.BareMetalHost {
	return i.find(admission.ConflictKeys(o)...)
}

// users are the hosts that name an attachment. The error says that they are not
// known.
func (i *index) users(a *v1alpha1.HostNetworkAttachment) ([]v1alpha1.BareMetalHost, error) {
	if i.hosts.Ready(context.Background()) != nil {
		return nil, errUnseen
	}
	return i.find(attachmentKey + a.Namespace + "/" + a.Name), nil
}
