package v1alpha1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BareMetalHostStatus is what is known of a host. All of it is written by the
// operator; users read it.
type BareMetalHostStatus struct {
	// operationalStatus is how the host is doing: OK, discovered, error,
	// delayed, detached or servicing; empty before the first look.
	OperationalStatus OperationalStatus `json:"operationalStatus"`

	// errorType is the kind of operation that failed. Absent while there is no
	// error.
	// +optional
	ErrorType ErrorType `json:"errorType,omitempty"`

	// lastUpdated is when the status was last written.
	// +optional
	LastUpdated *metav1.Time `json:"lastUpdated,omitempty"`

	// hardwareProfile is the profile in use; see spec.hardwareProfile.
	// +optional
	HardwareProfile string `json:"hardwareProfile,omitempty"`

	// hardware is what inspection found. The HardwareData of the host's name
	// has the same.
	// +optional
	HardwareDetails *HardwareDetails `json:"hardware,omitempty"`

	// provisioning is where the host stands in its life and what was put on
	// it.
	Provisioning ProvisionStatus `json:"provisioning"`

	// goodCredentials are the last credentials that the BMC took.
	// +optional
	GoodCredentials CredentialsStatus `json:"goodCredentials,omitempty"`

	// triedCredentials are the last credentials that were shown to the BMC.
	// +optional
	TriedCredentials CredentialsStatus `json:"triedCredentials,omitempty"`

	// errorMessage is what failed and what to do about it. Empty while there
	// is no error: a host with a message is not chosen by consumers.
	ErrorMessage string `json:"errorMessage"`

	// poweredOn is whether the machine was on when it was last looked at.
	PoweredOn bool `json:"poweredOn"`

	// operationHistory is when the last operation of each kind began and
	// ended.
	// +optional
	OperationHistory OperationHistory `json:"operationHistory,omitempty"`

	// errorCount is how often the operation failed in a row. The pause before
	// the next attempt grows with it. It is 0 again once the operation is done.
	// +kubebuilder:default:=0
	ErrorCount int `json:"errorCount"`

	// provisioningFailCount is how often provisioning failed in a row with
	// the image in lastAttemptedImage. At a limit (5 unless set otherwise) no
	// further attempt is made until the image is changed or taken away.
	// +kubebuilder:default:=0
	ProvisioningFailCount int `json:"provisioningFailCount"`

	// lastAttemptedImage is the image of the last attempt to provision.
	// +optional
	LastAttemptedImage *Image `json:"lastAttemptedImage,omitempty"`

	// conditions sum the status up for programs: Ready,
	// AvailableForProvisioning, Healthy, Manageable, Progressing and
	// Provisioned.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProvisionStatus is where a host stands in its life and what was put on it.
type ProvisionStatus struct {
	// state is where the host stands in its life, such as registering,
	// available or provisioned.
	State ProvisioningState `json:"state"`

	// ID is the backend's name for the host, such as an Ironic node's UUID.
	// It stays for as long as the backend keeps its record.
	ID string `json:"ID"`

	// image is what runs on the host; without a url, nothing.
	// +optional
	Image Image `json:"image,omitempty"`

	// rootDeviceHints are those that were used.
	// +optional
	RootDeviceHints *RootDeviceHints `json:"rootDeviceHints,omitempty"`

	// bootMode is the one that was used.
	// +optional
	BootMode BootMode `json:"bootMode,omitempty"`

	// raid is the RAID that was made.
	// +optional
	RAID *RAIDConfig `json:"raid,omitempty"`

	// firmware is no longer written.
	// +optional
	Firmware *FirmwareConfig `json:"firmware,omitempty"`

	// customDeploy is the deploy step that was run.
	// +optional
	CustomDeploy *CustomDeploy `json:"customDeploy,omitempty"`
}

// CredentialsStatus names one version of a Secret, so that a change of it can
// be told without keeping its content.
type CredentialsStatus struct {
	// credentials is the Secret.
	// +optional
	Reference *corev1.SecretReference `json:"credentials,omitempty"`

	// credentialsVersion is the Secret's resourceVersion.
	// +optional
	Version string `json:"credentialsVersion,omitempty"`
}

// Match says whether secret is the version that cs names.
func (cs CredentialsStatus) Match(secret corev1.Secret) bool {
	return cs.Reference != nil &&
		cs.Reference.Name == secret.Name &&
		cs.Reference.Namespace == secret.Namespace &&
		cs.Version == secret.ResourceVersion
}

// OperationMetric is when an operation began and ended. A time is null until
// it is known.
type OperationMetric struct {
	// start is when the operation began.
	// +nullable
	// +optional
	Start metav1.Time `json:"start,omitempty"`

	// end is when the operation ended.
	// +nullable
	// +optional
	End metav1.Time `json:"end,omitempty"`
}

// Duration is how long the operation took, and 0 for one that has not begun or
// not ended.
func (om OperationMetric) Duration() time.Duration {
	if om.Start.IsZero() || om.End.IsZero() {
		return 0
	}
	return om.End.Sub(om.Start.Time)
}

// OperationHistory is when the last operation of each kind began and ended.
type OperationHistory struct {
	// register is the last registration.
	// +optional
	Register OperationMetric `json:"register,omitempty"`

	// inspect is the last inspection.
	// +optional
	Inspect OperationMetric `json:"inspect,omitempty"`

	// provision is the last provisioning.
	// +optional
	Provision OperationMetric `json:"provision,omitempty"`

	// deprovision is the last deprovisioning.
	// +optional
	Deprovision OperationMetric `json:"deprovision,omitempty"`
}
