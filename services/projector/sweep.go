package projector

import (
	"context"
	"errors"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Tick looks at all hosts on the bus from time to time. It is the safety net
// under watch and triggers.
func (p *Projector) Tick(ctx context.Context, name string) error {
	if name != bus.TickResync {
		return nil
	}
	if err := p.kube.Hosts.Synced(ctx); err != nil {
		return err
	}
	return p.sweep(ctx)
}

// sweep goes over all hosts on the bus: one whose object is gone is forgotten,
// and purged after a while; one whose object is behind is shown.
func (p *Projector) sweep(ctx context.Context) error {
	behind := 0
	for h, err := range p.bus.Hosts(ctx) {
		if err != nil {
			return err
		}
		o := p.kube.Hosts.Get(h.UID)
		if o == nil {
			if err := p.clear(ctx, h); err != nil {
				return err
			}
			continue
		}
		if shownSince(o, h) == h.Rev || weigh(viewOn(o), viewOf(h)) == none {
			continue
		}
		behind++
		if _, err := p.show(ctx, h.UID, lookFor{whole: true, once: true}); err != nil {
			p.log.Debug("show a host that is behind", keyHost, h.Name(), keyError, err)
		}
	}
	if behind > 0 {
		p.log.Info("found hosts whose objects were behind", keyCount, behind)
	}
	return nil
}

// clear deals with a host whose object is not there.
func (p *Projector) clear(ctx context.Context, h lifecycle.Host) error {
	switch {
	case p.stale(h):
		p.metrics.purged.Inc()
		return p.bus.Purge(ctx, h.UID)
	case forgotten(h) || !p.kube.Config().Watches(h.Intent.Namespace):
		return nil
	default:
		return p.miss(ctx, h)
	}
}

// stale reports whether a forgotten host has been kept for long enough.
func (p *Projector) stale(h lifecycle.Host) bool {
	return forgotten(h) && p.now().Sub(h.Newest(event.SectionIntent).At) > p.cfg.KeepForgotten
}

// miss forgets a host whose object is not there. The list of objects may be
// older than the host, so the API is asked.
func (p *Projector) miss(ctx context.Context, h lifecycle.Host) error {
	if _, err := p.kube.Read(ctx, refOf(h)); err == nil || !errors.Is(err, kube.ErrGone) {
		return err
	}
	return p.forget(ctx, refOf(h))
}
