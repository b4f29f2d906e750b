package v1alpha1

// Condition types and reasons of a BareMetalHost. Each type says first when it
// is True.
const (
	// ManageableCondition is True once the BMC has let us in.
	ManageableCondition = "Manageable"
	// ManageableReason goes with True.
	ManageableReason = "Manageable"
	// NotManagedReason is a host without BMC details.
	NotManagedReason = "NotManaged"
	// RegisteringReason is a host whose BMC is being tried. It is used with
	// ProgressingCondition too.
	RegisteringReason = "Registering"
	// RegistrationFailedReason is a host whose BMC could not be used.
	RegistrationFailedReason = "RegistrationFailed"
	// PowerFailureReason is a machine that does not obey power commands.
	PowerFailureReason = "PowerFailure"

	// ProvisionedCondition is True while the host runs its image, or what
	// somebody else put on it.
	ProvisionedCondition = "Provisioned"
	// ProvisionedReason goes with True, here and in ReadyCondition.
	ProvisionedReason = "Provisioned"
	// NotProvisionedReason goes with False, here and in ReadyCondition.
	NotProvisionedReason = "NotProvisioned"

	// ReadyCondition is True while the host runs its image and nothing is
	// wrong or going on.
	ReadyCondition = "Ready"
	// ErrorReason is a host whose last operation failed.
	ErrorReason = "Error"
	// ServicingReason is a host whose firmware is being changed.
	ServicingReason = "Servicing"
	// DetachedReason is a host that was taken out of its backend. It is used
	// with ProgressingCondition too.
	DetachedReason = "Detached"

	// AvailableForProvisioningCondition is True while the host may be given an
	// image.
	AvailableForProvisioningCondition = "AvailableForProvisioning"
	// AvailableReason goes with True.
	AvailableReason = "Available"
	// NotAvailableReason goes with False.
	NotAvailableReason = "NotAvailable"
	// NotManageableReason is kept for programs that name it; no host gets it.
	NotManageableReason = "NotManageableReason"

	// ProgressingCondition is True while the host is on its way from one
	// resting state to another.
	ProgressingCondition = "Progressing"
	// InspectingReason is a host whose hardware is being looked at.
	InspectingReason = "Inspecting"
	// PreparingReason is a host whose RAID and firmware are being set.
	PreparingReason = "Preparing"
	// ProvisioningReason is a host that an image is being put on.
	ProvisioningReason = "Provisioning"
	// DeprovisioningReason is a host that its image is being taken off.
	DeprovisioningReason = "Deprovisioning"
	// PoweringOffBeforeDeleteReason is a host that is switched off because it
	// is being deleted.
	PoweringOffBeforeDeleteReason = "PoweringOffBeforeDelete"
	// DeletingReason is a host that is being removed from its backend.
	DeletingReason = "Deleting"
	// NotProgressingReason goes with False.
	NotProgressingReason = "NotProgressing"

	// HealthyCondition is True while the BMC says that the hardware is well.
	HealthyCondition = "Healthy"
	// HealthyReason goes with True.
	HealthyReason = "Healthy"
	// UnknownHealthReason goes with Unknown: the BMC has said nothing.
	UnknownHealthReason = "Unknown"
	// WarningHealthReason is hardware that needs looking after.
	WarningHealthReason = "Warning"
	// CriticalHealthReason is hardware that has failed.
	CriticalHealthReason = "CriticalError"
)
