package projector

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// takeOver begins the life of a host on the bus: from the beginning, or from
// the status that its object has or carries.
func (p *Projector) takeOver(ctx context.Context, o *v1alpha1.BareMetalHost, h lifecycle.Host, g *glance) error {
	o, ok, err := p.revive(ctx, o)
	if err != nil || !ok {
		return err
	}
	base, err := p.remembered(ctx, o)
	if err != nil {
		return err
	}
	if base == nil {
		o, s, err := p.surroundings(ctx, o, h, g)
		if err != nil {
			return err
		}
		return p.record(ctx, h, intentOf(o, s), "")
	}
	if shown, ok := shownBy(o); ok {
		base.Lost = shown.Rev
	} else if copied, ok := annotated(o); ok {
		base.OldUID = copied.UID
	}
	p.metrics.restored.WithLabelValues("unknown").Inc()
	return p.restore(ctx, o, h, g, base, fmt.Sprintf("restored from a status that says %q", o.Status.Provisioning.State))
}

// restore records a host with the life that its status remembers.
func (p *Projector) restore(ctx context.Context, o *v1alpha1.BareMetalHost, h lifecycle.Host, g *glance, base *event.Base, reason string) error {
	known := h
	known.Inspection = *base.Inspection // so that its hardware is not taken for newly supplied
	known.Provisioning.Image = base.Provisioning.Image
	o, s, err := p.surroundings(ctx, o, known, g)
	if err != nil {
		return err
	}
	s.before = known
	next := intentOf(o, s)
	next.Base = base
	p.log.Info("restored a host from its object", keyHost, h.UID, keyCause, reason, keyLost, base.Lost)
	return p.append(ctx, h, lifecycle.Wish{Fact: event.Restored, Intent: next, Reason: reason})
}

// remembered is what the object's status remembers, with its hardware in the
// data stream and in HardwareData; nil if its life has not begun.
func (p *Projector) remembered(ctx context.Context, o *v1alpha1.BareMetalHost) (*event.Base, error) {
	hw := o.Status.HardwareDetails
	if hw == nil {
		return p.withWishes(o, baseOf(o, ""))
	}
	digest, err := p.bus.PutData(ctx, string(o.UID), event.DataHardware, hw)
	if err != nil {
		return nil, err
	}
	if o.DeletionTimestamp == nil && p.kube.HardwareVersion(o.Namespace, o.Name) == "" {
		if err := p.kube.PutHardware(ctx, o, hw); err != nil && !errors.Is(err, kube.ErrTerminating) {
			return nil, err
		}
	}
	return p.withWishes(o, baseOf(o, digest))
}

// withWishes adds to a base what the objects beside the host remember.
func (p *Projector) withWishes(o *v1alpha1.BareMetalHost, b *event.Base) (*event.Base, error) {
	if b != nil && !p.wishes.Remember(o, b) {
		return nil, fmt.Errorf("restore host %s/%s: the DataImages and BMCEventSubscriptions have not been listed yet; are the CRDs of this version installed?", o.Namespace, o.Name)
	}
	return b, nil
}

// revive gives an object without a status the one that it carries in its
// annotation. Nothing else is done for the host before that is stored; and
// nothing at all, ok being false, while the annotation cannot be read.
func (p *Projector) revive(ctx context.Context, o *v1alpha1.BareMetalHost) (now *v1alpha1.BareMetalHost, ok bool, err error) {
	if !kube.Unborn(o) {
		return o, true, nil
	}
	text := o.Annotations[v1alpha1.StatusAnnotation]
	if text == "" {
		o, err = p.unsay(ctx, o)
		return o, err == nil, err
	}
	status, err := parseStatus(text)
	if err != nil {
		return o, false, p.complain(ctx, o, err)
	}
	if status.HardwareDetails, err = p.keptHardware(ctx, o, status.HardwareDetails); err != nil {
		return o, false, err
	}
	if status.LastUpdated == nil {
		at := metav1.NewTime(p.now().UTC())
		status.LastUpdated = &at
	}
	w, err := p.kube.WriteStatus(ctx, o, status)
	if refused := kube.Refused(err); refused != nil {
		return o, false, p.complain(ctx, o, refused)
	}
	return w.Host, err == nil, err
}

// keptHardware is what HardwareData says, which goes before what a status
// carries: those who move a host leave it out there.
func (p *Projector) keptHardware(ctx context.Context, o *v1alpha1.BareMetalHost, carried *v1alpha1.HardwareDetails) (*v1alpha1.HardwareDetails, error) {
	if p.kube.HardwareVersion(o.Namespace, o.Name) == "" {
		return carried, nil
	}
	kept, err := p.kube.ReadHardware(ctx, o.Namespace, o.Name)
	if kept == nil {
		kept = carried
	}
	return kept, err
}

// complain shows that the status annotation cannot be read.
func (p *Projector) complain(ctx context.Context, o *v1alpha1.BareMetalHost, why error) error {
	status := misread(o, why)
	if apiequality.Semantic.DeepEqual(status, o.Status) {
		return nil
	}
	p.kube.Announcer.Tell(o, kube.News{
		ID: "misread/" + kube.Digest(status.ErrorMessage), Reason: "InvalidAnnotationValue", Message: status.ErrorMessage, Warning: true, At: p.now(),
	})
	_, err := p.kube.WriteStatus(ctx, o, status)
	return err
}

// unsay takes such a complaint back once the annotation is gone.
func (p *Projector) unsay(ctx context.Context, o *v1alpha1.BareMetalHost) (*v1alpha1.BareMetalHost, error) {
	if o.Status.ErrorMessage == "" {
		return o, nil
	}
	w, err := p.kube.WriteStatus(ctx, o, withoutMisread(o.Status))
	return w.Host, err
}

// restoreTail restores a host of which the bus has lost the newest events.
func (p *Projector) restoreTail(ctx context.Context, o *v1alpha1.BareMetalHost, h lifecycle.Host, g *glance) error {
	base, err := p.remembered(ctx, o)
	if err != nil || base == nil {
		return err
	}
	shown, _ := shownBy(o)
	base.Rev, base.Lost = h.Rev, shown.Rev-h.Rev
	p.metrics.restored.WithLabelValues("lost events").Inc()
	p.log.Error("the bus has lost events of a host", keyHost, h.Name(), keyUID, h.UID, keyLost, base.Lost)
	return p.restore(ctx, o, h, g, base, fmt.Sprintf("%d events that the object had seen are not on the bus", base.Lost))
}

// conflictCondition is True on a host of which object and bus tell different
// lives.
const conflictCondition = "Conflict"

// hold pauses a host of which nobody knows which life is the right one, and
// says so.
func (p *Projector) hold(ctx context.Context, o *v1alpha1.BareMetalHost, h lifecycle.Host) error {
	if !h.Intent.Paused {
		next := h.Intent
		next.Paused = true
		if err := p.append(ctx, h, lifecycle.Wish{Fact: event.Paused, Intent: sealed(next), Reason: "object and bus tell different lives of the host"}); err != nil {
			return err
		}
		p.metrics.conflicts.Inc()
	}
	text := conflictText(o, h)
	status := *o.Status.DeepCopy()
	if !meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: conflictCondition, Status: metav1.ConditionTrue, Reason: "DifferentLogs", Message: text, ObservedGeneration: o.Generation,
		LastTransitionTime: metav1.NewTime(p.now().UTC()),
	}) {
		return nil
	}
	p.log.Error("object and bus tell different lives of a host, which is paused", keyHost, h.Name(), keyUID, h.UID)
	p.kube.Announcer.Tell(o, kube.News{ID: "conflict/" + h.Epoch, Reason: "Conflict", Message: text, Warning: true, At: p.now()})
	_, err := p.kube.WriteStatus(ctx, o, status)
	return err
}
