package v1alpha1

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Annotations on a BareMetalHost.
const (
	// PausedAnnotation stops all work on a host for as long as it is present,
	// whatever its value. Deletion waits too.
	PausedAnnotation = "baremetalhost.metal3.io/paused"
	// DetachedAnnotation takes a host out of its backend without touching the
	// machine. Any value will do; JSON such as {"deleteAction":"delay"} is read
	// as DetachedAnnotationArguments.
	DetachedAnnotation = "baremetalhost.metal3.io/detached"
	// StatusAnnotation holds a whole BareMetalHostStatus as JSON. A host whose
	// status is empty takes it over, so that a moved or restored object goes on
	// where it was.
	StatusAnnotation = "baremetalhost.metal3.io/status"
	// RebootAnnotationPrefix asks for one reboot when it is the whole key, and
	// holds the host off while a key reboot.metal3.io/name is present, name
	// being that of the client. The value is empty, or JSON such as
	// {"mode":"hard"}, which is read as RebootAnnotationArguments.
	RebootAnnotationPrefix = "reboot.metal3.io"
	// InspectAnnotationPrefix asks for a new inspection if the value is empty,
	// and forbids inspection if it is "disabled".
	InspectAnnotationPrefix = "inspect.metal3.io"
	// HardwareDetailsAnnotation holds HardwareDetails as JSON for a host that
	// is not inspected.
	HardwareDetailsAnnotation = InspectAnnotationPrefix + "/hardwaredetails"
	// InspectAnnotationValueDisabled is the value of InspectAnnotationPrefix
	// that forbids inspection.
	InspectAnnotationValueDisabled = "disabled"
	// AllowDeletionAnnotation lets a host be deleted that somebody uses, where
	// deletion of such hosts is guarded. The value does not matter.
	AllowDeletionAnnotation = "metalbus.io/allow-deletion"
	// BackendAnnotation names the backend that is to hold the host, where
	// several could: redfish or ironic.
	BackendAnnotation = "metalbus.io/backend"
	// RetryAnnotation has what failed tried again at once, each time that its
	// value changes. Any value will do, such as the time.
	RetryAnnotation = "metalbus.io/retry"
	// ForceDeleteAnnotation has a deletion give up at the first failure of
	// what it would else try a few times. The value does not matter.
	ForceDeleteAnnotation = "metalbus.io/force-delete"
	// RevisionAnnotation says which revision of the host the status annotation
	// shows. It is written by the operator only.
	RevisionAnnotation = "metalbus.io/revision"
	// ServedRebootAnnotation names the last request for a reboot that was taken
	// away as served. It is written by the operator only.
	ServedRebootAnnotation = "metalbus.io/served-reboot"
	// ServedInspectAnnotation names the last request for an inspection that was
	// taken away as served. It is written by the operator only.
	ServedInspectAnnotation = "metalbus.io/served-inspect"
)

// Keys of other projects that change what may be done to a host.
const (
	// DeleteForMoveAnnotation is put by clusterctl on the object that it left
	// behind, just before it deletes it. The machine now belongs to another
	// cluster and must not be touched.
	DeleteForMoveAnnotation = "clusterctl.cluster.x-k8s.io/delete-for-move"
	// BlockMoveAnnotation makes clusterctl wait before it moves the object.
	BlockMoveAnnotation = "clusterctl.cluster.x-k8s.io/block-move"
	// FailureDomainLabelName is the label on a host that names the failure
	// domain it stands in. HostClaims prefer hosts by it.
	FailureDomainLabelName = "infrastructure.cluster.x-k8s.io/failure-domain"
)

// The label on Secrets that belong to hosts.
const (
	// LabelEnvironmentName is the key. Only Secrets that have it are watched;
	// it is added to each Secret that a host refers to.
	LabelEnvironmentName = "environment.metal3.io"
	// LabelEnvironmentValue is the value that is added. Any other is left.
	LabelEnvironmentValue = "baremetal"
)

// Finalizers.
const (
	// BareMetalHostFinalizer keeps a host until its machine was let go.
	BareMetalHostFinalizer = "baremetalhost.metal3.io"
	// SecretFinalizer keeps the Secrets that the end of a host's life needs:
	// the BMC's credentials and the network data of the ramdisk.
	SecretFinalizer = BareMetalHostFinalizer + "/secret"
	// HardwareDataFinalizer keeps HardwareData for as long as its host.
	HardwareDataFinalizer = BareMetalHostFinalizer + "/hardwareData"
	// HostPreprovisioningImageFinalizer keeps the PreprovisioningImage of a
	// host for as long as the host may boot it.
	HostPreprovisioningImageFinalizer = BareMetalHostFinalizer + "/preprovisioningImage"
)

// RebootMode says how a running machine is switched off for a reboot.
type RebootMode string

const (
	// RebootModeHard cuts the power at once.
	RebootModeHard RebootMode = "hard"
	// RebootModeSoft asks the operating system to shut down, and cuts the
	// power if it does not.
	RebootModeSoft RebootMode = "soft"
)

// RebootAnnotationArguments is the JSON value of a reboot annotation.
type RebootAnnotationArguments struct {
	// Mode is how the machine is switched off; soft if not given.
	Mode RebootMode `json:"mode"`
	// Force asks for the reboot in states too in which it interrupts work:
	// available, inspecting and provisioning.
	Force bool `json:"force"`
}

// ParseRebootArguments reads the value of a reboot annotation. An empty value
// is a soft reboot without force. For a value that is no JSON object it returns
// the same, and an error.
func ParseRebootArguments(value string) (RebootAnnotationArguments, error) {
	soft := RebootAnnotationArguments{Mode: RebootModeSoft}
	if value == "" {
		return soft, nil
	}
	args := soft
	if err := json.Unmarshal([]byte(value), &args); err != nil {
		return soft, fmt.Errorf("parse reboot arguments: %w", err)
	}
	if args.Mode == "" {
		args.Mode = RebootModeSoft
	}
	return args, nil
}

// IsRebootAnnotation says whether key asks for a reboot: the bare key, or the
// key with the name of a client behind a slash.
func IsRebootAnnotation(key string) bool {
	return key == RebootAnnotationPrefix || strings.HasPrefix(key, RebootAnnotationPrefix+"/")
}

// DetachedDeleteAction says what the deletion of a detached host does.
type DetachedDeleteAction string

const (
	// DetachedDeleteActionDelay waits with the deletion until the annotation
	// is gone, and deletes then as if the host had never been detached.
	DetachedDeleteActionDelay DetachedDeleteAction = "delay"
	// DetachedDeleteActionDelete removes the object and leaves the machine as
	// it is.
	DetachedDeleteActionDelete DetachedDeleteAction = "delete"
)

// DetachedAnnotationArguments is the JSON value of DetachedAnnotation.
type DetachedAnnotationArguments struct {
	// DeleteAction says what deletion does; delete if not given.
	DeleteAction DetachedDeleteAction `json:"deleteAction,omitempty"`
	// Force detaches in any state, and aborts the work that is going on.
	Force bool `json:"force,omitempty"`
}

// ParseDetachedArguments reads the value of DetachedAnnotation. People and
// programs write plain words there, so a value that is no JSON object counts as
// no arguments.
func ParseDetachedArguments(value string) DetachedAnnotationArguments {
	var args DetachedAnnotationArguments
	if err := json.Unmarshal([]byte(value), &args); err != nil {
		return DetachedAnnotationArguments{}
	}
	return args
}
