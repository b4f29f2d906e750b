package firmware

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

const (
	// unheard is when a host is looked at again that the bus is about to hear of:
	// one that comes with a status may never change it.
	unheard = 2 * time.Second
	// unread is when a host is looked at again whose firmware nobody has read yet.
	unread = time.Minute
	// later is when one is looked at again whose firmware could not be read.
	later = 10 * time.Minute
	// quiet is when a host is looked at again whose objects can wait while the API is
	// busy, and longestWait how long they do at most.
	quiet       = 2 * time.Second
	longestWait = 3 * time.Minute
	// lookTime bounds all that is done in a look.
	lookTime = time.Minute
)

// looker looks at one host at a time.
type looker struct {
	*Controller
	objects
}

// sight is what a look finds.
type sight struct {
	host   *v1alpha1.BareMetalHost
	bus    lifecycle.Host
	read   event.FirmwareRead
	known  event.Firmware // zero if the host has no firmware that is known
	policy *v1alpha1.HostUpdatePolicy
}

// look brings the objects of the host of that name up to date, and only then tells
// what is to be changed.
func (l *looker) look(ctx context.Context, key types.NamespacedName) (again time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	o := l.cluster.Hosts.OfName(key)
	if o == nil || frozen(o) || o.DeletionTimestamp != nil || o.Status.OperationalStatus == v1alpha1.OperationalStatusDetached {
		return 0, nil
	}
	if l.canWait(key) {
		return quiet, nil
	}
	h, err := l.bus.Load(ctx, string(o.UID))
	switch {
	case err != nil || !h.Exists():
		return unheard, err
	case !h.Registration.Registered || lifecycle.Apart(h) || lifecycle.Leaving(h):
		return 0, nil
	}
	again, err = l.lookAt(ctx, key, o, h)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return time.Second, nil // what was seen is old
	}
	return again, err
}

// canWait reports whether the objects of the host of that name may be made later:
// nobody has asked for anything by making one, and the API is busy with more urgent
// writes.
func (l *looker) canWait(key types.NamespacedName) bool {
	_, settings := l.settings.Get(key)
	_, components := l.components.Get(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	began, waits := l.waiting[key]
	if settings || components || !l.cluster.Busy() || (waits && l.now().Sub(began) > longestWait) {
		delete(l.waiting, key)
		return false
	}
	if !waits {
		l.waiting[key] = l.now()
	}
	return true
}

// lookAt looks at a host that its backend holds.
func (l *looker) lookAt(ctx context.Context, key types.NamespacedName, o *v1alpha1.BareMetalHost, h lifecycle.Host) (again time.Duration, err error) {
	s := sight{host: o, bus: h, read: lifecycle.Firmware(h)}
	if s.read.At.IsZero() {
		return unread, l.unread(ctx, key, s)
	}
	if s.read.Digest != "" {
		if err := l.bus.GetData(ctx, h.UID, event.DataFirmware, s.read.Digest, &s.known); err != nil {
			return 0, err
		}
	}
	if made, err := l.make(ctx, key, s); err != nil || made {
		return unseen, err // they are looked at when they are seen, which is sooner
	}
	s.policy, _ = l.policies.Get(key)
	if s.read.Problem != "" {
		again = later
	}
	return again, l.show(ctx, key, s)
}

// show brings the objects up to date.
func (l *looker) show(ctx context.Context, key types.NamespacedName, s sight) error {
	settings, err := l.showSettings(ctx, key, s)
	if err != nil {
		return err
	}
	updates, installed, err := l.showComponents(ctx, key, s)
	if err != nil {
		return err
	}
	if s.policy != nil {
		if s.policy, err = owned(ctx, l.Controller, s.policy, s.host); err != nil {
			return err
		}
	}
	if s.bus.Provisioning.Firmware != nil {
		installed = nil // the bus knows
	}
	l.found(s.host, wish(settings, updates, s.policy, installed), s.bus.Intent.Firmware)
	return nil
}

// unread says on objects that users made that what they want is not known to be
// right or wrong yet.
func (l *looker) unread(ctx context.Context, key types.NamespacedName, s sight) error {
	s.read.Problem = "nobody has read it yet"
	settings, there := l.settings.Get(key)
	if err := l.settingsUnknown(ctx, settings, there, s); err != nil {
		return err
	}
	components, there := l.components.Get(key)
	return l.componentsUnknown(ctx, components, there, s)
}

// make makes the objects that a host with known firmware lacks.
func (l *looker) make(ctx context.Context, key types.NamespacedName, s sight) (made bool, err error) {
	if _, there := l.settings.Get(key); !there && s.read.Digest != "" {
		made = true
		err = l.create(ctx, &v1alpha1.HostFirmwareSettings{ObjectMeta: newMeta(s.host), Spec: v1alpha1.HostFirmwareSettingsSpec{Settings: v1alpha1.DesiredSettingsMap{}}})
	}
	if _, there := l.components.Get(key); !there && len(s.known.Components) > 0 && err == nil {
		made = true
		err = l.create(ctx, &v1alpha1.HostFirmwareComponents{ObjectMeta: newMeta(s.host), Spec: v1alpha1.HostFirmwareComponentsSpec{Updates: []v1alpha1.FirmwareUpdate{}}})
	}
	return made, err
}

// backend is the name of the host's backend, for people.
func (s sight) backend() string {
	if name := s.bus.Registration.Backend; name != "" {
		return name
	}
	return "of this host"
}

// when says when what differs is changed, by the policy's part about it.
func (s sight) when(part func(v1alpha1.HostUpdatePolicySpec) v1alpha1.UpdatePolicy) string {
	switch {
	case !lifecycle.Used(lifecycle.Stage(s.bus)):
		return ""
	case s.policy != nil && part(s.policy.Spec) == v1alpha1.HostUpdatePolicyOnReboot:
		return whenRebooted
	default:
		return whenPrepared
	}
}

// whenSettings is when for settings: never, if the machine does not heed them.
func (s sight) whenSettings(v verdict) string {
	asked, done := s.bus.Intent.Firmware, s.bus.Provisioning.Firmware
	if asked != nil && done != nil && asked.ID == done.Wish && Named(&event.FirmwareWish{Settings: v.settings}, asked, "").ID == done.Wish && done.Wish != "" {
		return notHeeded
	}
	return s.when(func(p v1alpha1.HostUpdatePolicySpec) v1alpha1.UpdatePolicy { return p.FirmwareSettings })
}

func (l *looker) subject(o client.Object, s sight) subject {
	return subject{generation: o.GetGeneration(), now: l.now(), remarks: remarksOn(s.known, s.read)}
}

// showSettings shows the settings of a host, and says which of them are to be changed.
func (l *looker) showSettings(ctx context.Context, key types.NamespacedName, s sight) (verdict, error) {
	o, there := l.settings.Get(key)
	if s.read.Digest == "" {
		return verdict{}, l.settingsUnknown(ctx, o, there, s)
	}
	if !there || moving(o) {
		return verdict{}, nil
	}
	o, err := owned(ctx, l.Controller, o, s.host)
	if err == nil {
		err = l.ensureSchema(ctx, s)
	}
	if err != nil {
		return verdict{}, err
	}
	v := judgeSettings(o.Spec.Settings, s.known)
	about := l.subject(o, s)
	about.when = s.whenSettings(v)
	now := settingsStatus(o, s.known, v, about)
	kept, short := o.Status, now
	kept.Settings, short.Settings = digested(kept.Settings), digested(now.Settings)
	if equal(kept, short) {
		return v, nil
	}
	next := o.DeepCopy()
	next.Status = now
	next.Status.LastUpdated = l.stamp()
	if err := l.writeStatus(ctx, next); err != nil {
		return verdict{}, err
	}
	l.settings.Wrote(shorten(next))
	l.tell(kube.Reporter{Kind: "HostFirmwareSettings", Component: "metal3-hostfirmwaresettings-controller", Controller: "metal3.io/hostfirmwaresettings-controller"}, o, onSettings(), v.faults)
	return v, nil
}

// settingsUnknown says on settings that are there why nothing comes of them. What
// they showed before stays.
func (l *looker) settingsUnknown(ctx context.Context, o *v1alpha1.HostFirmwareSettings, there bool, s sight) error {
	if !there || moving(o) {
		return nil
	}
	next := o.DeepCopy()
	next.Status.Conditions = onSettings().unjudged(o.Status.Conditions, s, l.subject(o, s))
	if equal(o.Status, next.Status) {
		return nil
	}
	fields := map[string]any{"conditions": next.Status.Conditions, "lastUpdated": l.stamp()}
	if o.Status.Settings == nil {
		fields["settings"] = v1alpha1.SettingsMap{} // the API asks for them
	}
	if err := l.patchStatus(ctx, next, fields); err != nil {
		return err
	}
	l.settings.Wrote(shorten(next))
	return nil
}

// showComponents shows the components of a host, and says which are to be updated,
// and which updates the object calls installed.
func (l *looker) showComponents(ctx context.Context, key types.NamespacedName, s sight) (v verdict, installed []v1alpha1.FirmwareUpdate, err error) {
	o, there := l.components.Get(key)
	if len(s.known.Components) == 0 {
		return v, nil, l.componentsUnknown(ctx, o, there, s)
	}
	if !there || moving(o) {
		return v, nil, nil
	}
	if o, err = owned(ctx, l.Controller, o, s.host); err != nil {
		return v, nil, err
	}
	installed = withoutLogins(o.Status.Updates)
	if done := s.bus.Provisioning.Firmware; done != nil {
		installed = done.Installed
	}
	v = judgeUpdates(o, installed)
	next := o.DeepCopy()
	about := l.subject(o, s)
	about.when = s.when(func(p v1alpha1.HostUpdatePolicySpec) v1alpha1.UpdatePolicy { return p.FirmwareUpdates })
	next.Status = componentsStatus(o, s.known, v, installed, about)
	if equal(o.Status, next.Status) {
		return v, installed, nil
	}
	next.Status.LastUpdated = l.stamp()
	if err := l.writeStatus(ctx, next); err != nil {
		return verdict{}, nil, err
	}
	l.components.Wrote(next)
	l.tell(kube.Reporter{Kind: "HostFirmwareComponents", Component: "metal3-hostfirmwarecomponents-controller", Controller: "metal3.io/hostfirmwarecomponents-controller"}, o, onComponents(), v.faults)
	return v, installed, nil
}

func (l *looker) componentsUnknown(ctx context.Context, o *v1alpha1.HostFirmwareComponents, there bool, s sight) error {
	if !there || moving(o) {
		return nil
	}
	next := o.DeepCopy()
	next.Status.Conditions = onComponents().unjudged(o.Status.Conditions, s, l.subject(o, s))
	if equal(o.Status, next.Status) {
		return nil
	}
	next.Status.LastUpdated = l.stamp()
	if err := l.writeStatus(ctx, next); err != nil {
		return err
	}
	l.components.Wrote(next)
	return nil
}

// tell makes an Event of each fault, once for each generation of the object.
func (l *looker) tell(r kube.Reporter, o client.Object, w words, faults []string) {
	for _, fault := range faults {
		l.cluster.Announcer.TellOf(r, o, kube.News{
			ID: fmt.Sprintf("invalid/%d/%s", o.GetGeneration(), kube.Digest(fault)), Reason: "ValidationFailed", Message: w.fault + fault, At: l.now(),
		})
	}
}
