package v1alpha1

// OperationalStatus says how a host is doing, beside the state of its life.
//
// +kubebuilder:validation:Enum="";OK;discovered;error;delayed;detached;servicing
type OperationalStatus string

const (
	// OperationalStatusOK is a host with no trouble.
	OperationalStatusOK OperationalStatus = "OK"
	// OperationalStatusDiscovered is a host that has no BMC details yet.
	OperationalStatusDiscovered OperationalStatus = "discovered"
	// OperationalStatusError is a host whose last operation failed; errorType
	// and errorMessage say how.
	OperationalStatusError OperationalStatus = "error"
	// OperationalStatusDelayed is a host that waits for others to finish,
	// since the backend takes only so many at a time.
	OperationalStatusDelayed OperationalStatus = "delayed"
	// OperationalStatusDetached is a host that was taken out of its backend on
	// request.
	OperationalStatusDetached OperationalStatus = "detached"
	// OperationalStatusServicing is a provisioned host whose firmware is being
	// changed.
	OperationalStatusServicing OperationalStatus = "servicing"
)

// ErrorType says which kind of operation failed.
//
// +kubebuilder:validation:Enum=provisioned registration error;registration error;inspection error;preparation error;provisioning error;power management error;detach error;servicing error
type ErrorType string

const (
	// ProvisionedRegistrationError is a provisioned host that its backend lost
	// and could not take back. The machine goes on running.
	ProvisionedRegistrationError ErrorType = "provisioned registration error"
	// RegistrationError is a BMC that could not be reached or refused us, or
	// credentials that are missing or wrong.
	RegistrationError ErrorType = "registration error"
	// InspectionError is an inspection that failed.
	InspectionError ErrorType = "inspection error"
	// PreparationError is a RAID, firmware or cleaning step that failed before
	// the host became available.
	PreparationError ErrorType = "preparation error"
	// ProvisioningError is an image that could not be put on the host, or
	// taken off it.
	ProvisioningError ErrorType = "provisioning error"
	// PowerManagementError is a machine that could not be switched on or off.
	PowerManagementError ErrorType = "power management error"
	// DetachError is a host that could not be taken out of its backend.
	DetachError ErrorType = "detach error"
	// ServicingError is a firmware change on a provisioned host that failed.
	ServicingError ErrorType = "servicing error"
)

// ProvisioningState is where a host stands in its life.
type ProvisioningState string

const (
	// StateNone is a host that nobody has looked at yet.
	StateNone ProvisioningState = ""
	// StateUnmanaged is a host without BMC details: nothing can be done to it.
	StateUnmanaged ProvisioningState = "unmanaged"
	// StateRegistering is a host whose BMC is being tried.
	StateRegistering ProvisioningState = "registering"
	// StateInspecting is a host whose hardware is being looked at.
	StateInspecting ProvisioningState = "inspecting"
	// StateMatchProfile is no longer entered; old objects may still hold it.
	StateMatchProfile ProvisioningState = "match profile"
	// StatePreparing is a host whose RAID and firmware are being set.
	StatePreparing ProvisioningState = "preparing"
	// StateReady is the old name of StateAvailable; old objects may hold it.
	StateReady ProvisioningState = "ready"
	// StateAvailable is a host that may be used.
	StateAvailable ProvisioningState = "available"
	// StateProvisioning is a host that an image is being put on.
	StateProvisioning ProvisioningState = "provisioning"
	// StateProvisioned is a host that runs its image.
	StateProvisioned ProvisioningState = "provisioned"
	// StateExternallyProvisioned is a host that runs what somebody else put on
	// it; only its power is managed.
	StateExternallyProvisioned ProvisioningState = "externally provisioned"
	// StateDeprovisioning is a host that its image is being taken off.
	StateDeprovisioning ProvisioningState = "deprovisioning"
	// StatePoweringOffBeforeDelete is a host that is switched off because it
	// is being deleted.
	StatePoweringOffBeforeDelete ProvisioningState = "powering off before delete"
	// StateDeleting is a host that is being removed from its backend.
	StateDeleting ProvisioningState = "deleting"
)
