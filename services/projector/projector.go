package projector

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Log is the log of hosts on the bus.
type Log interface {
	Load(ctx context.Context, uid string) (lifecycle.Host, error)
	Snapshots(ctx context.Context, uid string, afterRev uint64) ([]lifecycle.Host, error)
	Append(ctx context.Context, h lifecycle.Host, f lifecycle.Fact) (lifecycle.Host, error)
	Hosts(ctx context.Context) iter.Seq2[lifecycle.Host, error]
	Purge(ctx context.Context, uid string) error
}

// Documents are what is too large for an event.
type Documents interface {
	PutData(ctx context.Context, uid, name string, value any) (digest string, err error)
	GetData(ctx context.Context, uid, name, digest string, value any) error
}

// Watcher hands out triggers.
type Watcher interface {
	Watch(ctx context.Context, service string, o bus.Observer) error
}

// Bus is all that the projector needs of the bus.
type Bus interface {
	Log
	Documents
	Watcher
}

// name is the service's name, and the Lease's.
const name = "projector"

// Projector is the service.
type Projector struct {
	cfg     Config
	kube    *kube.Cluster
	bus     Bus
	log     *slog.Logger
	now     func() time.Time
	metrics *metrics
	screens *screens
	looked  *looked
	wishes  Wishes
	beside  []Part
	leading []Part
	// ramdisks is nil if no host has an image of its own.
	ramdisks Ramdisks
}

// Ramdisks say what hosts are to boot that each have an image of their own.
type Ramdisks interface {
	// Wish is what a host is to boot; known is false while that cannot be told.
	// network is the version of the Secret with its network data.
	Wish(o *v1alpha1.BareMetalHost, network string) (w event.RamdiskWish, known bool)
}

// Wishes are what is to be changed of hosts' firmware.
type Wishes interface {
	// Wish is a host's; known is false while that is not found out.
	Wish(uid string) (w *event.FirmwareWish, known bool)
	// Heard says that something was recorded of a host's firmware.
	Heard(uid string)
}

// noWishes are the Wishes where nobody looks for any.
type noWishes struct{}

func (noWishes) Wish(string) (*event.FirmwareWish, bool) { return nil, false }
func (noWishes) Heard(string)                            {}

// Part is work that goes on until its context ends.
type Part func(ctx context.Context) error

// Options are what a Projector uses of its surroundings.
type Options struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Now     func() time.Time
	// Wishes are for firmware; nil for none.
	Wishes Wishes
	// Beside is further work of every replica on the same cluster, Leading is
	// that of the replica that leads; this is begun again each time it does.
	Beside, Leading []Part
	// Ramdisks is nil if no host has an image of its own.
	Ramdisks Ramdisks
}

// New is a Projector between a cluster and a bus.
func New(cfg Config, c *kube.Cluster, b Bus, o Options) *Projector {
	p := &Projector{
		cfg: cfg, kube: c, bus: b, log: o.Log, now: o.Now, metrics: newMetrics(o.Metrics), screens: newScreens(), looked: newLooked(),
		wishes: o.Wishes, beside: o.Beside, leading: o.Leading, ramdisks: o.Ramdisks,
	}
	if p.wishes == nil {
		p.wishes = noWishes{}
	}
	return p
}

// Run works until ctx ends, or one of its parts cannot go on.
func (p *Projector) Run(outer context.Context) error {
	all, ctx := errgroup.WithContext(outer)
	if err := p.awaitCRD(ctx); err != nil {
		return nil //nolint:nilerr // it was asked to end
	}
	all.Go(func() error { p.kube.Watch(ctx); return nil })
	all.Go(func() error { p.kube.Announcer.Run(ctx); return nil })
	for _, part := range p.beside {
		all.Go(func() error { return part(ctx) })
	}
	all.Go(func() error {
		// Triggers of hosts that were not listed yet would all be asked for
		// one by one.
		if err := p.kube.Hosts.Synced(ctx); err != nil {
			return err
		}
		return p.bus.Watch(ctx, name, p)
	})
	all.Go(func() error { return p.kube.Lead(ctx, "metalbus-"+name, p.lead) })
	if err := all.Wait(); outer.Err() == nil {
		return err
	}
	return nil
}

// retryCRD is how often the CRD is looked at again.
const retryCRD = 10 * time.Second

// awaitCRD waits until the CRD can hold what says which revision a status
// shows. Without that the replicas could not tell what others have shown, and
// would lead hosts through their states again. Other fields that are missing
// are lived without.
func (p *Projector) awaitCRD(ctx context.Context) error {
	for {
		switch missing, err := p.kube.MissingFields(ctx); {
		case err != nil:
			p.log.Warn("waiting for the API", keyError, err)
		case slices.Contains(missing, "status.conditions"):
			p.log.Error("waiting until hosts have status.conditions: apply the CRDs of this version")
		default:
			return nil
		}
		select {
		case <-time.After(retryCRD):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lead is the work of the one replica that turns objects into intents.
func (p *Projector) lead(ctx context.Context) error {
	p.looked.clear()
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return p.kube.Serve(ctx, p.cfg.Looks, p.Look) })
	for _, part := range p.leading {
		all.Go(func() error { return part(ctx) })
	}
	all.Go(func() error {
		if err := p.kube.Hosts.Synced(ctx); err != nil {
			return err
		}
		if err := p.sweep(ctx); err != nil && ctx.Err() == nil {
			p.log.Warn("look at all hosts on the bus", keyError, err) // the next tick does it again
		}
		return nil
	})
	return all.Wait()
}
