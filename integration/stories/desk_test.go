package stories_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// desk is where an object becomes an intent in a story that is told by the table
// alone: what the projector does, without a cluster.
type desk struct {
	object *v1alpha1.BareMetalHost // nil until it is created, and once it is gone
	gone   bool
	secret string // version of the Secret, "" if there is none
	since  time.Time
	disc   *disc
	asked  []event.SubscriptionWish
	form   form
	// firm is what the form asks of a host's firmware; nil where that is known elsewhere.
	firm func(lifecycle.Host) *event.FirmwareWish
}

// wish is what is to be recorded now of what the object asks; ok is false if
// that is known already.
func (d *desk) wish(h lifecycle.Host) (w lifecycle.Wish, ok bool) {
	switch {
	case d.object == nil:
		return w, false
	case h.Registration.Removed && !h.Intent.DeletedAt.IsZero() && h.Newest(event.SectionIntent).Fact != event.Forgotten:
		d.object, d.gone = nil, true
		return lifecycle.Wish{Fact: event.Forgotten, Intent: h.Intent}, true
	}
	d.takeAway(h)
	i := d.intent(h)
	if h.Exists() && i.Hash == h.Intent.Hash {
		return w, false
	}
	return lifecycle.Wish{Fact: factOf(h, i), Intent: i}, true
}

// takeAway removes requests that were served.
func (d *desk) takeAway(h lifecycle.Host) {
	for _, r := range h.Intent.Reboots {
		if _, there := d.object.Annotations[v1alpha1.RebootAnnotationPrefix]; there && lifecycle.ServedReboot(h, r) {
			delete(d.object.Annotations, v1alpha1.RebootAnnotationPrefix)
		}
	}
	if r := h.Intent.InspectRequest; r != "" && r == h.Inspection.Request && d.object.Annotations[v1alpha1.InspectAnnotationPrefix] == "" {
		delete(d.object.Annotations, v1alpha1.InspectAnnotationPrefix)
	}
}

func (d *desk) intent(h lifecycle.Host) event.Intent {
	o := d.object
	has := func(key string) bool { _, there := o.Annotations[key]; return there }
	if has(v1alpha1.PausedAnnotation) {
		i := h.Intent
		i.Paused = true
		return hashed(i)
	}
	i := event.Intent{
		Namespace: o.Namespace, Name: o.Name, UID: string(o.UID), CreatedAt: o.CreationTimestamp.UTC(), Spec: *o.Spec.DeepCopy(),
		InspectionDisabled: o.InspectionDisabled(), Retry: o.Annotations[v1alpha1.RetryAnnotation], ForceDelete: has(v1alpha1.ForceDeleteAnnotation),
		Reboots: d.reboots(h), DataImage: d.disc.wanted(), Subscriptions: d.asked,
	}
	if d.firm != nil {
		i.Firmware = d.firm(h)
	}
	if name := o.Spec.BMC.CredentialsName; name != "" {
		i.Credentials = event.SecretRef{Namespace: o.Namespace, Name: name, Version: d.secret}
		if d.secret == "" {
			i.Credentials.MissingSince = d.since
		}
	}
	if v, there := o.Annotations[v1alpha1.DetachedAnnotation]; there {
		args := v1alpha1.ParseDetachedArguments(v)
		i.Detached = &event.DetachRequest{Delay: args.DeleteAction == v1alpha1.DetachedDeleteActionDelay, Force: args.Force}
	}
	if v, there := o.Annotations[v1alpha1.InspectAnnotationPrefix]; there && v == "" {
		if i.InspectRequest = h.Intent.InspectRequest; i.InspectRequest == "" {
			i.InspectRequest = fmt.Sprintf("r%d", h.Rev+1)
		}
	}
	if o.DeletionTimestamp != nil {
		i.DeletedAt = o.DeletionTimestamp.UTC()
	}
	return hashed(i)
}

// reboots are the reboot annotations; one that was there before is the same
// request still.
func (d *desk) reboots(h lifecycle.Host) []event.RebootRequest {
	var list []event.RebootRequest
	for key, value := range d.object.Annotations {
		if !v1alpha1.IsRebootAnnotation(key) {
			continue
		}
		args, _ := v1alpha1.ParseRebootArguments(value)
		r := event.RebootRequest{Key: strings.TrimPrefix(strings.TrimPrefix(key, v1alpha1.RebootAnnotationPrefix), "/"), Mode: args.Mode, Force: args.Force}
		r.ID = fmt.Sprintf("r%d/%s", h.Rev+1, r.Key)
		for _, old := range h.Intent.Reboots {
			if old.Key == r.Key && old.Mode == r.Mode && old.Force == r.Force {
				r.ID = old.ID
			}
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b event.RebootRequest) int { return strings.Compare(a.Key, b.Key) })
	return list
}

func hashed(i event.Intent) event.Intent {
	i.Hash = ""
	text, err := json.Marshal(i)
	if err != nil {
		panic(err) // our own type
	}
	i.Hash = string(text)
	return i
}

// factOf names what has changed.
func factOf(h lifecycle.Host, i event.Intent) string {
	was := h.Intent
	news := func(r event.RebootRequest) bool {
		return !slices.ContainsFunc(was.Reboots, func(old event.RebootRequest) bool { return old.ID == r.ID })
	}
	switch {
	case !h.Exists():
		return event.Created
	case i.Paused != was.Paused && i.Paused:
		return event.Paused
	case i.Paused != was.Paused:
		return event.Unpaused
	case was.DeletedAt.IsZero() && !i.DeletedAt.IsZero():
		return event.Deleting
	case (was.Detached == nil) != (i.Detached == nil) && i.Detached != nil:
		return event.DetachAsked
	case (was.Detached == nil) != (i.Detached == nil):
		return event.AttachAsked
	case slices.ContainsFunc(i.Reboots, news):
		return event.RebootRequested
	case i.InspectRequest != "" && i.InspectRequest != was.InspectRequest:
		return event.InspectRequested
	case i.Retry != was.Retry && i.Retry != "":
		return event.RetryRequested
	default:
		return event.Changed
	}
}
