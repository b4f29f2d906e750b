package projector

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube/firmware"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// surroundings are what is known of a host beside its object.
type surroundings struct {
	// before is the host as the bus has it.
	before lifecycle.Host
	// secret is the version of the Secret with its credentials, "" if there is none.
	secret string
	// supplied are hardware details that somebody gave and that are not in effect.
	supplied supply
	// ramdisk is what the host is to boot, nil if it has no image of its own.
	ramdisk *event.RamdiskWish
	// firmware is what is to be changed of the firmware, if that is known.
	firmware      *event.FirmwareWish
	firmwareKnown bool
	// ask puts what is asked beside the object into an intent; nil for nothing.
	ask func(o *v1alpha1.BareMetalHost, before event.Intent, next *event.Intent)
	now time.Time
}

// supply names hardware details in the data stream.
type supply struct{ digest, source string }

// frozen reports whether nothing may be read from the host or done to it: it
// is paused, or it lives in another cluster from now on.
func frozen(o *v1alpha1.BareMetalHost) bool {
	_, paused := o.Annotations[v1alpha1.PausedAnnotation]
	return paused || moving(o)
}

func moving(o *v1alpha1.BareMetalHost) bool {
	_, moving := o.Annotations[v1alpha1.DeleteForMoveAnnotation]
	return moving
}

// intentOf is what a host's object asks. While the object is frozen that stays
// what it was before.
func intentOf(o *v1alpha1.BareMetalHost, s surroundings) event.Intent {
	before := s.before.Intent
	if frozen(o) {
		before.Paused = true
		return sealed(before)
	}
	i := event.Intent{
		Namespace: o.Namespace, Name: o.Name, UID: string(o.UID), Generation: o.Generation,
		CreatedAt: o.CreationTimestamp.UTC(), Labels: o.Labels, Backend: o.Annotations[v1alpha1.BackendAnnotation],
		InspectionDisabled: o.InspectionDisabled(), Retry: o.Annotations[v1alpha1.RetryAnnotation],
		Hardware: s.supplied.digest, HardwareSource: s.supplied.source,
		Detached: detachedOf(o), Reboots: rebootsOf(o, s.before), InspectRequest: inspectRequestOf(o, s.before),
		Credentials: credentialsOf(o, s), Ramdisk: s.ramdisk, Base: remaining(s.before), Firmware: before.Firmware,
	}
	if s.firmwareKnown {
		i.Firmware = firmware.Named(s.firmware, before.Firmware, requestID(s.before))
	}
	_, i.ForceDelete = o.Annotations[v1alpha1.ForceDeleteAnnotation]
	if o.DeletionTimestamp != nil && s.before.Exists() { // a host is known before it leaves
		i.DeletedAt = o.DeletionTimestamp.UTC()
	}
	if s.ask != nil {
		s.ask(o, before, &i)
	}
	i.Spec, i.Invalid = specOf(o, s.before), faultOf(o, s.before)
	if i.Invalid != nil {
		i.Invalid.At = s.now.UTC().Truncate(time.Second)
		if before.Invalid != nil && before.Invalid.Message == i.Invalid.Message {
			i.Invalid.At = before.Invalid.At
		}
	}
	return sealed(i)
}

// sealed is the intent with the hash of its wishes.
func sealed(i event.Intent) event.Intent {
	wishes := i
	wishes.Hash, wishes.Generation, wishes.Base = "", 0, nil
	text, err := json.Marshal(wishes)
	if err != nil {
		panic(fmt.Sprintf("encode an intent: %v", err)) // our own type
	}
	sum := sha256.Sum256(text)
	i.Hash = hex.EncodeToString(sum[:12])
	return i
}

// specOf is the specification as far as it is followed. What names a Secret of
// another namespace is left out: whoever may write a host could else have any
// Secret brought to a machine of theirs. Logins in URLs are left out too: the bus
// is no place for them.
func specOf(o *v1alpha1.BareMetalHost, before lifecycle.Host) v1alpha1.BareMetalHostSpec {
	spec := *o.Spec.DeepCopy()
	spec.BMC.Address = v1alpha1.WithoutLogin(spec.BMC.Address)
	if spec.Image != nil {
		*spec.Image = spec.Image.WithoutLogin()
	}
	if spec.Architecture == before.Inspection.Arch && before.Intent.Spec.Architecture == "" {
		spec.Architecture = "" // we have filled it in ourselves
	}
	for _, ref := range []**corev1.SecretReference{&spec.UserData, &spec.NetworkData, &spec.MetaData} {
		if *ref != nil && (*ref).Namespace != "" && (*ref).Namespace != o.Namespace {
			*ref = nil
		}
	}
	return spec
}

func detachedOf(o *v1alpha1.BareMetalHost) *event.DetachRequest {
	value, ok := o.Annotations[v1alpha1.DetachedAnnotation]
	if !ok {
		return nil
	}
	args := v1alpha1.ParseDetachedArguments(value)
	return &event.DetachRequest{Delay: args.DeleteAction == v1alpha1.DetachedDeleteActionDelay, Force: args.Force}
}

// rebootsOf are the reboot annotations. One that was there before is the same
// request still, unless it was taken away as served and has been set again.
func rebootsOf(o *v1alpha1.BareMetalHost, before lifecycle.Host) []event.RebootRequest {
	var reboots []event.RebootRequest
	for _, key := range slices.Sorted(maps.Keys(o.Annotations)) {
		if !v1alpha1.IsRebootAnnotation(key) {
			continue
		}
		args, _ := v1alpha1.ParseRebootArguments(o.Annotations[key]) // what is no JSON asks for a soft reboot
		r := event.RebootRequest{
			Key: strings.TrimPrefix(strings.TrimPrefix(key, v1alpha1.RebootAnnotationPrefix), "/"), Mode: args.Mode, Force: args.Force,
		}
		r.ID = requestID(before)
		if r.Key != "" {
			r.ID += "/" + r.Key
		}
		for _, old := range before.Intent.Reboots {
			same := old.Key == r.Key && old.Mode == r.Mode && old.Force == r.Force
			if same && (r.Key != "" || o.Annotations[v1alpha1.ServedRebootAnnotation] != old.ID) {
				r.ID = old.ID
			}
		}
		reboots = append(reboots, r)
	}
	return reboots
}

func inspectRequestOf(o *v1alpha1.BareMetalHost, before lifecycle.Host) string {
	value, ok := o.Annotations[v1alpha1.InspectAnnotationPrefix]
	old := before.Intent.InspectRequest
	switch {
	case !ok || value == v1alpha1.InspectAnnotationValueDisabled:
		return ""
	case old != "" && o.Annotations[v1alpha1.ServedInspectAnnotation] != old:
		return old
	default:
		return requestID(before)
	}
}

// requestID is an identity that no request of the host had before: it names
// the revision that records it.
func requestID(before lifecycle.Host) string { return "r" + strconv.FormatUint(before.Rev+1, 10) }

// revOfRequest is the revision that recorded a request, 0 if it is not known.
func revOfRequest(id string) uint64 {
	digits, _, _ := strings.Cut(strings.TrimPrefix(id, "r"), "/")
	rev, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0
	}
	return rev
}

func credentialsOf(o *v1alpha1.BareMetalHost, s surroundings) event.SecretRef {
	name := o.Spec.BMC.CredentialsName
	if name == "" {
		return event.SecretRef{}
	}
	ref := event.SecretRef{Namespace: o.Namespace, Name: name, Version: s.secret}
	if ref.Version != "" {
		return ref
	}
	ref.MissingSince = s.now.UTC().Truncate(time.Second)
	if old := s.before.Intent.Credentials; old.Name == name && !old.MissingSince.IsZero() {
		ref.MissingSince = old.MissingSince
	}
	return ref
}

// remaining is what is still needed of the base that a host was restored from:
// the sections that have no newer event of their own.
func remaining(h lifecycle.Host) *event.Base {
	if h.Intent.Base == nil {
		return nil
	}
	base := *h.Intent.Base
	superseded := func(s event.Section) bool { return h.Newest(s).Rev > base.Rev }
	if superseded(event.SectionRegistration) {
		base.Registration = nil
	}
	if superseded(event.SectionInspection) {
		base.Inspection = nil
	}
	if superseded(event.SectionProvisioning) {
		base.Provisioning = nil
	}
	if superseded(event.SectionPower) {
		base.Power = nil
	}
	if !slices.ContainsFunc(event.Sections(), base.Has) {
		return nil
	}
	return &base
}

// factOf names what has changed in what a host is asked. Of several changes it
// is the weightiest.
func factOf(before lifecycle.Host, next event.Intent) string {
	was := before.Intent
	switch {
	case !before.Exists():
		return event.Created
	case next.Paused && !was.Paused:
		return event.Paused
	case was.Paused && !next.Paused:
		return event.Unpaused
	case was.DeletedAt.IsZero() && !next.DeletedAt.IsZero():
		return event.Deleting
	case was.Detached == nil && next.Detached != nil:
		return event.DetachAsked
	case was.Detached != nil && next.Detached == nil:
		return event.AttachAsked
	case newReboot(was, next):
		return event.RebootRequested
	case next.InspectRequest != "" && next.InspectRequest != was.InspectRequest:
		return event.InspectRequested
	case next.Retry != "" && next.Retry != was.Retry:
		return event.RetryRequested
	default:
		return event.Changed
	}
}

func newReboot(was, next event.Intent) bool {
	return slices.ContainsFunc(next.Reboots, func(r event.RebootRequest) bool {
		return !slices.ContainsFunc(was.Reboots, func(old event.RebootRequest) bool { return old.ID == r.ID })
	})
}
