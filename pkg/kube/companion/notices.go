package companion

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
)

// requestTime bounds a request to the API.
const requestTime = 15 * time.Second

// notices say on objects whose wishes nobody carries out that it is so.
type notices struct {
	cfg     Config
	cluster *kube.Cluster
	client  client.WithWatch
	log     *slog.Logger
	now     func() time.Time
}

func newNotices(cfg Config, c *kube.Cluster, log *slog.Logger, now func() time.Time) (*notices, error) {
	k, err := c.NewClient()
	if err != nil {
		return nil, err
	}
	return &notices{cfg: cfg, cluster: c, client: k, log: log, now: now}, nil
}

// Run works until ctx ends, again if it is called again.
func (n *notices) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	each := func(run func()) { all.Go(run) }
	if !n.cfg.Ramdisks.Enabled {
		each(func() {
			post(ctx, n, &v1alpha1.PreprovisioningImage{}, &v1alpha1.PreprovisioningImageList{}, ramdiskNotice)
		})
	}
	if !n.cfg.HostClaims {
		each(func() { post(ctx, n, &v1alpha1.HostClaim{}, &v1alpha1.HostClaimList{}, claimNotice) })
	}
	if !n.cfg.Switches.Enabled {
		each(func() { post(ctx, n, &v1alpha1.BareMetalSwitch{}, &v1alpha1.BareMetalSwitchList{}, switchNotice) })
	}
	return nil
}

// post puts a notice on the objects of one kind until ctx ends. notice is what
// changes in an object's status; nil if it is there.
func post[T client.Object](ctx context.Context, n *notices, one T, list client.ObjectList, notice func(T, time.Time) fields) {
	queue := kube.NewQueue(fmt.Sprintf("%T", one), n.log)
	known := kube.NewKnown(n.cluster, n.client, one, list, func(o T) { queue.Add(client.ObjectKeyFromObject(o)) })
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { known.Run(ctx) })
	queue.Run(ctx, 1, func(ctx context.Context, key types.NamespacedName) (time.Duration, error) {
		o, there := known.Get(key)
		if !there {
			return 0, nil
		}
		return 0, see(ctx, n, o, notice)
	})
}

// see puts a notice on one object.
func see[T client.Object](ctx context.Context, n *notices, o T, notice func(T, time.Time) fields) error {
	if slices.Contains(o.GetFinalizers(), v1alpha1.HostPreprovisioningImageFinalizer) {
		return n.letGo(ctx, o)
	}
	if _, moving := o.GetAnnotations()[v1alpha1.DeleteForMoveAnnotation]; moving || o.GetDeletionTimestamp() != nil {
		return nil
	}
	changes := notice(o, n.now())
	if changes == nil {
		return nil
	}
	return n.write(ctx, o, changes)
}

// letGo takes our finalizer off a PreprovisioningImage that was kept before the
// projector was told to keep none: nobody else would.
func (n *notices) letGo(ctx context.Context, o client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	rest := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == v1alpha1.HostPreprovisioningImageFinalizer })
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": o.GetResourceVersion(), "finalizers": rest}})
	if err != nil {
		return fmt.Errorf("encode the finalizers of %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
	}
	now := o.DeepCopyObject().(client.Object)
	if err := n.client.Patch(ctx, now, client.RawPatch(types.MergePatchType, text)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("let go of %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
	}
	return nil
}

// write changes an object's status, unless somebody has written it meanwhile.
func (n *notices) write(ctx context.Context, o client.Object, status fields) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": o.GetResourceVersion()}, "status": status})
	if err != nil {
		return fmt.Errorf("encode the status of %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
	}
	now := o.DeepCopyObject().(client.Object)
	if err := n.client.Status().Patch(ctx, now, client.RawPatch(types.MergePatchType, text)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of %T %s/%s: %w", o, o.GetNamespace(), o.GetName(), err)
	}
	return nil
}
