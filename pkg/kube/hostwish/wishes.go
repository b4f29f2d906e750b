package hostwish

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Wishes are the objects of the watched namespaces that ask something of hosts.
type Wishes struct {
	cluster *kube.Cluster
	api     client.WithWatch
	log     *slog.Logger
	images  *kube.Known[*v1alpha1.DataImage]

	subscriptions *kube.Known[*subscription]

	mu     sync.Mutex
	queue  *kube.Queue // of the replica that leads
	synced bool
}

// keyKind is the key of a kind in log lines.
const keyKind = "kind"

// New are the wishes of the namespaces that c watches. It must be called before
// the hosts are watched.
func New(c *kube.Cluster, log *slog.Logger) (*Wishes, error) {
	api, err := c.NewClient()
	if err != nil {
		return nil, err
	}
	w := &Wishes{cluster: c, api: api, log: log}
	w.images = kube.NewKnown(c, api, &v1alpha1.DataImage{}, &v1alpha1.DataImageList{}, func(d *v1alpha1.DataImage) { w.add(client.ObjectKeyFromObject(d)) })
	w.subscriptions = kube.NewKnown(c, api, &subscription{}, &v1alpha1.BMCEventSubscriptionList{}, func(s *subscription) { w.add(hostOf(s)) })
	c.Hosts.OnChange(func(r kube.Ref) {
		if c.Hosts.Get(r.UID) == nil { // what asks something of it may go
			w.add(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
		}
	})
	return w, nil
}

// Run keeps the wishes up to date until ctx ends. It may be called once.
func (w *Wishes) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { w.images.Run(ctx) })
	all.Go(func() { w.subscriptions.Run(ctx) })
	for _, kind := range []struct {
		list   client.ObjectList
		synced func(context.Context) error
	}{{&v1alpha1.DataImageList{}, w.images.Synced}, {&v1alpha1.BMCEventSubscriptionList{}, w.subscriptions.Synced}} {
		if !w.unserved(ctx, kind.list) && kind.synced(ctx) != nil {
			return nil
		}
	}
	w.mu.Lock()
	w.synced = true
	w.mu.Unlock()
	for _, o := range w.cluster.Hosts.All() {
		w.cluster.Nudge(kube.RefOf(o)) // what it asks may have gone unseen
	}
	return nil
}

// unserved reports whether the API does not know a kind: an older operator brought
// no CRD of it. Then there are none, until there is one.
func (w *Wishes) unserved(ctx context.Context, list client.ObjectList) bool {
	namespace := ""
	if watched := w.cluster.Config().Namespaces; len(watched) > 0 {
		namespace = watched[0]
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	err := w.api.List(ctx, list, &client.ListOptions{Namespace: namespace, Limit: 1})
	if !apierrors.IsNotFound(err) {
		return false
	}
	w.log.Warn("the API does not serve a kind, so none of it is carried out: apply the CRDs of this version", keyKind, fmt.Sprintf("%T", list))
	return true
}

// Lead has hosts looked at of which something else is asked, and lets objects
// go that have no host, until ctx ends; again if it is called again.
func (w *Wishes) Lead(ctx context.Context) error {
	queue := kube.NewQueue("wish", w.log)
	w.lead(queue)
	defer w.lead(nil)
	for _, d := range w.images.All() {
		queue.Add(client.ObjectKeyFromObject(d))
	}
	for _, s := range w.subscriptions.All() {
		queue.Add(hostOf(s))
	}
	queue.Run(ctx, 1, w.look)
	return nil
}

func (w *Wishes) lead(q *kube.Queue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = q
}

func (w *Wishes) add(host types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		w.queue.Add(host)
	}
}

// look passes a change of a host's wishes on to the host. Where there is no
// host, nothing is to be undone.
func (w *Wishes) look(ctx context.Context, host types.NamespacedName) (time.Duration, error) {
	if err := w.cluster.Hosts.Synced(ctx); err != nil {
		return 0, err
	}
	if r, there := w.cluster.Hosts.Named(host); there {
		w.cluster.Nudge(r)
		return 0, nil
	}
	for _, s := range w.subscriptionsOf(host) {
		if err := w.withoutHost(ctx, s); err != nil {
			return 0, err
		}
	}
	return 0, w.letGo(ctx, host)
}

// Ask puts into an intent what is asked of a host. Until it is known what there
// is, that stays what it was before.
func (w *Wishes) Ask(o *v1alpha1.BareMetalHost, before event.Intent, next *event.Intent) {
	if !w.known() {
		next.DataImage, next.Subscriptions = before.DataImage, before.Subscriptions
		return
	}
	next.DataImage, next.Subscriptions = w.dataImage(o), w.askSubscriptions(o)
}

// Remember puts into the base of a host that is restored what the objects say of
// it; ok is false before they have been listed.
func (w *Wishes) Remember(o *v1alpha1.BareMetalHost, b *event.Base) (ok bool) {
	if d, there := w.imageOf(o); there && b.Provisioning != nil {
		b.Provisioning.Media.URL = v1alpha1.WithoutLogin(d.Status.AttachedImage.URL)
	}
	if b.Power != nil {
		b.Power.Subscriptions = w.rememberSubscriptions(o)
	}
	return w.known()
}

// Digest tells apart what is asked of a host; "" is nothing.
func (w *Wishes) Digest(o *v1alpha1.BareMetalHost) string {
	if !w.known() {
		return "unknown"
	}
	return w.imageDigest(o) + w.subscriptionDigest(o)
}

func (w *Wishes) known() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.synced
}

// Show shows on the objects what became of what they ask of a host, keeps those
// that need it, and lets go of those that need it no more. The error is a
// [kube.ErrUnseen] if one of them was not seen here yet.
func (w *Wishes) Show(ctx context.Context, o *v1alpha1.BareMetalHost, h lifecycle.Host) error {
	if !w.seen(o, h) {
		return fmt.Errorf("what asks something of host %s/%s: %w", o.Namespace, o.Name, kube.ErrUnseen)
	}
	if err := w.showImage(ctx, o, h); err != nil {
		return err
	}
	return w.showSubscriptions(ctx, o, h)
}

// seen reports whether every object that the host's intent was made of is known here.
func (w *Wishes) seen(o *v1alpha1.BareMetalHost, h lifecycle.Host) bool {
	if leaves(h) {
		return true // they may have gone
	}
	_, image := w.imageOf(o)
	here := w.subscriptionsOf(client.ObjectKeyFromObject(o))
	missing := slices.ContainsFunc(h.Intent.Subscriptions, func(wish event.SubscriptionWish) bool {
		return !slices.ContainsFunc(here, func(s *subscription) bool { return string(s.UID) == wish.UID })
	})
	return !missing && (image || h.Intent.DataImage == nil)
}

// leaves reports whether nobody undoes anything for the objects of a host any more:
// it goes, and what was done to the machine is undone on its way; or it is detached.
func leaves(h lifecycle.Host) bool {
	i := h.Intent
	return !i.DeletedAt.IsZero() || i.Detached != nil || h.Registration.Detached
}

// Release lets go of all that asks something of a host that goes.
func (w *Wishes) Release(ctx context.Context, o *v1alpha1.BareMetalHost) error {
	return w.letGo(ctx, client.ObjectKeyFromObject(o))
}

// letGo lets go of what asks something of a host that is not there, or goes.
func (w *Wishes) letGo(ctx context.Context, host types.NamespacedName) error {
	d, there := w.images.Get(host)
	if !there {
		return nil
	}
	return w.unhold(ctx, d, v1alpha1.DataImageFinalizer)
}
