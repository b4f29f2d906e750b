package projector

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/pkg/kube"
)

// degradedCondition is True on a host of which a message was set aside, since a
// service could not handle it.
const degradedCondition = "Degraded"

// Degrade shows on a host that a message of it was set aside and why; an empty
// text takes that back. It may be repeated.
func (p *Projector) Degrade(ctx context.Context, uid, text string) error {
	s := p.screens.lock(uid) // so that no status is written meanwhile
	defer s.mu.Unlock()
	o := p.kube.Hosts.Get(uid)
	if o == nil || frozen(o) {
		return nil
	}
	status := *o.Status.DeepCopy()
	changed := false
	if text == "" {
		changed = meta.RemoveStatusCondition(&status.Conditions, degradedCondition)
	} else {
		changed = meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: degradedCondition, Status: metav1.ConditionTrue, Reason: "DeadLetter", Message: text,
			ObservedGeneration: o.Generation, LastTransitionTime: metav1.NewTime(p.now().UTC()),
		})
	}
	if !changed {
		return nil
	}
	if text != "" {
		p.kube.Announcer.Tell(o, kube.News{ID: "degraded/" + kube.Digest(text), Reason: "DeadLetter", Message: text, Warning: true, At: p.now()})
	}
	_, err := p.kube.WriteStatus(ctx, o, status)
	return err
}
