package projector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Waits before a trigger is looked at once more.
const (
	againSoon = 30 * time.Millisecond  // somebody else has written the object
	againSeen = 150 * time.Millisecond // the watch has not brought the object yet
	// onTheWay is how many times longer small changes wait while the host is
	// on its way to another state.
	onTheWay = 10
	// Times that small changes wait at most while the API is busy. Of a host in use
	// somebody may wait for them: that it is on again, say.
	longest      = time.Minute
	longestInUse = 20 * time.Second
)

// Observe shows on the trigger's object what the bus knows of the host.
func (p *Projector) Observe(ctx context.Context, t bus.Trigger) (time.Duration, error) {
	o := p.kube.Hosts.Get(t.UID)
	if t.Fact == event.FirmwareSeen {
		p.firmware.Heard(t.UID)
	}
	switch kind, phase, _ := strings.Cut(t.Fact, "."); {
	case t.Wake:
	case phase == string(event.Accepted), phase == string(event.Resumed):
		return 0, nil // nothing of it shows
	case o == nil:
		return p.unseen(ctx, t)
	case event.UnderWay(t.Fact) && event.Kind(kind) != event.Service && o.Status.Provisioning.State == t.Stage:
		// What is being done to the host is said in its conditions, and can
		// wait until there is more to say; so the host need not even be read.
		if wait := p.wait(t.Stage, t.At); wait > 0 {
			return wait, nil
		}
	}
	if o == nil {
		return p.unseen(ctx, t)
	}
	// What a host was restored from, and what was done to it while it was
	// paused, may be in its annotations still.
	whole := t.Wake || t.Fact == event.Restored || t.Fact == event.Unpaused
	return p.show(ctx, t.UID, lookFor{rev: t.Rev, whole: whole})
}

// wait is how long a small change in a state still has to wait for company, since it
// was made. While the API is busy it is asked only once more: each time costs a read.
func (p *Projector) wait(state v1alpha1.ProvisioningState, since time.Time) time.Duration {
	least, most := onTheWay*p.cfg.StatusDelay, longest
	if state == v1alpha1.StateUnmanaged || lifecycle.AtRest(state) {
		least = p.cfg.StatusDelay
	}
	if lifecycle.Used(state) {
		most = longestInUse
	}
	waited := p.now().Sub(since)
	if waited >= least && waited < most && p.kube.Busy() {
		return most - waited
	}
	return least - waited
}

// unseen deals with a trigger whose object was not seen: it is gone, or the
// watch is late, or its namespace is none of ours.
func (p *Projector) unseen(ctx context.Context, t bus.Trigger) (time.Duration, error) {
	if t.Fact == event.Forgotten {
		p.screens.drop(t.UID)
		return 0, nil
	}
	h, err := p.bus.Load(ctx, t.UID)
	if err != nil || !h.Exists() || forgotten(h) || !p.kube.Config().Watches(h.Intent.Namespace) {
		return 0, err
	}
	_, err = p.kube.Read(ctx, refOf(h))
	switch {
	case errors.Is(err, kube.ErrGone):
		p.screens.drop(t.UID)
		return 0, nil
	case err != nil:
		return 0, err
	default:
		return againSeen, nil
	}
}

func refOf(h lifecycle.Host) kube.Ref {
	return kube.Ref{Namespace: h.Intent.Namespace, Name: h.Intent.Name, UID: h.UID}
}

// lookFor is what a look at a host is for.
type lookFor struct {
	// rev is the revision that is to be shown at least.
	rev uint64
	// whole: look at everything, also at what should be done already.
	whole bool
	// once: nobody comes again when asked to, so nothing is left for later.
	once bool
}

// show brings an object up to what the bus knows. again > 0 asks to be called
// once more after that time.
func (p *Projector) show(ctx context.Context, uid string, want lookFor) (again time.Duration, err error) {
	s := p.screens.lock(uid)
	defer s.mu.Unlock()
	o := p.kube.Hosts.Get(uid) // as it is once it is our turn
	if o == nil || frozen(o) {
		return 0, nil // it is gone, or is shown once it is resumed
	}
	if !want.whole && s.shows(o, want.rev) {
		return 0, nil
	}
	h, err := p.bus.Load(ctx, uid)
	if err != nil || !h.Exists() || standingOf(o, h, p.now()) != follows {
		return 0, err // a host that does not follow is put right by whoever leads
	}
	s.in(h.Epoch, h.Rev)
	frames, before, err := p.frames(ctx, o, h, s)
	if err != nil {
		return 0, err
	}
	v := &visit{p: p, o: o, h: h, s: s, before: before, whole: want.whole, once: want.once}
	again, err = v.pass(ctx, frames)
	switch {
	case errors.Is(err, kube.ErrConflict):
		return againSoon, nil
	case errors.Is(err, kube.ErrUnseen):
		return againSeen, nil
	case errors.Is(err, kube.ErrGone):
		return 0, nil
	case err == nil && again == 0:
		s.done = h.Rev
		if settled(h) {
			s.last = lifecycle.Host{}
		}
	}
	return again, err
}

// frames are the revisions of the host that the object does not show yet, and
// the one before the first whose news are to be told, if it is known.
func (p *Projector) frames(ctx context.Context, o *v1alpha1.BareMetalHost, h lifecycle.Host, s *screen) (frames []lifecycle.Host, before lifecycle.Host, err error) {
	since := shownSince(o, h)
	p.metrics.lag.Observe(float64(h.Rev - since))
	since = max(since, s.done, s.painted)
	s.told = max(s.told, since) // by whoever showed it
	if s.last.Rev == s.told {
		before = s.last
	}
	from := since
	if s.told == since && since > 0 && before.Rev != since {
		from-- // the one before is needed too
	}
	switch h.Rev {
	case since:
		return nil, before, nil
	case from + 1:
		return []lifecycle.Host{h}, before, nil
	}
	frames, err = p.bus.Snapshots(ctx, h, from)
	if err != nil {
		return nil, before, fmt.Errorf("read what host %s went through: %w", h.Name(), err)
	}
	if from < since && len(frames) > 0 && frames[0].Rev == since {
		before, frames = frames[0], frames[1:]
	}
	return fit(frames, since), before, nil
}
