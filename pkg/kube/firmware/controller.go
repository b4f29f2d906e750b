package firmware

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Bus is where hosts and what was read of their firmware are found.
type Bus interface {
	Load(ctx context.Context, uid string) (lifecycle.Host, error)
	GetData(ctx context.Context, uid, name, digest string, value any) error
}

// workers is how many hosts are looked at at once.
const workers = 4

// Controller keeps the objects about firmware. Only the replica that leads runs it;
// that two do for moments does no harm.
type Controller struct {
	cluster *kube.Cluster
	client  client.WithWatch
	bus     Bus
	log     *slog.Logger
	now     func() time.Time

	mu     sync.Mutex
	nudge  func(types.NamespacedName) // nil while nobody runs it
	seen   map[string]string          // by uid: what mattered of a host when it changed last
	wishes map[string]*event.FirmwareWish
	made   map[string]time.Time // when objects were made, which may not have been seen yet
	own    map[string]string    // the resourceVersions of our own writes, till they are seen
	// waiting are hosts whose objects are made once the API is less busy, since when.
	waiting map[types.NamespacedName]time.Time
}

// New is a Controller for the namespaces that c watches. It must be made before
// the hosts are watched.
func New(c *kube.Cluster, b Bus, log *slog.Logger, now func() time.Time) (*Controller, error) {
	k, err := c.NewClient()
	if err != nil {
		return nil, err
	}
	f := &Controller{
		cluster: c, client: k, bus: b, log: log, now: now, seen: map[string]string{}, wishes: map[string]*event.FirmwareWish{},
		own: map[string]string{}, made: map[string]time.Time{}, waiting: map[types.NamespacedName]time.Time{},
	}
	c.Hosts.OnChange(f.hostChanged)
	return f, nil
}

// Wish is what is to be changed of a host's firmware, without an ID; known is false
// before that was found out. What a wish rests on is shown on the objects by then.
func (c *Controller) Wish(uid string) (w *event.FirmwareWish, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, known = c.wishes[uid]
	return w, known
}

// objects are those about firmware, as they were last seen.
type objects struct {
	settings   *kube.Known[*v1alpha1.HostFirmwareSettings]
	components *kube.Known[*v1alpha1.HostFirmwareComponents]
	policies   *kube.Known[*v1alpha1.HostUpdatePolicy]
	schemas    *kube.Known[*v1alpha1.FirmwareSchema]
}

// Run works until ctx ends, again if it is called again.
func (c *Controller) Run(ctx context.Context) error {
	queue := kube.NewQueue("firmware", c.log)
	all := follow(c, queue)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for _, run := range []func(context.Context){all.settings.Run, all.components.Run, all.policies.Run, all.schemas.Run} {
		running.Go(func() { run(ctx) })
	}
	for _, synced := range []func(context.Context) error{all.settings.Synced, all.components.Synced, all.policies.Synced, all.schemas.Synced, c.cluster.Hosts.Synced} {
		if err := synced(ctx); err != nil {
			return err
		}
	}
	c.follow(queue.Add)
	defer c.follow(nil)
	for _, o := range c.cluster.Hosts.All() {
		queue.Add(client.ObjectKeyFromObject(o))
	}
	running.Go(func() { c.sweep(ctx, all) })
	l := looker{Controller: c, objects: all}
	queue.Run(ctx, workers, l.look)
	return nil
}

// follow follows the objects about firmware: the host of that name is looked at
// when one changes.
func follow(c *Controller, queue *kube.Queue) objects {
	all := objects{
		settings:   known(c, queue, &v1alpha1.HostFirmwareSettings{}, &v1alpha1.HostFirmwareSettingsList{}),
		components: known(c, queue, &v1alpha1.HostFirmwareComponents{}, &v1alpha1.HostFirmwareComponentsList{}),
		policies:   known(c, queue, &v1alpha1.HostUpdatePolicy{}, &v1alpha1.HostUpdatePolicyList{}),
		schemas:    kube.NewKnown(c.cluster, c.client, &v1alpha1.FirmwareSchema{}, &v1alpha1.FirmwareSchemaList{}, func(*v1alpha1.FirmwareSchema) {}),
	}
	all.settings.Shrink(shorten)
	all.components.Shrink(func(o *v1alpha1.HostFirmwareComponents) *v1alpha1.HostFirmwareComponents {
		o.ManagedFields = nil
		return o
	})
	all.schemas.Shrink(func(o *v1alpha1.FirmwareSchema) *v1alpha1.FirmwareSchema {
		o.ManagedFields, o.Spec.Schema = nil, nil
		return o
	})
	return all
}

func known[T client.Object](c *Controller, queue *kube.Queue, one T, list client.ObjectList) *kube.Known[T] {
	return kube.NewKnown(c.cluster, c.client, one, list, func(o T) {
		if !c.isOwn(o) {
			queue.Add(client.ObjectKeyFromObject(o))
		}
	})
}

// follow has hosts nudged from now on, and forgets what was found out before.
func (c *Controller) follow(nudge func(types.NamespacedName)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nudge = nudge
	clear(c.wishes)
	clear(c.own)
	clear(c.made)
	clear(c.waiting)
}

// Heard has a host looked at of whose firmware something was recorded, if this
// replica leads. One that leads elsewhere comes by it a little later.
func (c *Controller) Heard(uid string) {
	o := c.cluster.Hosts.Get(uid)
	c.mu.Lock()
	defer c.mu.Unlock()
	if o != nil && c.nudge != nil {
		c.nudge(client.ObjectKeyFromObject(o))
	}
}

// hostChanged has a host looked at if what matters of it has changed: after its
// firmware was read or changed it is in another state, or another word is said of it.
func (c *Controller) hostChanged(r kube.Ref) {
	o := c.cluster.Hosts.Get(r.UID)
	c.mu.Lock()
	defer c.mu.Unlock()
	if o == nil {
		delete(c.seen, r.UID)
		delete(c.wishes, r.UID)
		delete(c.waiting, types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
		return
	}
	now := aspect(o)
	changed := c.seen[r.UID] != now
	c.seen[r.UID] = now
	if changed && c.nudge != nil {
		c.nudge(types.NamespacedName{Namespace: r.Namespace, Name: r.Name})
	}
}

// aspect is what matters of a host.
func aspect(o *v1alpha1.BareMetalHost) string {
	s := o.Status
	_, detached := o.Annotations[v1alpha1.DetachedAnnotation]
	return fmt.Sprint(s.Provisioning.State, s.OperationalStatus, s.Provisioning.ID, s.ErrorType, s.ErrorCount, frozen(o), detached, o.DeletionTimestamp != nil)
}

// frozen reports whether nothing is to be done for the host: it is paused, or it
// lives in another cluster from now on.
func frozen(o *v1alpha1.BareMetalHost) bool {
	_, paused := o.Annotations[v1alpha1.PausedAnnotation]
	_, moving := o.Annotations[v1alpha1.DeleteForMoveAnnotation]
	return paused || moving
}

// found notes the wish of a host and has the host looked at, if its intent asks
// something else.
func (c *Controller) found(o *v1alpha1.BareMetalHost, w, asked *event.FirmwareWish) {
	c.mu.Lock()
	c.wishes[string(o.UID)] = w
	c.mu.Unlock()
	if !same(w, asked) {
		c.cluster.Nudge(kube.RefOf(o))
	}
}
