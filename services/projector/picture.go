package projector

import (
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// pictures says which of a host's revisions are to be shown one after the
// other, given what is shown now; the last of them may wait for
// company until some time after it happened. It is empty if nothing that shows
// has changed.
//
// Every state that the host went through gets a picture, and so does trouble
// that began, a word of operationalStatus, and a power-off. What else changed
// within a state is in the next picture.
func pictures(shown view, frames []lifecycle.Host) []picture {
	var list []picture
	before := shown
	var minor *picture
	for _, h := range frames {
		now := viewOf(h)
		switch weigh(before, now) {
		case weighty:
			list, before, minor = append(list, picture{host: h}), now, nil
		case slight:
			if minor == nil {
				minor = &picture{since: at(h)}
			}
			minor.host, minor.minor = h, true
		case none:
			minor = nil // it was undone
		}
	}
	if minor != nil {
		list = append(list, *minor)
	}
	return list
}

// picture is a revision of a host that is to be shown.
type picture struct {
	host lifecycle.Host
	// minor: it may wait for company.
	minor bool
	// since is when it began to differ from the picture before.
	since time.Time
}

// view is what is seen of a host: its status, and which hardware is in it.
type view struct {
	v1alpha1.BareMetalHostStatus
	digest string
}

func viewOf(h lifecycle.Host) view { return view{lifecycle.Status(h), h.Inspection.Digest} }

// viewOn is what an object shows.
func viewOn(o *v1alpha1.BareMetalHost) view {
	v := view{BareMetalHostStatus: o.Status}
	if o.Status.HardwareDetails != nil {
		v.digest = digestOf(o.Status.HardwareDetails)
	}
	return v
}

func at(h lifecycle.Host) time.Time {
	_, m := h.NewestFact()
	return m.At
}

// weight is how much it matters that a change is seen, and seen soon.
type weight int

const (
	none    weight = iota // nothing shows
	slight                // it can wait for company
	weighty               // it is shown by itself
)

func weigh(from, to view) weight {
	switch {
	case from.Provisioning.State != to.Provisioning.State,
		from.OperationalStatus != to.OperationalStatus && !recovers(from, to),
		from.ErrorMessage != to.ErrorMessage && to.ErrorMessage != "",
		from.PoweredOn && !to.PoweredOn:
		return weighty
	case from.digest != to.digest, !apiequality.Semantic.DeepEqual(comparable(from.BareMetalHostStatus), comparable(to.BareMetalHostStatus)):
		return slight
	default:
		return none
	}
}

// recovers: trouble is over, or is being tried again, or was not known of
// before. A consumer that looks between two tries should not find a host that
// seems fit.
func recovers(from, to view) bool {
	well := to.OperationalStatus == v1alpha1.OperationalStatusOK || to.OperationalStatus == ""
	return well && from.OperationalStatus != v1alpha1.OperationalStatusDetached
}

// comparable is a status without what its writer adds.
func comparable(s v1alpha1.BareMetalHostStatus) v1alpha1.BareMetalHostStatus {
	s.LastUpdated, s.HardwareDetails = nil, nil
	own := make([]metav1.Condition, 0, len(s.Conditions))
	for _, c := range s.Conditions {
		if ownCondition(c.Type) {
			c.LastTransitionTime, c.ObservedGeneration = metav1.Time{}, 0
			own = append(own, c)
		}
	}
	slices.SortFunc(own, func(a, b metav1.Condition) int { return order(a.Type) - order(b.Type) })
	s.Conditions = own
	return s
}

// ownConditions are those that lifecycle.Status computes, in the order in
// which they are shown.
func ownConditions() []string {
	return []string{
		v1alpha1.ReadyCondition, v1alpha1.AvailableForProvisioningCondition, v1alpha1.HealthyCondition,
		v1alpha1.ManageableCondition, v1alpha1.ProgressingCondition, v1alpha1.ProvisionedCondition,
	}
}

func order(condition string) int { return slices.Index(ownConditions(), condition) }

func ownCondition(kind string) bool { return order(kind) >= 0 }

// fit leaves out of the frames what must not be shown again. An object that
// shows no revision of this log may have lost its status while its machine was
// in use: it is not led through the states of its youth.
func fit(frames []lifecycle.Host, since uint64) []lifecycle.Host {
	if since > 0 {
		return frames
	}
	for i := len(frames) - 1; i >= 0; i-- {
		if lifecycle.Used(lifecycle.Stage(frames[i])) {
			for i > 0 && lifecycle.Stage(frames[i-1]) == lifecycle.Stage(frames[i]) {
				i--
			}
			return frames[i:]
		}
	}
	return frames
}

// drawing is what is needed to make a status of a picture.
type drawing struct {
	hardware *v1alpha1.HardwareDetails
	// generation is the object's, if it asks what the host's intent says.
	generation int64
	now        time.Time
}

// draw is the status that shows a host on an object: what the lifecycle says,
// with hardware, times and revision. Conditions of others stay.
func draw(o *v1alpha1.BareMetalHost, h lifecycle.Host, d drawing) v1alpha1.BareMetalHostStatus {
	now := metav1.NewTime(d.now.UTC().Truncate(time.Second))
	s := lifecycle.Status(h)
	s.HardwareDetails, s.LastUpdated = d.hardware, &now
	shown := metav1.Condition{
		Type: projectedCondition, Status: metav1.ConditionTrue, Reason: projectedReason, Message: revisionOf(h).String(),
	}
	var conditions []metav1.Condition
	for _, c := range append(s.Conditions, shown) {
		c.ObservedGeneration = max(d.generation, h.Intent.Generation)
		conditions = append(conditions, dated(o, c, now))
	}
	last := len(conditions) - 1
	for _, c := range o.Status.Conditions {
		if !ownCondition(c.Type) && c.Type != projectedCondition && c.Type != conflictCondition {
			conditions = slices.Insert(conditions, last, c)
			last++
		}
	}
	s.Conditions = conditions
	return s
}

// dated is the condition with the time since which it has been so.
func dated(o *v1alpha1.BareMetalHost, c metav1.Condition, now metav1.Time) metav1.Condition {
	c.LastTransitionTime = now
	for _, old := range o.Status.Conditions {
		if old.Type == c.Type && old.Status == c.Status && !old.LastTransitionTime.IsZero() {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	return c
}
