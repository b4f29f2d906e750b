package projector

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// baseOf is what a host's status remembers of its life, as sections. digest
// names its hardware in the data stream, "" if it has none. Operations are not
// remembered: a state in the middle of one comes back as the state of the disk,
// and the services look outside before they go on. It is nil for a host that
// has not begun its life.
func baseOf(o *v1alpha1.BareMetalHost, digest string) *event.Base {
	o = &v1alpha1.BareMetalHost{ObjectMeta: o.ObjectMeta, Spec: o.Spec, Status: withoutLogins(o.Status)}
	s := o.Status
	if s.Provisioning.State == v1alpha1.StateNone {
		return nil
	}
	b := &event.Base{Registration: registrationOf(o), Inspection: inspectionOf(s, digest), Provisioning: provisioningOf(o), Power: powerOf(s)}
	if s.ErrorType != "" {
		remember(b, s)
	}
	return b
}

func registrationOf(o *v1alpha1.BareMetalHost) *event.Registration {
	s := o.Status
	r := &event.Registration{
		Node: s.Provisioning.ID, Tried: s.TriedCredentials, Good: s.GoodCredentials, HardwareProfile: s.HardwareProfile,
		Times: s.OperationHistory.Register, Detached: s.OperationalStatus == v1alpha1.OperationalStatusDetached,
	}
	switch s.Provisioning.State {
	case v1alpha1.StateUnmanaged, v1alpha1.StateRegistering:
	case v1alpha1.StateDeleting:
		r.Registered = r.Node != ""
	default:
		r.Registered = true
	}
	if r.Registered {
		// The address may not be changed while the host is registered, so the
		// one that was accepted is the one that is there.
		r.Address = v1alpha1.WithoutLogin(o.Spec.BMC.Address)
		r.External = s.Provisioning.State == v1alpha1.StateExternallyProvisioned
		r.Adopted = r.Node // what runs came into use, or was taken over, by this node
	}
	return r
}

func inspectionOf(s v1alpha1.BareMetalHostStatus, digest string) *event.Inspection {
	i := &event.Inspection{Digest: digest, Times: s.OperationHistory.Inspect}
	if s.HardwareDetails != nil {
		i.Arch, i.Source = s.HardwareDetails.CPU.Arch, "status"
	}
	switch s.Provisioning.State {
	case v1alpha1.StateUnmanaged, v1alpha1.StateRegistering, v1alpha1.StateInspecting:
	case v1alpha1.StatePoweringOffBeforeDelete, v1alpha1.StateDeleting: // which may have come from anywhere
		i.Done = digest != ""
	default:
		i.Done = true
	}
	return i
}

func provisioningOf(o *v1alpha1.BareMetalHost) *event.Provisioning {
	s := o.Status
	p := &event.Provisioning{
		RAID: s.Provisioning.RAID, LastAttempted: s.LastAttemptedImage, Attempts: s.ProvisioningFailCount,
		ProvisionTimes: s.OperationHistory.Provision, DeprovisionTimes: s.OperationHistory.Deprovision,
	}
	switch s.Provisioning.State {
	case v1alpha1.StateAvailable, v1alpha1.StateReady:
		p.Phase = event.Prepared
	case v1alpha1.StateProvisioning:
		p.Phase = event.Deploying
	case v1alpha1.StateProvisioned:
		p.Phase = event.Deployed
	case v1alpha1.StateDeprovisioning:
		p.Phase = event.Undeploying
	case v1alpha1.StateExternallyProvisioned:
		p.Phase = event.External
	case v1alpha1.StatePoweringOffBeforeDelete, v1alpha1.StateDeleting:
		p.Phase = leavingPhase(o)
	default:
		p.Phase = event.Unprepared
	}
	switch p.Phase {
	case event.Deploying, event.Deployed, event.Undeploying:
		p.Image, p.CustomDeploy, p.BootMode = s.Provisioning.Image, s.Provisioning.CustomDeploy, s.Provisioning.BootMode
		p.Node = s.Provisioning.ID
	default:
	}
	return p
}

// leavingPhase is the disk of a host that was on its way out, should it stay.
func leavingPhase(o *v1alpha1.BareMetalHost) event.PhaseOfDisk {
	switch {
	case o.Spec.ExternallyProvisioned:
		return event.External
	case o.Status.HardwareDetails != nil:
		return event.Prepared
	default:
		return event.Unprepared
	}
}

func powerOf(s v1alpha1.BareMetalHostStatus) *event.Power {
	p := &event.Power{OffForDelete: s.Provisioning.State == v1alpha1.StateDeleting}
	if s.PoweredOn { // off may mean unknown as well
		on := true
		p.On = &on
		if s.LastUpdated != nil {
			p.SeenAt = s.LastUpdated.UTC()
		}
	}
	for _, c := range s.Conditions {
		switch {
		case c.Type == v1alpha1.HealthyCondition:
			p.Health = map[string]string{
				v1alpha1.HealthyReason: "OK", v1alpha1.WarningHealthReason: "Warning", v1alpha1.CriticalHealthReason: "Critical",
			}[c.Reason]
		case c.Type == v1alpha1.ManageableCondition && c.Reason == v1alpha1.PowerFailureReason:
			p.Fault = c.Message
		}
	}
	return p
}

// remember puts the error that a status shows into the section it came from.
func remember(b *event.Base, s v1alpha1.BareMetalHostStatus) {
	problem := event.Problem{Type: s.ErrorType, Message: s.ErrorMessage}
	if s.LastUpdated != nil {
		problem.At = s.LastUpdated.UTC()
	}
	work := event.Work{Problem: &problem, Failures: s.ErrorCount}
	switch s.ErrorType {
	case v1alpha1.RegistrationError:
		problem.Kind, b.Registration.Work = event.Enroll, work
	case v1alpha1.ProvisionedRegistrationError:
		problem.Kind, b.Registration.Work = event.Adopt, work
	case v1alpha1.DetachError:
		problem.Kind, b.Registration.Work = event.Detach, work
	case v1alpha1.InspectionError:
		problem.Kind, b.Inspection.Work = event.Inspect, work
	case v1alpha1.PreparationError:
		problem.Kind, b.Provisioning.Work = event.Prepare, work
	case v1alpha1.ServicingError:
		problem.Kind, b.Provisioning.Work = event.Service, work
	case v1alpha1.ProvisioningError:
		problem.Kind, b.Provisioning.Work = event.Deploy, work
		if b.Provisioning.Phase == event.Undeploying {
			problem.Kind = event.Undeploy
		}
	case v1alpha1.PowerManagementError:
		problem.Kind, b.Power.Work = event.PowerOn, work
	}
}

// parseStatus reads a status annotation. The error says what is wrong with it.
func parseStatus(text string) (v1alpha1.BareMetalHostStatus, error) {
	var s v1alpha1.BareMetalHostStatus
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("it is not the JSON of a status: %w", err)
	}
	known := append(lifecycle.States(), v1alpha1.StateReady, v1alpha1.StateMatchProfile)
	if !slices.Contains(known, s.Provisioning.State) {
		return s, fmt.Errorf("provisioning.state %q is no state of a host", s.Provisioning.State)
	}
	return withoutLogins(s), nil
}

// withoutLogins is a status, which others may have written, without the logins of
// URLs.
func withoutLogins(s v1alpha1.BareMetalHostStatus) v1alpha1.BareMetalHostStatus {
	s = *s.DeepCopy()
	s.Provisioning.Image = s.Provisioning.Image.WithoutLogin()
	if last := s.LastAttemptedImage; last != nil {
		*last = last.WithoutLogin()
	}
	s.ErrorMessage = v1alpha1.WithoutLogins(s.ErrorMessage)
	for i := range s.Conditions {
		s.Conditions[i].Message = v1alpha1.WithoutLogins(s.Conditions[i].Message)
	}
	return s
}

// misread is the status that says why a status annotation is not followed. It
// stays an empty status: the host goes on once the annotation is put right, or
// taken away.
func misread(o *v1alpha1.BareMetalHost, why error) v1alpha1.BareMetalHostStatus {
	s := *o.Status.DeepCopy()
	s.OperationalStatus, s.ErrorType = v1alpha1.OperationalStatusError, v1alpha1.RegistrationError
	s.ErrorMessage = fmt.Sprintf("the annotation %s cannot be read: %s. Correct it to go on from the status in it, or remove it to begin anew",
		v1alpha1.StatusAnnotation, strings.TrimSpace(why.Error()))
	return s
}

// withoutMisread is a status that no longer complains of its annotation.
func withoutMisread(s v1alpha1.BareMetalHostStatus) v1alpha1.BareMetalHostStatus {
	s.OperationalStatus, s.ErrorType, s.ErrorMessage = "", "", ""
	return s
}
