package lifecycle

import (
	"slices"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Enrolled says that the backend holds the host, and its BMC took the credentials.
type Enrolled struct {
	Backend, Node, Address, Profile string
	Credentials                     v1alpha1.CredentialsStatus
	// Firmware is what came of reading the machine's firmware.
	Firmware event.FirmwareRead
}

func (Enrolled) Section() event.Section { return event.SectionRegistration }
func (Enrolled) Name() string           { return event.Enroll.Fact(event.Succeeded) }
func (f Enrolled) apply(h *Host, at time.Time) {
	r := &h.Registration
	if !r.Registered {
		r.External = h.Intent.Spec.ExternallyProvisioned
		if r.Times.Start.IsZero() {
			r.Times.Start = metav1Time(h.Intent.CreatedAt)
		}
	}
	succeed(&r.Work)
	r.Registered, r.Detached, r.Lost = true, false, false
	r.Backend, r.Node, r.Address, r.HardwareProfile = f.Backend, f.Node, f.Address, f.Profile
	r.Tried, r.Good = f.Credentials, f.Credentials
	if !f.Firmware.At.IsZero() {
		r.Firmware = f.Firmware
	}
	endTimes(&r.Times, at)
}

// Rotated says that new credentials of a registered host work.
type Rotated struct{ Credentials v1alpha1.CredentialsStatus }

func (Rotated) Section() event.Section { return event.SectionRegistration }
func (Rotated) Name() string           { return event.CredentialsRotated }
func (f Rotated) apply(h *Host, at time.Time) {
	succeed(&h.Registration.Work)
	h.Registration.Tried, h.Registration.Good = f.Credentials, f.Credentials
	endTimes(&h.Registration.Times, at)
}

// Adopted says that the backend has taken the running host over again.
type Adopted struct{}

func (Adopted) Section() event.Section { return event.SectionRegistration }
func (Adopted) Name() string           { return event.Adopt.Fact(event.Succeeded) }
func (Adopted) apply(h *Host, _ time.Time) {
	succeed(&h.Registration.Work)
	h.Registration.Adopted = h.Registration.Node
}

// Lost says that the backend no longer knows the host.
type Lost struct{}

func (Lost) Section() event.Section     { return event.SectionRegistration }
func (Lost) Name() string               { return event.NodeLost }
func (Lost) apply(h *Host, _ time.Time) { h.Registration.Lost = true }

// Detached says that the backend let go of the host at the user's wish.
type Detached struct{}

func (Detached) Section() event.Section { return event.SectionRegistration }
func (Detached) Name() string           { return event.Detach.Fact(event.Succeeded) }
func (Detached) apply(h *Host, _ time.Time) {
	succeed(&h.Registration.Work)
	h.Registration.Detached = true
}

// Removed says that the backend let go of the host for good.
type Removed struct {
	// Undone says what was left undone.
	Undone string
}

func (Removed) Section() event.Section { return event.SectionRegistration }
func (Removed) Name() string           { return event.Remove.Fact(event.Succeeded) }
func (f Removed) change() event.Change { return event.Change{Message: f.Undone} }
func (f Removed) apply(h *Host, _ time.Time) {
	succeed(&h.Registration.Work)
	h.Registration.Removed, h.Registration.Abandoned = true, f.Undone
}

// Inspected says that the hardware is known.
type Inspected struct{ Digest, Source, Arch string }

func (Inspected) Section() event.Section { return event.SectionInspection }
func (Inspected) Name() string           { return event.Inspect.Fact(event.Succeeded) }
func (f Inspected) apply(h *Host, at time.Time) {
	if h.Inspection.Times.Start.IsZero() || !h.Inspection.Times.End.IsZero() {
		h.Inspection.Times = v1alpha1.OperationMetric{Start: metav1Time(h.Newest(event.SectionRegistration).At)}
	}
	endTimes(&h.Inspection.Times, at)
	known(h, f.Digest, f.Source, f.Arch)
}

// Supplied says that the user gave the hardware details.
type Supplied struct{ Digest, Source, Arch string }

func (Supplied) Section() event.Section { return event.SectionInspection }
func (Supplied) Name() string           { return event.DetailsSupplied }
func (f Supplied) apply(h *Host, _ time.Time) {
	i := &h.Inspection
	i.Digest, i.Source, i.Arch = f.Digest, f.Source, f.Arch
	i.Done = i.Done || h.Intent.InspectionDisabled
}

// Skipped says that inspection is disabled.
type Skipped struct{}

func (Skipped) Section() event.Section { return event.SectionInspection }
func (Skipped) Name() string           { return event.InspectSkipped }
func (Skipped) apply(h *Host, _ time.Time) {
	known(h, h.Inspection.Digest, "disabled", h.Inspection.Arch)
}

func known(h *Host, digest, source, arch string) {
	i := &h.Inspection
	if i.Op == nil && !i.Again { // done as soon as it began
		i.Request = h.Intent.InspectRequest
	}
	succeed(&i.Work)
	i.Done, i.Again, i.Digest, i.Source, i.Arch, i.Waiting = true, false, digest, source, arch, nil
}

// ReadyForImage says that what was to be applied before the host is available is applied.
type ReadyForImage struct {
	RAID *v1alpha1.RAIDConfig
	// Read is what came of reading the firmware again; nil if it was not.
	Read *event.FirmwareRead
}

func (ReadyForImage) Section() event.Section { return event.SectionProvisioning }
func (ReadyForImage) Name() string           { return event.Prepare.Fact(event.Succeeded) }
func (f ReadyForImage) apply(h *Host, _ time.Time) {
	p := &h.Provisioning
	firmwareChanged(h, f.Read)
	succeed(&p.Work)
	p.Phase, p.RAID = event.Prepared, f.RAID
}

// Provisioned says that the image is on the host.
type Provisioned struct{}

func (Provisioned) Section() event.Section { return event.SectionProvisioning }
func (Provisioned) Name() string           { return event.Deploy.Fact(event.Succeeded) }
func (Provisioned) apply(h *Host, at time.Time) {
	p := &h.Provisioning
	succeed(&p.Work)
	p.Phase, p.Attempts, p.InUseSince = event.Deployed, 0, at
	endTimes(&p.ProvisionTimes, at)
	serve(h, event.SectionProvisioning)
}

// Deprovisioned says that the image is off the host, and the host is clean.
type Deprovisioned struct{}

func (Deprovisioned) Section() event.Section { return event.SectionProvisioning }
func (Deprovisioned) Name() string           { return event.Undeploy.Fact(event.Succeeded) }
func (Deprovisioned) apply(h *Host, at time.Time) {
	p := &h.Provisioning
	failures, problem := p.Failures, p.Problem
	succeed(&p.Work)
	if p.Attempts > 0 { // the cleaning between two tries of a deployment
		p.Failures, p.Problem = failures, problem
	}
	cleared(p)
	endTimes(&p.DeprovisionTimes, at)
	serve(h, event.SectionProvisioning)
}

// Abandoned says that the host had to go before it could be deprovisioned.
type Abandoned struct {
	// Undone says what was left undone.
	Undone string
}

func (Abandoned) Section() event.Section { return event.SectionProvisioning }
func (Abandoned) Name() string           { return event.UndeployAbandoned }
func (f Abandoned) change() event.Change { return event.Change{Message: f.Undone} }
func (f Abandoned) apply(h *Host, at time.Time) {
	succeed(&h.Provisioning.Work)
	cleared(&h.Provisioning)
	h.Provisioning.Abandoned = f.Undone
	endTimes(&h.Provisioning.DeprovisionTimes, at)
}

func cleared(p *event.Provisioning) {
	p.Phase, p.Image, p.CustomDeploy, p.Node, p.Waiting = event.Prepared, v1alpha1.Image{}, nil, "", nil
	p.InUseSince = time.Time{}
	if p.RAID != nil { // software RAID was on the disks that were cleaned
		p.RAID = &v1alpha1.RAIDConfig{HardwareRAIDVolumes: p.RAID.HardwareRAIDVolumes}
	}
}

// MediaSet says that the virtual CD drive holds what is wanted: the image with
// that URL, or nothing.
type MediaSet struct{ URL string }

func (MediaSet) Section() event.Section { return event.SectionProvisioning }
func (MediaSet) Name() string           { return event.Media.Fact(event.Succeeded) }
func (f MediaSet) change() event.Change { return event.Change{Message: f.URL} }
func (f MediaSet) apply(h *Host, at time.Time) {
	p := &h.Provisioning
	p.Op, p.Stalled = nil, nil
	p.Media = event.VirtualCD{URL: f.URL, Tried: f.URL, TriedAt: at, Off: h.Power.SeenAt}
}

// EnteredExternal says that the disk is somebody else's from now on.
type EnteredExternal struct{}

func (EnteredExternal) Section() event.Section { return event.SectionProvisioning }
func (EnteredExternal) Name() string           { return event.ExternalEntered }
func (EnteredExternal) apply(h *Host, _ time.Time) {
	was := h.Provisioning
	h.Provisioning = event.Provisioning{Phase: event.External, Media: was.Media, Firmware: was.Firmware, FirmwareRead: was.FirmwareRead}
}

// LeftExternal says that the disk is ours again, with what the specification says is on it.
type LeftExternal struct{}

func (LeftExternal) Section() event.Section { return event.SectionProvisioning }
func (LeftExternal) Name() string           { return event.ExternalLeft }
func (LeftExternal) apply(h *Host, _ time.Time) {
	p, spec := &h.Provisioning, h.Intent.Spec
	succeed(&p.Work)
	p.Phase, p.BootMode = event.Deployed, BootMode(h.Intent)
	p.Image, p.CustomDeploy = v1alpha1.Image{}, spec.CustomDeploy.DeepCopy()
	if spec.Image != nil {
		p.Image = *spec.Image.DeepCopy()
	}
}

// Queued says that the host waits for a slot, or how far it has come.
type Queued struct {
	Kind     event.Kind
	Position int
}

func (f Queued) Section() event.Section { return f.Kind.Section() }
func (Queued) Name() string             { return event.SlotAwaited }
func (f Queued) apply(h *Host, at time.Time) {
	w := event.Waiting{Kind: f.Kind, Since: at, Position: f.Position}
	if was := Waiting(*h); was != nil && was.Kind == f.Kind {
		w.Since = was.Since
	}
	if f.Section() == event.SectionInspection {
		h.Inspection.Waiting = &w
	} else {
		h.Provisioning.Waiting = &w
	}
}

// FirmwareSeen says what came of reading the firmware of a host at rest.
type FirmwareSeen struct{ Read event.FirmwareRead }

func (FirmwareSeen) Section() event.Section { return event.SectionProvisioning }
func (FirmwareSeen) Name() string           { return event.FirmwareSeen }
func (f FirmwareSeen) change() event.Change { return event.Change{Message: f.Read.Problem} }
func (f FirmwareSeen) apply(h *Host, _ time.Time) {
	h.Provisioning.FirmwareRead = f.Read
}

// Serviced says that the firmware of a host in use is changed, or that nothing of
// it is to be changed any more.
type Serviced struct {
	// Read is what came of reading it again; nil if it was not.
	Read *event.FirmwareRead
}

func (Serviced) Section() event.Section { return event.SectionProvisioning }
func (Serviced) Name() string           { return event.Service.Fact(event.Succeeded) }
func (f Serviced) apply(h *Host, _ time.Time) {
	firmwareChanged(h, f.Read)
	succeed(&h.Provisioning.Work)
}

// Forgiven says that failed attempts no longer count, since the image changed or went.
type Forgiven struct{}

func (Forgiven) Section() event.Section { return event.SectionProvisioning }
func (Forgiven) Name() string           { return event.AttemptsReset }
func (Forgiven) apply(h *Host, _ time.Time) {
	p := &h.Provisioning
	p.Attempts, p.LastAttempted, p.Failures, p.Problem, p.Last, p.Waiting = 0, nil, 0, nil, nil, nil
	p.Retry = h.Intent.Retry
}

// Observed says what a look at the host's power found.
type Observed struct {
	// What changed: event.PowerChanged, event.FaultChanged, event.MaintenanceChanged,
	// event.StateChanged or event.HealthChanged, the first of them that did.
	What string
	// On is nil while unknown.
	On *bool
	// Fault says why the power cannot be controlled, "" if it can.
	Fault string
	// Health is the hardware's own report: OK, Warning, Critical or "".
	Health string
	// Maintenance and Astray are as in event.Power.
	Maintenance, Astray string
	// Suspect is who is thought to have done it, "" if that was metalbus.
	Suspect string
}

func (Observed) Section() event.Section { return event.SectionPower }
func (f Observed) Name() string         { return f.What }
func (f Observed) change() event.Change { return event.Change{Message: foreignText(f)} }
func (f Observed) apply(h *Host, at time.Time) {
	p := &h.Power
	if f.What == event.PowerChanged && f.On != nil {
		found(h, *f.On, at)
		if p.Op == nil {
			succeed(&p.Work)
		}
	}
	p.Fault, p.Health, p.Maintenance, p.Astray, p.Suspect = f.Fault, f.Health, f.Maintenance, f.Astray, f.Suspect
}

// Switched says that a power operation brought the host to what was wanted.
type Switched struct {
	Kind event.Kind
	On   bool
}

func (Switched) Section() event.Section { return event.SectionPower }
func (f Switched) Name() string         { return f.Kind.Fact(event.Succeeded) }
func (f Switched) apply(h *Host, at time.Time) {
	succeed(&h.Power.Work)
	h.Power.Suspect = ""
	found(h, f.On, at)
	if f.Kind == event.Reboot {
		h.Power.Handled = rebootIDs(h.Intent)
	}
	if !f.On && Stage(*h) == v1alpha1.StatePoweringOffBeforeDelete {
		h.Power.OffForDelete = true
	}
}

// found notes the power state. A host that is seen off has served the reboot
// requests that are there.
func found(h *Host, on bool, at time.Time) {
	p := &h.Power
	if p.On == nil || *p.On != on {
		p.On, p.SeenAt = &on, at
	}
	if !on {
		p.Handled = rebootIDs(h.Intent)
	}
}

// Served says that the host was off already when a reboot was asked for.
type Served struct{}

func (Served) Section() event.Section     { return event.SectionPower }
func (Served) Name() string               { return event.RebootServed }
func (Served) apply(h *Host, _ time.Time) { h.Power.Handled = rebootIDs(h.Intent) }

// LeftOn says that the host had to go before it could be powered off.
type LeftOn struct {
	// Undone says what was left undone.
	Undone string
}

func (LeftOn) Section() event.Section { return event.SectionPower }
func (LeftOn) Name() string           { return event.OffAbandoned }
func (f LeftOn) change() event.Change { return event.Change{Message: f.Undone} }
func (f LeftOn) apply(h *Host, _ time.Time) {
	succeed(&h.Power.Work)
	h.Power.OffForDelete, h.Power.Abandoned = true, f.Undone
}

// SubscriptionSet says that a subscription is at the BMC, under that ID, or, with
// none, that it is not.
type SubscriptionSet struct{ UID, ID string }

func (SubscriptionSet) Section() event.Section { return event.SectionPower }
func (SubscriptionSet) Name() string           { return event.Subscribe.Fact(event.Succeeded) }
func (f SubscriptionSet) apply(h *Host, _ time.Time) {
	p := &h.Power
	p.Op, p.Stalled = nil, nil
	if f.ID == "" {
		p.Subscriptions = slices.DeleteFunc(slices.Clone(p.Subscriptions), func(s event.Subscription) bool { return s.UID == f.UID })
		return
	}
	changeSubscription(h, f.UID, func(s *event.Subscription) {
		s.ID, s.Failures, s.Problem, s.Ending, s.TriedAt = f.ID, 0, nil, false, time.Time{}
	})
}
