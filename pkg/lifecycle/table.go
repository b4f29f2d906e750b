package lifecycle

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

// States lists every provisioning state, in the order of a host's life.
func States() []v1alpha1.ProvisioningState {
	return []v1alpha1.ProvisioningState{
		v1alpha1.StateNone, v1alpha1.StateUnmanaged, v1alpha1.StateRegistering, v1alpha1.StateInspecting, v1alpha1.StatePreparing,
		v1alpha1.StateAvailable, v1alpha1.StateProvisioning, v1alpha1.StateProvisioned, v1alpha1.StateExternallyProvisioned,
		v1alpha1.StateDeprovisioning, v1alpha1.StatePoweringOffBeforeDelete, v1alpha1.StateDeleting,
	}
}

// Row says that a fact may be recorded of a host in one of the From states,
// and which states that may lead to. What no row allows is refused.
type Row struct {
	From []v1alpha1.ProvisioningState
	// Facts are names of facts of Section. "*" at the end stands for the rest.
	Section event.Section
	Facts   []string
	// To are the states that the fact may lead to. A fact may always leave the
	// state as it is, unless Moves is set.
	To    []v1alpha1.ProvisioningState
	Moves bool
	// When must hold of the host before the fact; nil asks for nothing.
	When func(Host) bool
	// Why says in words what When asks for, or what the row is for.
	Why string
}

type states = []v1alpha1.ProvisioningState

const (
	unmanaged   = v1alpha1.StateUnmanaged
	registering = v1alpha1.StateRegistering
	inspects    = v1alpha1.StateInspecting
	preparing   = v1alpha1.StatePreparing
	available   = v1alpha1.StateAvailable
	provision   = v1alpha1.StateProvisioning
	provisioned = v1alpha1.StateProvisioned
	externally  = v1alpha1.StateExternallyProvisioned
	deprovision = v1alpha1.StateDeprovisioning
	poweringOff = v1alpha1.StatePoweringOffBeforeDelete
	deleting    = v1alpha1.StateDeleting
)

// known are the states of a host that the bus knows.
func knownStates() states { return States()[1:] }

// managed are the states of a host that its backend holds.
func managedStates() states {
	return states{inspects, preparing, available, provision, provisioned, externally, deprovision, poweringOff}
}

// Table is the life of a host: what may follow what. It is not to be changed.
func Table() []Row { return table() }

//nolint:gochecknoglobals // a constant in all but name: Go has none of this type
var table = sync.OnceValue(func() []Row {
	return slices.Concat(intentRows(), registrationRows(), inspectionRows(), provisioningRows(), powerRows())
})

func intentRows() []Row {
	wishes := []string{
		event.Changed, event.Paused, event.Unpaused, event.DetachAsked, event.AttachAsked, event.Deleting,
		event.RetryRequested, event.RebootRequested, event.InspectRequested,
	}
	const s = event.SectionIntent
	return []Row{
		{From: states{v1alpha1.StateNone}, Section: s, Facts: []string{event.Created}, To: states{unmanaged, registering}, Moves: true, Why: "a new host"},
		{From: States(), Section: s, Facts: []string{event.Restored}, To: knownStates(), Why: "a host that was rebuilt from its object"},
		{From: knownStates(), Section: s, Facts: []string{event.Forgotten}, To: states{deleting}, Why: "the object is gone"},
		{From: knownStates(), Section: s, Facts: wishes, Why: "what is asked of it changed"},
		{From: states{unmanaged}, Section: s, Facts: wishes, To: states{registering}, Why: "BMC details were given"},
		{From: states{registering}, Section: s, Facts: wishes, To: states{unmanaged}, Why: "BMC details were taken away"},
		{From: states{unmanaged, registering}, Section: s, Facts: wishes, To: states{deleting}, Why: "it is deleted, and nothing was done to it yet"},
		{From: states{inspects}, Section: s, Facts: wishes, To: states{preparing}, Why: "inspection was disabled"},
		{From: states{preparing}, Section: s, Facts: wishes, To: states{inspects}, Why: "inspection was enabled again"},
		{From: states{inspects, preparing, available, externally}, Section: s, Facts: wishes, To: states{poweringOff}, Why: "it is deleted"},
		{From: states{provision, provisioned}, Section: s, Facts: wishes, To: states{deprovision}, Why: "it is deleted"},
		{From: managedStates(), Section: s, Facts: wishes, To: states{deleting}, Why: "it is deleted while detached"},
		{From: states{poweringOff}, Section: s, Facts: wishes, To: states{inspects, preparing, available, externally}, Why: "its deletion is held up till it is attached again"},
		{From: states{deprovision}, Section: s, Facts: wishes, To: states{provision, provisioned}, Why: "its deletion is held up till it is attached again"},
		{From: states{deleting}, Section: s, Facts: wishes, To: knownStates(), Why: "its deletion is held up till it is attached again"},
	}
}

func registrationRows() []Row {
	const s = event.SectionRegistration
	work := func(k event.Kind) []string { return facts(k, event.Started, event.Claimed, event.Failed) }
	return []Row{
		{From: states{registering}, Section: s, Facts: work(event.Enroll), Why: "the first registration"},
		{From: states{registering}, Section: s, Facts: []string{event.Enroll.Fact(event.Succeeded)}, To: states{inspects, preparing, externally}, Moves: true, Why: "the BMC answered"},
		{From: managedStates(), Section: s, Facts: append(work(event.Enroll), event.Enroll.Fact(event.Succeeded), event.CredentialsRotated, event.NodeLost), Why: "registration of a known host changes nothing else"},
		{From: states{inspects, preparing, available, externally}, Section: s, Facts: attachEnds(), To: states{poweringOff}, When: deleted, Why: "a deletion was held up till it was attached again, or that was in vain"},
		{From: states{provision, provisioned}, Section: s, Facts: attachEnds(), To: states{deprovision}, When: deleted, Why: "a deletion was held up till it was attached again, or that was in vain"},
		{From: states{provisioned, externally, deprovision}, Section: s, Facts: append(work(event.Adopt), event.Adopt.Fact(event.Succeeded)), Why: "a host that runs is taken over"},
		{From: managedStates(), Section: s, Facts: append(work(event.Detach), event.Detach.Fact(event.Succeeded)), When: Apart, Why: "its user wants it detached"},
		{From: states{deleting}, Section: s, Facts: append(work(event.Remove), event.Remove.Fact(event.Succeeded)), When: Leaving, Why: "nothing else is left to do"},
		ends(s, event.Enroll, event.Adopt, event.Detach, event.Remove),
		{From: knownStates(), Section: s, Facts: trouble(), Why: "its backend does not answer, or does again"},
	}
}

// attachEnds are the facts by which the attaching of a detached host ends.
func attachEnds() []string { return facts(event.Enroll, event.Succeeded, event.Failed) }

// deleted: its user wants it gone, whatever holds that up.
func deleted(h Host) bool { return !h.Intent.DeletedAt.IsZero() }

// ends are the facts that an operation's owner may record whatever happened to
// the host meanwhile.
func ends(s event.Section, kinds ...event.Kind) Row {
	var names []string
	for _, k := range kinds {
		names = append(names, facts(k, event.Accepted, event.Resumed, event.Aborted)...)
	}
	return Row{From: knownStates(), Section: s, Facts: names, Why: "the owner of an operation goes on with it or gives it up"}
}

func trouble() []string { return []string{event.Stalled, event.Recovered} }

func facts(k event.Kind, phases ...event.Phase) []string {
	var names []string
	for _, p := range phases {
		names = append(names, k.Fact(p))
	}
	return names
}

func inspectionRows() []Row {
	const s = event.SectionInspection
	work := facts(event.Inspect, event.Started, event.Claimed, event.Failed)
	return []Row{
		{From: states{inspects}, Section: s, Facts: work, When: stays, Why: "the hardware is being looked at"},
		{From: states{available}, Section: s, Facts: append(work[:1:1], event.InspectBegun), To: states{inspects}, Moves: true, When: WantsInspection, Why: "its user asked for another inspection"},
		{From: states{available}, Section: s, Facts: facts(event.Inspect, event.Failed), When: WantsInspection, Why: "the inspection was refused before anything was done"},
		{From: states{inspects, available}, Section: s, Facts: []string{event.SlotAwaited}, Why: "it waits for its turn"},
		{From: states{inspects}, Section: s, Facts: []string{event.Inspect.Fact(event.Succeeded)}, To: states{preparing, available}, Moves: true, Why: "the hardware is known"},
		{From: states{inspects, preparing}, Section: s, Facts: []string{event.InspectSkipped}, To: states{preparing}, Why: "inspection is disabled"},
		{From: knownStates(), Section: s, Facts: []string{event.DetailsSupplied}, Why: "the user gave the hardware details"},
		{From: states{inspects}, Section: s, Facts: facts(event.Inspect, event.Aborted), To: states{preparing, available}, Why: "the inspection is no longer wanted"},
		ends(s, event.Inspect),
		{From: knownStates(), Section: s, Facts: trouble(), Why: "its backend does not answer, or does again"},
	}
}

func provisioningRows() []Row {
	const s = event.SectionProvisioning
	return []Row{
		{From: states{preparing}, Section: s, Facts: facts(event.Prepare, event.Started, event.Claimed, event.Failed), When: stays, Why: "settings are being applied"},
		{From: states{available}, Section: s, Facts: append(facts(event.Prepare, event.Started), event.PrepareBegun), To: states{preparing}, Moves: true, When: prepares, Why: "settings changed"},
		{From: states{available}, Section: s, Facts: facts(event.Prepare, event.Failed), When: prepares, Why: "the settings were refused before anything was done"},
		{From: states{preparing}, Section: s, Facts: facts(event.Prepare, event.Succeeded), To: states{available}, Moves: true, Why: "settings are applied"},
		{From: states{available, externally}, Section: s, Facts: []string{event.ExternalEntered}, To: states{externally}, When: wantsExternal, Why: "the specification says that the disk is somebody else's"},
		{From: states{externally}, Section: s, Facts: []string{event.ExternalLeft}, To: states{provisioned}, Moves: true, When: leavesExternal, Why: "the specification says that the disk is ours again"},
		{From: states{available}, Section: s, Facts: append(facts(event.Deploy, event.Started), event.DeployBegun), To: states{provision}, Moves: true, When: deploys, Why: "an image is wanted"},
		{From: states{provision}, Section: s, Facts: facts(event.Deploy, event.Started, event.Claimed, event.Failed), Why: "the image is on its way"},
		{From: states{available}, Section: s, Facts: facts(event.Deploy, event.Failed), When: deploys, Why: "the image was refused before anything was done"},
		{From: states{provision}, Section: s, Facts: facts(event.Deploy, event.Succeeded), To: states{provisioned}, Moves: true, Why: "the image is there"},
		{From: states{provision}, Section: s, Facts: append(facts(event.Undeploy, event.Started), event.UndeployBegun), To: states{deprovision}, Moves: true, When: func(h Host) bool { return h.Provisioning.Problem != nil || Unwanted(h) }, Why: "the deployment failed, or is no longer wanted"},
		{From: states{provisioned}, Section: s, Facts: append(facts(event.Undeploy, event.Started), event.UndeployBegun), To: states{deprovision}, Moves: true, When: Unwanted, Why: "the image was removed or changed"},
		{From: states{deprovision}, Section: s, Facts: facts(event.Undeploy, event.Started, event.Claimed, event.Failed), Why: "the disk is being cleaned"},
		{From: states{deprovision}, Section: s, Facts: facts(event.Undeploy, event.Succeeded), To: states{available, poweringOff}, Moves: true, Why: "the disk is clean"},
		{From: states{deprovision}, Section: s, Facts: []string{event.UndeployAbandoned}, To: states{poweringOff}, Moves: true, When: Leaving, Why: "the host has to go and cannot be cleaned"},
		{From: states{provisioned, externally, deprovision, poweringOff}, Section: s, Facts: facts(event.Media, event.Started), When: MediaDue, Why: "the host is about to boot and its user wants another data image in it, or none, or what has to go holds one"},
		{From: states{provisioned, externally, deprovision, poweringOff}, Section: s, Facts: facts(event.Media, event.Claimed, event.Failed, event.Succeeded), When: func(h Host) bool { return MediaDue(h) || h.Doing(event.Media) }, Why: "its virtual CD is being brought to what is wanted"},
		{From: states{provisioned, externally}, Section: s, Facts: facts(event.Service, event.Started), When: isBeforeBoot(event.Service), Why: "its user lets its firmware be changed while it is in use"},
		{From: states{provisioned, externally}, Section: s, Facts: facts(event.Service, event.Claimed, event.Failed, event.Succeeded), When: stays, Why: "firmware of a host in use"},
		{From: states{available, provisioned, externally}, Section: s, Facts: []string{event.FirmwareSeen}, Why: "its firmware was read, or could not be"},
		{From: states{preparing, available, provision, provisioned, deprovision}, Section: s, Facts: []string{event.SlotAwaited}, Why: "it waits for its turn"},
		{From: states{available}, Section: s, Facts: []string{event.AttemptsReset}, Why: "another image, or none"},
		ends(s, event.Prepare, event.Deploy, event.Undeploy, event.Media, event.Service),
		{From: knownStates(), Section: s, Facts: trouble(), Why: "its backend does not answer, or does again"},
	}
}

func powerRows() []Row {
	const s = event.SectionPower
	work := func(k event.Kind) []string {
		return facts(k, event.Started, event.Claimed, event.Failed, event.Succeeded)
	}
	steady := states{available, provisioned, externally}
	return []Row{
		{From: knownStates(), Section: s, Facts: []string{event.PowerChanged, event.FaultChanged, event.MaintenanceChanged, event.StateChanged, event.HealthChanged}, Why: "what was observed"},
		{From: knownStates(), Section: s, Facts: []string{event.RebootServed}, Why: "the host was off already when the reboot was asked for"},
		{From: steady, Section: s, Facts: work(event.PowerOn), When: func(h Host) bool { return stays(h) && h.Intent.Spec.Online }, Why: "the host is to be online"},
		{From: steady, Section: s, Facts: append(work(event.PowerOff), work(event.Reboot)...), When: func(h Host) bool { return stays(h) && WantsOff(h) }, Why: "the host is not to be online, or a reboot is asked for"},
		{From: states{poweringOff}, Section: s, Facts: append(work(event.PowerOff), event.OffAbandoned), To: states{deleting}, When: Leaving, Why: "it is being deleted"},
		{From: append(steady[:3:3], poweringOff), Section: s, Facts: work(event.Subscribe), When: func(h Host) bool { return subscribes(h) || h.Doing(event.Subscribe) }, Why: "its user wants a subscription to its BMC's events, or no longer, or it goes"},
		ends(s, event.PowerOn, event.PowerOff, event.Reboot, event.Subscribe),
		{From: knownStates(), Section: s, Facts: trouble(), Why: "its backend does not answer, or does again"},
	}
}

// isBeforeBoot: the operation is the one that the host has to go through now.
func isBeforeBoot(k event.Kind) func(Host) bool {
	return func(h Host) bool { return BeforeBoot(h) == k }
}

// stays: the host is in its backend and is to stay there.
func stays(h Host) bool { return !Apart(h) && !h.Intent.Paused }

func wantsExternal(h Host) bool {
	return h.Intent.Spec.ExternallyProvisioned || h.Registration.External
}

func leavesExternal(h Host) bool { return !h.Intent.Spec.ExternallyProvisioned && stays(h) }

func prepares(h Host) bool { return Unsettled(h) && stays(h) }

func deploys(h Host) bool { return WantsImage(h) && stays(h) && !Leaving(h) }

// Unwanted reports whether what is on the disk is to go, by the user's word.
func Unwanted(h Host) bool { return Leaving(h) || (Cancelled(h) && stays(h)) }

// WantsInspection reports whether a request for another inspection is open.
func WantsInspection(h Host) bool {
	i := h.Intent
	return i.InspectRequest != "" && i.InspectRequest != h.Inspection.Request && !i.InspectionDisabled && stays(h)
}

// NotAllowedError says that a fact may not be recorded of a host as it is.
type NotAllowedError struct {
	Host  string
	From  v1alpha1.ProvisioningState
	To    v1alpha1.ProvisioningState
	Fact  string
	Cause string
}

func (e *NotAllowedError) Error() string {
	return fmt.Sprintf("host %s: %s in state %q leading to %q is not allowed: %s", e.Host, e.Fact, e.From, e.To, e.Cause)
}

// Check reports whether the fact may be recorded of the host, given what the
// host would be after it; a *NotAllowedError if not.
func Check(before, after Host, f Fact) error {
	from, to := Stage(before), Stage(after)
	cause := "no row of the table has it"
	for _, r := range Table() {
		if r.Section != f.Section() || !slices.Contains(r.From, from) || !slices.Contains(r.Facts, f.Name()) {
			continue
		}
		switch {
		case !r.allows(from, to):
			cause = "it must not lead there"
		case r.When != nil && !r.When(before):
			cause = "it is not true that " + r.Why
		default:
			return exclusive(before, f, from, to)
		}
	}
	return &NotAllowedError{Host: before.Name(), From: from, To: to, Fact: string(f.Section()) + "." + f.Name(), Cause: cause}
}

func (r Row) allows(from, to v1alpha1.ProvisioningState) bool {
	if from == to {
		return !r.Moves
	}
	return slices.Contains(r.To, to)
}

// exclusive holds the rule that a host has at most one operation.
func exclusive(before Host, f Fact, from, to v1alpha1.ProvisioningState) error {
	if !strings.HasSuffix(f.Name(), "."+string(event.Started)) {
		return nil
	}
	op, _ := before.Op()
	if op == nil {
		return nil
	}
	return &NotAllowedError{Host: before.Name(), From: from, To: to, Fact: f.Name(), Cause: "operation " + op.ID + " is under way"}
}
