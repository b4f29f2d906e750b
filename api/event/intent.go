package event

import (
	"time"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// The facts of the intent section.
const (
	Created          = "created"         // the host is new on the bus
	Changed          = "changed"         // its specification or a Secret that it names changed
	Paused           = "paused"          // nothing is read from it or done to it until resumed
	Unpaused         = "resumed"         // no longer paused
	DetachAsked      = "detached"        // the detached annotation was set
	AttachAsked      = "attached"        // the detached annotation was removed
	Deleting         = "deleting"        // the object has a deletion time
	Restored         = "restored"        // rebuilt from the object's status, since the bus did not know it
	Forgotten        = "forgotten"       // the object is gone; the host's events may be purged
	RetryRequested   = "retryrequested"  // somebody asked to try again now
	RebootRequested  = "rebootrequested" // a reboot annotation was set
	InspectRequested = "inspectrequested"
)

// Intent is what people ask of a host: its BareMetalHost, and what the
// projector knows about the objects that it names. It holds no secret content.
type Intent struct {
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Generation int64  `json:"generation,omitempty"`
	// CreatedAt is the creation time of the BareMetalHost.
	CreatedAt time.Time `json:"createdAt,omitzero"`
	// Spec is the specification as it is in Kubernetes. While the host is
	// paused it stays what it was before.
	Spec v1alpha1.BareMetalHostSpec `json:"spec"`
	// Labels of the object, as far as the choice of a backend may ask for them.
	Labels map[string]string `json:"labels,omitempty"`
	// Backend is the value of the backend annotation, "" for the default.
	Backend string `json:"backend,omitempty"`

	// DeletedAt is the deletion time; zero while the host is to stay.
	DeletedAt time.Time `json:"deletedAt,omitzero"`
	Paused    bool      `json:"paused,omitempty"`
	// Detached is set while the detached annotation is there.
	Detached *DetachRequest `json:"detached,omitempty"`
	// InspectionDisabled: by the annotation or by the field.
	InspectionDisabled bool `json:"inspectionDisabled,omitempty"`
	// InspectRequest identifies a request for another inspection, "" for none.
	InspectRequest string `json:"inspectRequest,omitempty"`
	// Reboots are the reboot annotations, sorted by key.
	Reboots []RebootRequest `json:"reboots,omitempty"`
	// Retry is the value of the retry annotation.
	Retry string `json:"retry,omitempty"`
	// ForceDelete is set while the force-delete annotation is there.
	ForceDelete bool `json:"forceDelete,omitempty"`

	// Credentials is the Secret with the BMC's user name and password.
	Credentials SecretRef `json:"credentials,omitzero"`
	// Hardware is the digest of hardware details that somebody supplied by
	// annotation or HardwareData object, "" for none. The details themselves
	// are in the data stream.
	Hardware       string `json:"hardware,omitempty"`
	HardwareSource string `json:"hardwareSource,omitempty"`

	// Ramdisk is what the host is to boot for inspection, cleaning and
	// deployment; nil where no image is made for each host.
	Ramdisk *RamdiskWish `json:"ramdisk,omitempty"`
	// DataImage is what the virtual CD of the host is to hold, nil for nothing:
	// there is no DataImage of its name, or that is being deleted.
	DataImage *DataImageWish `json:"dataImage,omitempty"`

	// Subscriptions are what the BMC is asked to send its events to, by uid.
	Subscriptions []SubscriptionWish `json:"subscriptions,omitempty"`

	// Firmware is what is to be changed of the host's firmware, nil for nothing.
	Firmware *FirmwareWish `json:"firmware,omitempty"`

	// Invalid says what in the specification is refused, in the words of
	// admission. Nothing that it is about, or that comes after that in a host's
	// life, is begun before it is put right. A machine that runs stays as it is.
	Invalid *Problem `json:"invalid,omitempty"`

	// Hash identifies the wishes above; events with equal hashes ask the same.
	Hash string `json:"hash"`
	// Base holds the sections of a host that was rebuilt from its object. A
	// section of its own on the bus wins over it.
	Base *Base `json:"base,omitempty"`
}

// RamdiskWish is what the PreprovisioningImage of a host says: the image that is
// to be booted, or else what is waited for, or what is wrong.
type RamdiskWish struct {
	// ISO is where the image lies, if it comes in that form.
	ISO string `json:"iso,omitempty"`
	// Kernel, Initrd and Params are for the other form; without a kernel it is
	// that of the backend.
	Kernel string `json:"kernel,omitempty"`
	Initrd string `json:"initrd,omitempty"`
	Params string `json:"params,omitempty"`
	// Plain: the host's own network data are not in the image, but are to be
	// handed over beside it.
	Plain bool `json:"plain,omitempty"`
	// Waits says what is waited for until the image is there.
	Waits string `json:"waits,omitempty"`
	// Problem says why there will be none before somebody mends it.
	Problem string `json:"problem,omitempty"`
}

// DetachRequest is the detached annotation.
type DetachRequest struct {
	// Delay holds up a deletion until the host is attached again.
	Delay bool `json:"delay,omitempty"`
	// Force detaches a busy host too.
	Force bool `json:"force,omitempty"`
}

// RebootRequest is one reboot annotation.
type RebootRequest struct {
	// Key is what follows "reboot.metal3.io/", "" for the plain annotation.
	Key   string              `json:"key,omitempty"`
	Mode  v1alpha1.RebootMode `json:"mode,omitempty"`
	Force bool                `json:"force,omitempty"`
	// ID is new for each time that the annotation is set anew.
	ID string `json:"id"`
}

// DataImageWish is a DataImage.
type DataImageWish struct {
	URL string `json:"url"`
}

// SubscriptionWish is a BMCEventSubscription that is to stay.
type SubscriptionWish struct {
	UID         string `json:"uid"`
	Name        string `json:"name"`
	Destination string `json:"destination"`
	Context     string `json:"context,omitempty"`
	// Headers is the Secret, in the host's namespace, with HTTP headers that the
	// BMC sends along.
	Headers SecretRef `json:"headers,omitzero"`
}

// SecretRef names a version of a Secret, never its content.
type SecretRef struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Version is the Secret's resourceVersion, "" while it does not exist.
	Version string `json:"version,omitempty"`
	// MissingSince is when the Secret was first looked for in vain.
	MissingSince time.Time `json:"missingSince,omitzero"`
}

// Base is the part of a host's state that its own services write.
type Base struct {
	Registration *Registration `json:"registration,omitempty"`
	Inspection   *Inspection   `json:"inspection,omitempty"`
	Provisioning *Provisioning `json:"provisioning,omitempty"`
	Power        *Power        `json:"power,omitempty"`
	// Rev is the host's revision that these sections show: a section of its own
	// on the bus wins over them if it is newer than that.
	Rev uint64 `json:"rev,omitempty"`
	// Lost counts the revisions that the object had seen and the bus has not.
	Lost uint64 `json:"lost,omitempty"`
	// OldUID is the uid that the host had before it was moved here.
	OldUID string `json:"oldUID,omitempty"`
}

// Names of documents in the data stream, by host.
const (
	DataHardware = "hardware" // v1alpha1.HardwareDetails that are in effect
	DataSupplied = "supplied" // v1alpha1.HardwareDetails that the user supplied
	DataFirmware = "firmware" // Firmware as it was read last
)

// Has reports whether the base holds the section.
func (b Base) Has(s Section) bool {
	switch s {
	case SectionRegistration:
		return b.Registration != nil
	case SectionInspection:
		return b.Inspection != nil
	case SectionProvisioning:
		return b.Provisioning != nil
	case SectionPower:
		return b.Power != nil
	default:
		return false
	}
}
