package preprov

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
)

// workers is how many images are seen to at once.
const workers = 4

// requestTime bounds all requests for one image.
const requestTime = 30 * time.Second

// Images are the PreprovisioningImages of the namespaces that a cluster watches.
type Images struct {
	cfg     Config
	cluster *kube.Cluster
	client  client.WithWatch
	log     *slog.Logger
	now     func() time.Time

	mu   sync.Mutex
	term *term // nil while they are not kept here
}

// term is one time of keeping them.
type term struct {
	known *kube.Known[*v1alpha1.PreprovisioningImage]
	keep  *kube.Queue
	build *kube.Queue // nil if they are somebody else's to build
	// listed: every image that was there has been seen.
	listed bool
}

// New are the images of c's hosts. It must be called before the hosts are watched.
func New(cfg Config, c *kube.Cluster, log *slog.Logger, now func() time.Time) (*Images, error) {
	k, err := c.NewClient()
	if err != nil {
		return nil, err
	}
	i := &Images{cfg: cfg, cluster: c, client: k, log: log, now: now}
	c.Hosts.OnChange(func(r kube.Ref) { i.see(types.NamespacedName{Namespace: r.Namespace, Name: r.Name}) })
	return i, nil
}

// Wish is what a host is to boot; known is false where the images are not kept, or
// have not been listed yet. network is the version of the Secret with the host's
// network data: if the image is of another one, whoever builds here is told.
func (i *Images) Wish(o *v1alpha1.BareMetalHost, network string) (w event.RamdiskWish, known bool) {
	key := client.ObjectKeyFromObject(o)
	i.mu.Lock()
	t := i.term
	known = t != nil && t.listed
	i.mu.Unlock()
	if !known {
		return w, false
	}
	image, _ := t.known.Get(key)
	if t.build != nil && image != nil && image.Status.NetworkData.Version != network {
		t.build.Add(key)
	}
	w = wish(o, image, network)
	w.Plain = t.build != nil && w.Waits == "" && w.Problem == ""
	return w, true
}

// Run keeps the images until ctx ends, again if it is called again. Two may run at
// once, which changes nothing but the number of conflicts.
func (i *Images) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	t := i.begin()
	defer i.end()
	all.Go(func() { t.known.Run(ctx) })
	for _, synced := range []func(context.Context) error{t.known.Synced, i.cluster.Hosts.Synced} {
		if err := synced(ctx); err != nil {
			return err
		}
	}
	i.mu.Lock()
	t.listed = true
	i.mu.Unlock()
	for _, o := range i.cluster.Hosts.All() {
		t.keep.Add(client.ObjectKeyFromObject(o))
		i.cluster.Nudge(kube.RefOf(o))
	}
	if t.build != nil {
		b := &builder{cfg: i.cfg, client: i.client, now: i.now, image: t.known.Get, network: i.cluster.SecretVersion}
		all.Go(func() { t.build.Run(ctx, workers, b.look) })
	}
	k := &keeper{client: i.client, image: t.known.Get, host: i.host, there: i.cluster.Hosts.Get}
	t.keep.Run(ctx, workers, k.look)
	return nil
}

func (i *Images) begin() *term {
	t := &term{keep: kube.NewQueue("PreprovisioningImage", i.log)}
	if i.cfg.builds() {
		t.build = kube.NewQueue("image of a PreprovisioningImage", i.log)
	}
	t.known = kube.NewKnown(i.cluster, i.client, &v1alpha1.PreprovisioningImage{}, &v1alpha1.PreprovisioningImageList{}, i.changed)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.term = t
	return t
}

func (i *Images) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.term = nil
}

// changed has everybody look at an image, and at its host.
func (i *Images) changed(image *v1alpha1.PreprovisioningImage) {
	key := client.ObjectKeyFromObject(image)
	i.see(key)
	if r, ok := i.cluster.Hosts.Named(key); ok {
		i.cluster.Nudge(r)
	}
}

func (i *Images) see(key types.NamespacedName) {
	i.mu.Lock()
	t := i.term
	i.mu.Unlock()
	if t == nil {
		return
	}
	t.keep.Add(key)
	if t.build != nil {
		t.build.Add(key)
	}
}

// host is the host of that name, nil if there is none.
func (i *Images) host(key types.NamespacedName) *v1alpha1.BareMetalHost {
	r, ok := i.cluster.Hosts.Named(key)
	if !ok {
		return nil
	}
	return i.cluster.Hosts.Get(r.UID)
}
