package ironic

// Provision states of a node, as Ironic writes them.
const (
	StateEnroll        = "enroll"
	StateVerifying     = "verifying"
	StateManageable    = "manageable"
	StateAvailable     = "available"
	StateActive        = "active"
	StateDeploying     = "deploying"
	StateDeployWait    = "wait call-back"
	StateDeployFailed  = "deploy failed"
	StateDeployHold    = "deploy hold"
	StateDeleting      = "deleting"
	StateCleaning      = "cleaning"
	StateCleanWait     = "clean wait"
	StateCleanFailed   = "clean failed"
	StateCleanHold     = "clean hold"
	StateError         = "error"
	StateInspecting    = "inspecting"
	StateInspectWait   = "inspect wait"
	StateInspectFailed = "inspect failed"
	StateAdopting      = "adopting"
	StateAdoptFailed   = "adopt failed"
	StateServicing     = "servicing"
	StateServiceWait   = "service wait"
	StateServiceFailed = "service failed"
	StateServiceHold   = "service hold"
)

// Verbs that change a node's provision state. Rebuild is not among them: it powers
// a machine off before it looks whether its image can be had.
const (
	VerbManage  = "manage"
	VerbProvide = "provide"
	VerbInspect = "inspect"
	VerbAdopt   = "adopt"
	VerbClean   = "clean"
	VerbActive  = "active"
	VerbDeleted = "deleted"
	VerbAbort   = "abort"
	VerbService = "service"
)

// Power states of a node, and what may be asked for.
const (
	PowerOn       = "power on"
	PowerOff      = "power off"
	Rebooting     = "rebooting"
	SoftPowerOff  = "soft power off"
	SoftRebooting = "soft rebooting"
)

// Faults of a node.
const (
	FaultPower   = "power failure"
	FaultClean   = "clean failure"
	FaultService = "service failure"
)

// Busy reports whether the conductor is at work on a node in this state, so that
// nothing but its end can be awaited.
func Busy(state string) bool {
	switch state {
	case StateVerifying, StateDeploying, StateDeleting, StateCleaning, StateInspecting, StateAdopting, StateServicing:
		return true
	default:
		return false
	}
}

// Waiting reports whether a node in this state waits for its agent.
func Waiting(state string) bool {
	switch state {
	case StateDeployWait, StateCleanWait, StateInspectWait, StateServiceWait:
		return true
	default:
		return false
	}
}

// Failed reports whether something failed last in this state.
func Failed(state string) bool {
	switch state {
	case StateDeployFailed, StateCleanFailed, StateInspectFailed, StateAdoptFailed, StateServiceFailed, StateError:
		return true
	default:
		return false
	}
}
