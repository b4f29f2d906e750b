package kube

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// writeTime bounds one request to the API.
const writeTime = 15 * time.Second

// Cluster is one Kubernetes API as a service sees it. Its methods are safe for
// concurrent use.
type Cluster struct {
	cfg     Config
	rest    *rest.Config
	client  client.WithWatch
	log     *slog.Logger
	now     func() time.Time
	metrics *metrics
	slots   chan struct{} // one for each write under way
	busy    atomic.Int64  // when more than half of them were last taken, in Unix nanoseconds

	// Hosts are the hosts as they were last seen.
	Hosts *Hosts
	// Secrets gives the content of one Secret at a time.
	Secrets *Secrets
	// Announcer makes Kubernetes Events.
	Announcer *Announcer

	refs   *refs
	queued served
}

// Options are what a Cluster uses of its surroundings.
type Options struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Now     func() time.Time
}

// Open reaches the cluster that cfg names. It makes no request yet.
func Open(cfg Config, o Options) (*Cluster, error) {
	access, err := cfg.rest()
	if err != nil {
		return nil, err
	}
	return New(access, cfg, o)
}

// New is Open for a client configuration that is there already.
func New(access *rest.Config, cfg Config, o Options) (*Cluster, error) {
	cfg = cfg.withDefaults()
	access = unlimited(access)
	access.WarningHandler = warnings{o.Log}
	c, err := newClient(access, o.Log)
	if err != nil {
		return nil, err
	}
	m := newMetrics(o.Metrics)
	cluster := &Cluster{
		cfg: cfg, rest: access, client: c, log: o.Log, now: o.Now, metrics: m, slots: make(chan struct{}, cfg.Writes),
		Hosts: newHosts(), Secrets: &Secrets{reader: c}, Announcer: newAnnouncer(c, cfg.EventsPerSecond, m, o.Log),
	}
	cluster.Announcer.busy = cluster.Busy
	cluster.refs = newRefs(cluster)
	cluster.Hosts.OnChange(cluster.queued.add)
	return cluster, nil
}

// unlimited is a client configuration without limits of its own.
func unlimited(access *rest.Config) *rest.Config {
	access = rest.CopyConfig(access)
	access.QPS = -1
	access.UserAgent = "metalbus"
	return access
}

// warnings logs what the API has against a request that it served.
type warnings struct{ log *slog.Logger }

func (w warnings) HandleWarningHeader(_ int, _, text string) {
	w.log.Debug("the API warns", keyCause, text)
}

// newClient knows our few kinds beforehand and asks the API for none. It has the API
// not look for fields that it does not know: that costs it time with each write, and
// WriteStatus sees by itself what was not kept.
func newClient(access *rest.Config, log *slog.Logger) (client.WithWatch, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(access, client.Options{
		Scheme: scheme, Mapper: mapper(), FieldOwner: "metalbus", FieldValidation: metav1.FieldValidationIgnore, Log: logr.FromSlogHandler(log.Handler()),
	})
	if err != nil {
		return nil, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	return c, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, v1alpha1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("collect the kinds: %w", err)
		}
	}
	return scheme, nil
}

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for plural, gvk := range map[string]schema.GroupVersionKind{
		"baremetalhosts": v1alpha1.GroupVersion.WithKind("BareMetalHost"),
		"hardwaredata":   v1alpha1.GroupVersion.WithKind("HardwareData"),
		"secrets":        corev1.SchemeGroupVersion.WithKind("Secret"),
		"events":         corev1.SchemeGroupVersion.WithKind("Event"),
	} {
		r := gvk.GroupVersion().WithResource(plural)
		m.AddSpecific(gvk, r, r, meta.RESTScopeNamespace)
	}
	return m
}

// Config is how the cluster was opened, defaults filled in.
func (c *Cluster) Config() Config { return c.cfg }

// logged is a context whose logger client-go's own log lines go to.
func (c *Cluster) logged(ctx context.Context) context.Context {
	return logr.NewContext(ctx, logr.FromSlogHandler(c.log.Handler()))
}

// calm is how long writes have to be few before the API is not busy any more.
const calm = 3 * time.Second

// Busy reports whether the API is kept busy by writes to hosts, or was just now, so
// that whatever can wait had better wait: what is said beside a state, and objects of
// less interest. Those who wait for it have to come to an end by themselves.
func (c *Cluster) Busy() bool {
	return c.many() || c.now().Sub(time.Unix(0, c.busy.Load())) < calm
}

// many reports whether more than half of the writes that may be under way are.
func (c *Cluster) many() bool { return 2*len(c.slots) > cap(c.slots) }

// write makes one write when there is a slot for it, within a bounded time,
// and counts it.
func (c *Cluster) write(ctx context.Context, kind, doing string, do func(context.Context) error) error {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
		if c.many() {
			c.busy.Store(c.now().UnixNano())
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	err := translate(doing, do(ctx))
	c.metrics.wrote(kind, err)
	return err
}
