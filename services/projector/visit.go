package projector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// visit is one time of showing a host on its object.
type visit struct {
	p *Projector
	o *v1alpha1.BareMetalHost // as it was written last
	h lifecycle.Host          // as it is now
	s *screen
	// before is the host at the revision before the frames.
	before      lifecycle.Host
	whole, once bool
	// owes: metadata are still to be written that wait for company.
	owes bool
}

// pass shows the frames one after the other, tells their news, and does what
// else is due for the host as it is now. Metadata are written before the status
// that names the same revision: so whatever a crash leaves undone is done again.
func (v *visit) pass(ctx context.Context, frames []lifecycle.Host) (again time.Duration, err error) {
	list := pictures(v.shown(), frames)
	if len(list) == 0 && (v.whole || v.dated() || settled(v.h)) && !v.finished() {
		// Mostly there is more to come: a generation that has just been heard of
		// leads to another state, and of a host at rest the power is read.
		list = []picture{{host: v.h, minor: true, since: at(v.h)}}
	}
	for i, pic := range list {
		if again = v.tooSoon(pic); again > 0 {
			if pic.minor { // it changes what is said of the host, and not what is
				v.tell(frames, v.h.Rev)
				err = v.finish(ctx)
			}
			return again, err
		}
		err := v.paint(ctx, pic.host, i == len(list)-1)
		if !refused(err) { // one that was not answered may be there: then nobody tells of it later
			frames = v.tell(frames, pic.host.Rev)
		}
		if err != nil {
			return 0, err
		}
	}
	v.tell(frames, v.h.Rev)
	if err := v.finish(ctx); err != nil {
		return 0, err
	}
	if v.owes {
		return v.p.cfg.StatusDelay, nil
	}
	return 0, nil
}

// refused reports whether a write surely was not made: whoever made another one before
// it tells the news.
func refused(err error) bool { return errors.Is(err, kube.ErrConflict) || errors.Is(err, kube.ErrGone) }

// shown is what the object shows.
func (v *visit) shown() view {
	if v.s.digest != "" && v.o.Status.HardwareDetails != nil {
		return view{v.o.Status, v.s.digest}
	}
	return viewOn(v.o)
}

// dated reports whether the conditions are about an older generation, though
// the object asks what the host's intent says.
func (v *visit) dated() bool {
	for _, c := range v.o.Status.Conditions {
		if c.Type == projectedCondition {
			return c.ObservedGeneration < v.generation()
		}
	}
	return false
}

// finished reports whether the object shows the host as it is now, with all
// that belongs to it.
func (v *visit) finished() bool {
	if weigh(v.shown(), viewOf(v.h)) != none || v.dated() || shownSince(v.o, v.h) == 0 {
		return false
	}
	return v.edit(v.h, v.o.Status, true).Empty()
}

// tooSoon is how long a picture has to wait: for company, or since the state
// before it has not been visible for long enough.
func (v *visit) tooSoon(pic picture) time.Duration {
	now := v.p.now()
	if pic.minor {
		return v.p.wait(lifecycle.Stage(pic.host), pic.since)
	}
	moves := v.s.state != lifecycle.Stage(pic.host) && v.s.state == v.o.Status.Provisioning.State
	if least := v.p.cfg.LeastVisible; least > 0 && moves {
		return least - now.Sub(v.s.stateAt)
	}
	return 0
}

// paint shows one revision of the host.
func (v *visit) paint(ctx context.Context, h lifecycle.Host, newest bool) error {
	hw, err := v.hardware(ctx, h)
	if err != nil {
		return err
	}
	d := drawing{hardware: hw, generation: v.generation(), now: v.p.now()}
	e := kube.Edit{}
	if v.owes = newest && v.arrives(h); newest && !v.owes {
		if e = v.edit(h, draw(v.o, h, d), true); e.Architecture != "" && d.generation == v.o.Generation {
			d.generation++ // the edit makes another one
			e = v.edit(h, draw(v.o, h, d), true)
		}
	}
	status := draw(v.o, h, d)
	if !e.Empty() {
		o, err := v.p.kube.EditHost(ctx, v.o, e)
		if err != nil {
			return err
		}
		v.o = o
	}
	w, err := v.p.kube.WriteStatus(ctx, v.o, status)
	if err != nil {
		return err
	}
	v.written(h, w)
	return nil
}

// arrives reports whether the host is shown as available from now on. Of such a host
// more is known at once, and it runs nothing that a move without its latest status
// could endanger; so its metadata are written a little later.
func (v *visit) arrives(h lifecycle.Host) bool {
	now := lifecycle.Stage(h)
	return !v.once && now == v1alpha1.StateAvailable && v.o.Status.Provisioning.State != now
}

func (v *visit) written(h lifecycle.Host, w kube.Written) {
	if state := lifecycle.Stage(h); state != v.s.state {
		v.s.state, v.s.stateAt = state, v.p.now()
		v.p.metrics.delay.Observe(v.p.now().Sub(at(h)).Seconds())
	}
	v.s.digest, v.s.painted = h.Inspection.Digest, h.Rev
	v.o = w.Host
	for _, field := range w.Dropped {
		v.p.log.Warn("the API does not store a field: its CRD is older than this program", keyField, field)
		v.p.kube.Announcer.Tell(v.o, kube.News{
			ID: "dropped/" + field, Reason: "FieldNotStored", Warning: true, At: v.p.now(),
			Message: fmt.Sprintf("The CRD is older than the controller: field %s is not stored. Apply the CRDs of this version", field),
		})
	}
}

// hardware is the hardware of the host, which HardwareData shows from now on too.
func (v *visit) hardware(ctx context.Context, h lifecycle.Host) (*v1alpha1.HardwareDetails, error) {
	digest := h.Inspection.Digest
	if digest == "" {
		return nil, nil //nolint:nilnil // nothing is known of the hardware
	}
	if digest == v.s.digest && v.o.Status.HardwareDetails != nil {
		return v.o.Status.HardwareDetails, nil
	}
	hw := &v1alpha1.HardwareDetails{}
	if err := v.p.bus.GetData(ctx, h.UID, event.DataHardware, digest, hw); err != nil {
		return nil, err
	}
	if v.o.DeletionTimestamp != nil || (v.o.Status.HardwareDetails != nil && digestOf(v.o.Status.HardwareDetails) == digest) {
		return hw, nil // it was shown before this replica came
	}
	err := v.p.kube.PutHardware(ctx, v.o, hw)
	if errors.Is(err, kube.ErrTerminating) {
		err = nil // the namespace goes, and the host with it
	}
	return hw, err
}

// generation is the object's generation if its specification is what the
// host's intent says, so that nothing newer is asked; else that of the intent.
func (v *visit) generation() int64 {
	if encode(specOf(v.o, v.h)) == encode(v.h.Intent.Spec) {
		return v.o.Generation
	}
	return v.h.Intent.Generation
}

// edit is what is to be changed in the object's metadata, given the host and
// the status that is about to be shown.
func (v *visit) edit(h lifecycle.Host, status v1alpha1.BareMetalHostStatus, copyStatus bool) kube.Edit {
	e := served(v.o, h)
	if text, there := v.o.Annotations[v1alpha1.HardwareDetailsAnnotation]; there && v.consumed(h, text) {
		e.Drop = append(e.Drop, v1alpha1.HardwareDetailsAnnotation)
	}
	_, annotated := v.o.Annotations[v1alpha1.StatusAnnotation]
	switch {
	case settled(h) && copyStatus:
		v.copyInto(&e, h, status)
	case annotated && !settled(h) && !copied(v.o, h):
		e.Drop = append(e.Drop, v1alpha1.StatusAnnotation) // another's, and the host has been restored from it
	}
	return e
}

// copyInto has the object carry a copy of its status.
func (v *visit) copyInto(e *kube.Edit, h lifecycle.Host, status v1alpha1.BareMetalHostStatus) {
	if text := statusText(status); kube.Digest(text) != v.o.Annotations[v1alpha1.StatusAnnotation] {
		maps.Copy(e.Set, map[string]string{v1alpha1.StatusAnnotation: text, v1alpha1.RevisionAnnotation: encode(revisionOf(h))})
	}
	if v.o.Spec.Architecture == "" {
		e.Architecture = h.Inspection.Arch
	}
}

// consumed reports whether supplied details are in effect, or come too late.
func (v *visit) consumed(h lifecycle.Host, text string) bool {
	hw, err := parseSupplied(text)
	if err != nil {
		return false
	}
	if digestOf(hw) == h.Inspection.Digest {
		return true
	}
	late := h.Inspection.Digest != "" && !h.Intent.InspectionDisabled
	if late {
		v.p.kube.Announcer.Tell(v.o, kube.News{
			ID: "ignored/" + kube.Digest(text), Reason: "RemoveAnnotation", At: v.p.now(),
			Message: "HardwareDetails annotation ignored, status already set and inspection is not disabled",
		})
	}
	return late
}

// finish does what is due beside the status, and lets go of a host that leaves.
func (v *visit) finish(ctx context.Context) error {
	if e := v.edit(v.h, v.o.Status, false); !e.Empty() {
		o, err := v.p.kube.EditHost(ctx, v.o, e)
		if err != nil {
			return err
		}
		v.o = o
	}
	if err := v.p.wishes.Show(ctx, v.o, v.h); err != nil {
		return err
	}
	if v.o.DeletionTimestamp != nil && over(v.h) && slices.Contains(v.o.Finalizers, v1alpha1.BareMetalHostFinalizer) {
		return v.p.release(ctx, v.o)
	}
	return nil
}

// tell announces the facts of the frames up to a revision, and returns the rest.
func (v *visit) tell(frames []lifecycle.Host, upTo uint64) []lifecycle.Host {
	i := slices.IndexFunc(frames, func(h lifecycle.Host) bool { return h.Rev > upTo })
	if i < 0 {
		i = len(frames)
	}
	for _, h := range frames[:i] {
		if h.Rev > v.s.told && h.Rev == v.before.Rev+1 {
			v.announce(v.before, h)
			v.s.told = h.Rev
		}
		v.before, v.s.last = h, h
	}
	return frames[i:]
}

func (v *visit) announce(before, after lifecycle.Host) {
	section, meta := after.NewestFact()
	news := lifecycle.Announce(before, after, section, meta.Fact)
	for _, more := range []*lifecycle.Announcement{lifecycle.FaultNews(before, after), lifecycle.FirmwareNews(before, after)} {
		if more != nil {
			news = append(news, *more)
		}
	}
	for _, n := range news {
		v.p.kube.Announcer.Tell(v.o, kube.News{
			ID: revisionOf(after).String() + "/" + n.Reason, Reason: n.Reason, Message: n.Message, Warning: n.Warning, At: meta.At,
		})
	}
}
