package event

import (
	"time"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Work is what the four sections of the stage services have in common.
type Work struct {
	// Op is the operation under way, if it is this section's.
	Op *Op `json:"op,omitempty"`
	// Problem is the host's present error in this section.
	Problem *Problem `json:"problem,omitempty"`
	// Last is the newest problem while it is tried again: then there is no
	// present one, and the same need not be told anew if it comes back.
	Last *Problem `json:"last,omitempty"`
	// Failures counts problems since the section last succeeded. It outlives
	// the problem, which goes once something is tried again.
	Failures int `json:"failures,omitempty"`
	// Stalled says that the section cannot go on since something beside the
	// host does not answer, such as its backend.
	Stalled *Stall `json:"stalled,omitempty"`
}

// Stall is trouble that is not the host's own, and has gone on for minutes.
type Stall struct {
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}

// The facts of stage sections about such trouble.
const (
	Stalled   = "stalled"   // what the host waits for has not answered for minutes
	Recovered = "recovered" // it answers again
)

// The facts of the registration section beside those of its operations.
const (
	CredentialsRotated = "credentials.rotated" // new credentials of a registered host were checked
	NodeLost           = "node.lost"           // the backend no longer knows the host
)

// Registration is the host as a node of its backend.
type Registration struct {
	Work
	// Registered is true once the backend and the BMC have accepted the host;
	// it never becomes false again.
	Registered bool `json:"registered,omitempty"`
	// External: the host was externally provisioned when it was registered.
	External bool `json:"external,omitempty"`
	// Backend is the name of the backend that holds the host.
	Backend string `json:"backend,omitempty"`
	// Node is the host's identity at the backend.
	Node string `json:"node,omitempty"`
	// Address is the BMC address that was accepted.
	Address string `json:"address,omitempty"`
	// Tried and Good are the newest credentials that were tried, and that worked.
	Tried v1alpha1.CredentialsStatus `json:"tried,omitzero"`
	Good  v1alpha1.CredentialsStatus `json:"good,omitzero"`
	// HardwareProfile is the deprecated profile name that is in effect.
	HardwareProfile string `json:"hardwareProfile,omitempty"`
	// Adopted is the node that took over the running machine of the host, "" if
	// none had to.
	Adopted string `json:"adopted,omitempty"`
	// Lost: the backend lost the node of a registered host.
	Lost bool `json:"lost,omitempty"`
	// Detached: the node is out of the backend at the user's wish.
	Detached bool `json:"detached,omitempty"`
	// Removed: the node is out of the backend for good.
	Removed bool `json:"removed,omitempty"`
	// Abandoned says what was left undone when the host had to go.
	Abandoned string `json:"abandoned,omitempty"`
	// Firmware is what came of reading it when the host was registered.
	Firmware FirmwareRead `json:"firmware,omitzero"`
	// Times of the newest registration.
	Times v1alpha1.OperationMetric `json:"times,omitzero"`
}

// The facts of the inspection section beside those of its operation.
const (
	InspectBegun    = "inspect.begun"    // another inspection is at hand, and nothing was written for it yet
	InspectSkipped  = "inspect.skipped"  // inspection is disabled
	DetailsSupplied = "details.supplied" // hardware details came from the user
)

// Inspection is what is known of the hardware.
type Inspection struct {
	Work
	// Done: the hardware is known, or is not to be inspected.
	Done bool `json:"done,omitempty"`
	// Again: an available host is being inspected once more.
	Again bool `json:"again,omitempty"`
	// Digest is the sha256 of the HardwareDetails in the data stream, "" if
	// there are none.
	Digest string `json:"digest,omitempty"`
	// Source is where they came from: the backend's name, "annotation",
	// "hardwaredata" or "disabled".
	Source string `json:"source,omitempty"`
	// Request is the last request for another inspection that was served.
	Request string `json:"request,omitempty"`
	// Rebooted are the ids of the reboot requests that the inspection's own
	// boots have served.
	Rebooted []string `json:"rebooted,omitempty"`
	// Waiting is set while the host waits for a slot to be inspected in.
	Waiting *Waiting `json:"waiting,omitempty"`
	// Arch is the CPU architecture, "" while unknown.
	Arch  string                   `json:"arch,omitempty"`
	Times v1alpha1.OperationMetric `json:"times,omitzero"`
}

// PhaseOfDisk is what is on a host's disk, as far as metalbus brought it there.
type PhaseOfDisk string

// The phases of a disk.
const (
	Unprepared  PhaseOfDisk = ""            // not yet prepared
	Prepared    PhaseOfDisk = "prepared"    // clean, waiting for an image
	Deploying   PhaseOfDisk = "deploying"   // an image is being brought there
	Deployed    PhaseOfDisk = "deployed"    // the image is there
	Undeploying PhaseOfDisk = "undeploying" // being cleaned
	External    PhaseOfDisk = "external"    // somebody else's, not to be touched
)

// The facts of the provisioning section beside those of its operations.
const (
	ExternalEntered   = "external.entered" // the disk is now somebody else's
	ExternalLeft      = "external.left"    // the disk is ours again, with the image that is said to be there
	PrepareBegun      = "prepare.begun"    // settings are to be applied, and nothing was written for it yet
	DeployBegun       = "deploy.begun"     // likewise for an image
	UndeployBegun     = "undeploy.begun"   // likewise for its taking off
	UndeployAbandoned = "undeploy.abandoned"
	SlotAwaited       = "slot.awaited" // the host waits for its turn; also a fact of the inspection section
	AttemptsReset     = "attempts.reset"
)

// Provisioning is what is on the host's disk.
type Provisioning struct {
	Work
	Phase PhaseOfDisk `json:"phase,omitempty"`
	// Image and CustomDeploy are what was deployed, or what is being deployed.
	Image        v1alpha1.Image         `json:"image,omitzero"`
	CustomDeploy *v1alpha1.CustomDeploy `json:"customDeploy,omitempty"`
	// BootMode is the boot mode of the deployment.
	BootMode v1alpha1.BootMode `json:"bootMode,omitempty"`
	// Node is the backend's node by which it was brought there.
	Node string `json:"node,omitempty"`
	// RAID is what was applied when the host was prepared.
	RAID *v1alpha1.RAIDConfig `json:"raid,omitempty"`
	// Firmware is what was done to the firmware, nil if nothing ever was.
	Firmware *FirmwareDone `json:"firmware,omitempty"`
	// Handed is what of the firmware the operation under way has claimed to change.
	Handed *FirmwareWish `json:"handed,omitempty"`
	// FirmwareRead is what came of reading the firmware since it was registered.
	FirmwareRead FirmwareRead `json:"firmwareRead,omitzero"`
	// InUseSince is when the machine came into use.
	InUseSince time.Time `json:"inUseSince,omitzero"`
	// LastAttempted is the image of the last deployment that was begun.
	LastAttempted *v1alpha1.Image `json:"lastAttempted,omitempty"`
	// Attempts counts failed deployments of that image in a row.
	Attempts int `json:"attempts,omitempty"`
	// Retry is the user's request to try again that these attempts know of.
	Retry string `json:"retry,omitempty"`
	// Rebooted are the ids of the reboot requests that the deployment's own
	// boots have served.
	Rebooted []string `json:"rebooted,omitempty"`
	// Waiting is set while the host waits for a provisioning slot.
	Waiting *Waiting `json:"waiting,omitempty"`
	// Media is what is in the host's virtual CD drive.
	Media VirtualCD `json:"media,omitzero"`
	// Abandoned says what was left undone when the host had to go.
	Abandoned        string                   `json:"abandoned,omitempty"`
	ProvisionTimes   v1alpha1.OperationMetric `json:"provisionTimes,omitzero"`
	DeprovisionTimes v1alpha1.OperationMetric `json:"deprovisionTimes,omitzero"`
}

// VirtualCD is a virtual CD drive, as far as metalbus put something into it. It
// is brought to what is wanted before the host boots, once for each time that
// the host is off, and emptied before the host or its image has to go.
type VirtualCD struct {
	// URL is the data image that is in the drive, "" if none of ours is.
	URL string `json:"url,omitempty"`
	// Unsure: a write did not end well, so the drive may hold what URL does not say.
	Unsure bool `json:"unsure,omitempty"`
	// Tried is what was to be in the drive at the newest try, "" for nothing.
	Tried   string    `json:"tried,omitempty"`
	TriedAt time.Time `json:"triedAt,omitzero"`
	// Off is the time off of the newest try: when the host was seen to go off.
	Off time.Time `json:"off,omitzero"`
	// Failures counts tries in vain in a row. Problem is what the newest met: it
	// is told on the DataImage, and none of the host's.
	Failures int      `json:"failures,omitempty"`
	Problem  *Problem `json:"problem,omitempty"`
	// GivenUp: the drive could not be emptied when the host or its image had
	// to go, which went without that.
	GivenUp bool `json:"givenUp,omitempty"`
}

// Waiting is a place in the queue for a provisioning slot.
type Waiting struct {
	// Kind is the operation that waits.
	Kind  Kind      `json:"kind"`
	Since time.Time `json:"since"`
	// Position is how many hosts were to have their turn first, and this one,
	// when that was last told; 0 if it was not.
	Position int `json:"position,omitempty"`
}

// The facts of the power section beside those of its operations.
const (
	PowerChanged  = "changed"        // the host was found on, or off
	FaultChanged  = "fault.changed"  // the backend can or cannot control the host's power
	RebootServed  = "reboot.served"  // the host was off already when a reboot was asked for
	HealthChanged = "health.changed" // the hardware's own health report changed

	MaintenanceChanged = "maintenance.changed" // somebody had the backend leave the host alone, or ended that
	StateChanged       = "state.changed"       // the backend has the host in a state that is not the host's, or no longer

	OffAbandoned = "off.abandoned" // the host had to go before it could be powered off
)

// Subscription is a subscription to a BMC's events.
type Subscription struct {
	// UID and Name are those of the BMCEventSubscription.
	UID  string `json:"uid"`
	Name string `json:"name,omitempty"`
	// Destination and Context are what the BMC was asked for, by which the
	// subscription is known there.
	Destination string `json:"destination,omitempty"`
	Context     string `json:"context,omitempty"`
	// ID is its name at the BMC, "" while it is not known to be there.
	ID string `json:"id,omitempty"`
	// Failures counts tries in vain in a row: to make it, or to end it. Problem
	// is what the newest, at TriedAt, met. It is none of the host's.
	Failures int       `json:"failures,omitempty"`
	Ending   bool      `json:"ending,omitempty"`
	TriedAt  time.Time `json:"triedAt,omitzero"`
	Problem  *Problem  `json:"problem,omitempty"`
	// GivenUp: it could not be ended when the host had to go.
	GivenUp bool `json:"givenUp,omitempty"`
}

// Power is whether the host is on.
type Power struct {
	Work
	// On is the observed power state, nil while unknown.
	On *bool `json:"on,omitempty"`
	// SeenAt is when On was observed to change.
	SeenAt time.Time `json:"seenAt,omitzero"`
	// Handled are the ids of the reboot requests for which the host has been off.
	Handled []string `json:"handled,omitempty"`
	// OffForDelete: the host was powered off before its deletion, or that was given up.
	OffForDelete bool `json:"offForDelete,omitempty"`
	// Abandoned says what was left undone when the host had to go.
	Abandoned string `json:"abandoned,omitempty"`
	// Subscriptions are those to the BMC's events that were made, or may have been.
	Subscriptions []Subscription `json:"subscriptions,omitempty"`
	// Fault is set while the backend cannot control the power.
	Fault string `json:"fault,omitempty"`
	// Health is OK, Warning, Critical, or "" while unknown.
	Health string `json:"health,omitempty"`
	// Maintenance is why somebody else has the backend leave the host alone, ""
	// while nobody does.
	Maintenance string `json:"maintenance,omitempty"`
	// Astray is the state in which the backend has the host, if somebody else
	// brought it there and it is not that of such a host, "" if all is well.
	Astray string `json:"astray,omitempty"`
	// Suspect is who is thought to have made the last change of power, maintenance
	// or state, "" if that was metalbus.
	Suspect string `json:"suspect,omitempty"`
}
