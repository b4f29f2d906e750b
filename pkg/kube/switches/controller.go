package switches

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
)

// Controller writes the switches of a cluster into the configuration.
type Controller struct {
	cfg     Config
	cluster *kube.Cluster
	client  client.WithWatch
	log     *slog.Logger
	now     func() time.Time
}

// New is a Controller of the switches of the namespaces that c watches.
func New(cfg Config, c *kube.Cluster, log *slog.Logger, now func() time.Time) (*Controller, error) {
	k, err := c.NewClient()
	if err != nil {
		return nil, err
	}
	return &Controller{cfg: cfg, cluster: c, client: k, log: log, now: now}, nil
}

type metadata = metav1.PartialObjectMetadata

// Run works until ctx ends, again if it is called again.
func (c *Controller) Run(ctx context.Context) error {
	queue := kube.NewQueue("BareMetalSwitch", c.log)
	whole := func(namespace string) { queue.Add(types.NamespacedName{Namespace: namespace}) }
	switches := kube.NewKnown(c.cluster, c.client, &v1alpha1.BareMetalSwitch{}, &v1alpha1.BareMetalSwitchList{}, func(s *v1alpha1.BareMetalSwitch) { whole(s.Namespace) })
	of := func(namespace string) (list []*v1alpha1.BareMetalSwitch) {
		for _, s := range switches.All() {
			if s.Namespace == namespace {
				list = append(list, s)
			}
		}
		return list
	}
	one, list := &metadata{}, &metav1.PartialObjectMetadataList{}
	one.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	secrets := kube.NewKnown(c.cluster, c.client, one, list, func(secret *metadata) {
		if c.matters(secret, of(secret.Namespace)) {
			whole(secret.Namespace)
		}
	})
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all.Go(func() { switches.Run(ctx) })
	all.Go(func() { secrets.Run(ctx) })
	if err := switches.Synced(ctx); err != nil {
		return err
	}
	w := &writer{cfg: c.cfg, client: c.client, now: c.now, switches: of}
	queue.Run(ctx, 1, w.look)
	return nil
}

// matters reports whether a Secret is one that is filled, or that a switch of
// its namespace names.
func (c *Controller) matters(secret *metadata, switches []*v1alpha1.BareMetalSwitch) bool {
	for _, s := range switches {
		filled := secret.Name == c.cfg.ConfigSecret || secret.Name == c.cfg.KeySecret
		if filled || (s.Spec.Credentials != nil && s.Spec.Credentials.Name == secret.Name) {
			return true
		}
	}
	return false
}
