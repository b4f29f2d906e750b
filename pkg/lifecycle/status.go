package lifecycle

import (
	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Status is the host's status as a BareMetalHost shows it, but for what its
// writer adds: hardware, lastUpdated and the times of the conditions.
func Status(h Host) v1alpha1.BareMetalHostStatus {
	r, p := h.Registration, h.Provisioning
	s := v1alpha1.BareMetalHostStatus{
		OperationalStatus: OperationalStatus(h),
		HardwareProfile:   r.HardwareProfile,
		Provisioning: v1alpha1.ProvisionStatus{
			State: Stage(h), ID: r.Node, Image: p.Image, CustomDeploy: p.CustomDeploy, RAID: p.RAID, BootMode: bootMode(h),
		},
		GoodCredentials: r.Good, TriedCredentials: r.Tried,
		PoweredOn: h.Power.On != nil && *h.Power.On,
		OperationHistory: v1alpha1.OperationHistory{
			Register: registerTimes(h), Inspect: h.Inspection.Times, Provision: p.ProvisionTimes, Deprovision: p.DeprovisionTimes,
		},
		ErrorCount: failures(h), ProvisioningFailCount: p.Attempts, LastAttemptedImage: p.LastAttempted,
	}
	if r.Registered {
		s.Provisioning.RootDeviceHints = Hints(h)
	}
	if problem := Problem(h); problem != nil {
		s.ErrorType, s.ErrorMessage = problem.Type, Message(*problem)
	}
	s.Conditions = conditions(h)
	return s
}

// registerTimes: the first registration began when the host came.
func registerTimes(h Host) v1alpha1.OperationMetric {
	m := h.Registration.Times
	if m.Start.IsZero() && Managed(h.Intent) {
		m.Start = metav1Time(h.Intent.CreatedAt)
	}
	return m
}

func bootMode(h Host) v1alpha1.BootMode {
	switch h.Provisioning.Phase {
	case event.Deploying, event.Deployed, event.Undeploying:
		return h.Provisioning.BootMode
	default:
		if !Managed(h.Intent) {
			return ""
		}
		return BootMode(h.Intent)
	}
}

// OperationalStatus is how the host is in a word.
func OperationalStatus(h Host) v1alpha1.OperationalStatus {
	switch {
	case h.Registration.Detached:
		return v1alpha1.OperationalStatusDetached
	case Problem(h) != nil:
		return v1alpha1.OperationalStatusError
	case Stage(h) == v1alpha1.StateUnmanaged:
		return v1alpha1.OperationalStatusDiscovered
	case Waiting(h) != nil:
		return v1alpha1.OperationalStatusDelayed
	case h.Doing(event.Service):
		return v1alpha1.OperationalStatusServicing
	case h.Registration.Registered:
		return v1alpha1.OperationalStatusOK
	default:
		return ""
	}
}

// Problem is the problem that the host shows, nil if it has none: the one that
// stands first in a host's life, since what comes later waits for it.
func Problem(h Host) *event.Problem {
	for _, s := range event.Sections() {
		if p := h.Work(s).Problem; p != nil {
			return p
		}
	}
	return h.Intent.Invalid
}

// failures is the error count that the host shows: that of its problem, else
// that of the section whose turn it is.
func failures(h Host) int {
	for _, s := range event.Sections() {
		if w := h.Work(s); w.Problem != nil {
			return w.Failures
		}
	}
	return h.Work(turn(Stage(h))).Failures
}

// turn is the section that brings a host out of a state.
func turn(s v1alpha1.ProvisioningState) event.Section {
	switch s {
	case v1alpha1.StateRegistering, v1alpha1.StateDeleting:
		return event.SectionRegistration
	case v1alpha1.StateInspecting:
		return event.SectionInspection
	case v1alpha1.StatePreparing, v1alpha1.StateProvisioning, v1alpha1.StateDeprovisioning:
		return event.SectionProvisioning
	case v1alpha1.StateAvailable, v1alpha1.StateProvisioned, v1alpha1.StateExternallyProvisioned, v1alpha1.StatePoweringOffBeforeDelete:
		return event.SectionPower
	default:
		return event.SectionIntent
	}
}

// Message is a problem in one sentence or two: what is wrong and what to do.
func Message(p event.Problem) string {
	if p.Next == "" {
		return p.Message
	}
	return p.Message + ". " + p.Next
}

// NextStep is what a user can do about problems of a
// class, in general; a problem may say it better.
func NextStep(c event.Class) string {
	return map[event.Class]string{
		event.ClassCredentials: "Correct the user name and password in the Secret of spec.bmc.credentialsName; registration goes on by itself",
		event.ClassAddress:     "Correct spec.bmc.address",
		event.ClassUnreachable: "Check that the BMC is powered, on the network and reachable from here; it is tried again by itself",
		event.ClassTLS:         "Give the BMC a certificate that is trusted here, or set spec.bmc.disableCertificateVerification",
		event.ClassPower:       "Look at the BMC's event log; the power action is tried again by itself",
		event.ClassMedia:       "Check that the BMC may use virtual media and can reach the image's server",
		event.ClassInspection:  "Look at the BMC's inventory; inspection is tried again by itself",
		event.ClassImage:       "Correct spec.image; a change of it is tried at once",
		event.ClassHardware:    "Correct the RAID or firmware settings",
		event.ClassTimeout:     "It is tried again by itself; if it stays so look at the machine's console",
		event.ClassUnsupported: "Remove the setting, or choose a backend that can do it",
		event.ClassConflict:    "Remove one of the two claims",
		event.ClassBackend:     "Look at the backend's log; it is tried again by itself",
		event.ClassInternal:    "Report this as a fault of metalbus",
	}[c]
}

// stepOfAdoption is what helps if a running machine is not taken over for want of
// its image: to change spec.image, as elsewhere, would have it deprovisioned.
const stepOfAdoption = "The machine runs on, and is not touched. Leave spec.image as it is: the host is taken over once its image is reachable"

// NewProblem is a problem with the next step of its class.
func NewProblem(t v1alpha1.ErrorType, c event.Class, message string) event.Problem {
	p := event.Problem{Type: t, Class: c, Message: message, Next: NextStep(c)}
	if t == v1alpha1.ProvisionedRegistrationError && c == event.ClassImage {
		p.Next = stepOfAdoption
	}
	return p
}
