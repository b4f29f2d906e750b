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
	Snapshots(ctx context.Context, h lifecycle.Host, afterRev uint64) ([]lifecycle.Host, error)
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
	beside  []Part
	leading []Part
	// ramdisks is nil if no host has an image of its own.
	ramdisks Ramdisks
	wishes   Wishes
	firmware Firmware
}

// Ramdisks say what hosts are to boot that each have an image of their own.
type Ramdisks interface {
	// Wish is what a host is to boot; known is false while that cannot be told.
	// network is the version of the Secret with its network data.
	Wish(o *v1alpha1.BareMetalHost, network string) (w event.RamdiskWish, known bool)
}

// Firmware are what is to be changed of hosts' firmware.
type Firmware interface {
	// Wish is a host's; known is false while that is not found out.
	Wish(uid string) (w *event.FirmwareWish, known bool)
	// Heard says that something was recorded of a host's firmware.
	Heard(uid string)
}

// noFirmware is where nobody looks for any.
type noFirmware struct{}

func (noFirmware) Wish(string) (*event.FirmwareWish, bool) { return nil, false }
func (noFirmware) Heard(string)                            {}

// Wishes are what objects beside a host ask of its machine.
type Wishes interface {
	// Ask puts what they ask of a host into its intent.
	Ask(o *v1alpha1.BareMetalHost, before event.Intent, next *event.Intent)
	// Digest tells apart what they ask.
	Digest(o *v1alpha1.BareMetalHost) string
	// Remember puts what they say of a host into the base that it is restored
	// from; ok is false before they have been listed.
	Remember(o *v1alpha1.BareMetalHost, b *event.Base) (ok bool)
	// Show shows on them what became of it.
	Show(ctx context.Context, o *v1alpha1.BareMetalHost, h lifecycle.Host) error
	// Release lets go of them, since the host goes.
	Release(ctx context.Context, o *v1alpha1.BareMetalHost) error
}

// nothing is asked beside the hosts.
type nothing struct{}

func (nothing) Ask(*v1alpha1.BareMetalHost, event.Intent, *event.Intent)            {}
func (nothing) Digest(*v1alpha1.BareMetalHost) string                               { return "" }
func (nothing) Remember(*v1alpha1.BareMetalHost, *event.Base) bool                  { return true }
func (nothing) Show(context.Context, *v1alpha1.BareMetalHost, lifecycle.Host) error { return nil }
func (nothing) Release(context.Context, *v1alpha1.BareMetalHost) error              { return nil }

// Part is work that goes on until its context ends.
type Part func(ctx context.Context) error

// Options are what a Projector uses of its surroundings.
type Options struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Now     func() time.Time
	// Beside is further work of every replica on the same cluster, Leading is
	// that of the replica that leads; this is begun again each time it does.
	Beside, Leading []Part
	// Ramdisks is nil if no host has an image of its own.
	Ramdisks Ramdisks
	// Wishes are what is asked beside the hosts; nil for nothing.
	Wishes Wishes
	// Firmware is where what is asked of firmware is found; nil for nothing.
	Firmware Firmware
}

// New is a Projector between a cluster and a bus.
func New(cfg Config, c *kube.Cluster, b Bus, o Options) *Projector {
	if o.Wishes == nil {
		o.Wishes = nothing{}
	}
	if o.Firmware == nil {
		o.Firmware = noFirmware{}
	}
	return &Projector{
		cfg: cfg, kube: c, bus: b, log: o.Log, now: o.Now, metrics: newMetrics(o.Metrics), screens: newScreens(), looked: newLooked(),
		beside: o.Beside, leading: o.Leading, ramdisks: o.Ramdisks, wishes: o.Wishes, firmware: o.Firmware,
	}
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
