package registrar

import (
	"fmt"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// decide says what the registrar's turn is for a host: a task, or a step that
// needs no look at the outside.
func decide(h lifecycle.Host, now time.Time, grace time.Duration) (lifecycle.Task, lifecycle.Step) {
	stage := lifecycle.Stage(h)
	switch {
	case h.Intent.Paused || stage == v1alpha1.StateNone || h.Registration.Removed:
		return rest()
	case stage == v1alpha1.StateDeleting:
		return remove(h)
	case h.Intent.Detached != nil:
		return detach(h, stage)
	case stage == v1alpha1.StateUnmanaged:
		return rest()
	case lifecycle.Leaving(h) && lifecycle.Unreachable(h):
		return rest() // the others give up on it
	}
	return register(h, stage, now, grace)
}

func rest() (lifecycle.Task, lifecycle.Step) { return lifecycle.Task{}, lifecycle.Nothing{} }

func task(k event.Kind, reason string) (lifecycle.Task, lifecycle.Step) {
	return lifecycle.Task{Kind: k, Reason: reason}, nil
}

// remove takes a host out of its backend for good. What was never in one, or
// is out of it already, is removed by saying so.
func remove(h lifecycle.Host) (lifecycle.Task, lifecycle.Step) {
	r := h.Registration
	switch {
	case r.Op != nil && r.Op.Kind != event.Remove:
		return lifecycle.Task{}, abort(r.Op.Kind, "the host is being deleted")
	case r.Detached || (r.Node == "" && r.Tried.Reference == nil):
		return lifecycle.Task{}, lifecycle.Record{Fact: lifecycle.Removed{}}
	case r.Problem != nil && r.Problem.Kind == event.Remove && (r.Failures > lifecycle.GiveUpAfter || h.Intent.ForceDelete):
		return lifecycle.Task{}, lifecycle.Record{Fact: lifecycle.Removed{Undone: "left in its backend: " + r.Problem.Message}}
	default:
		return task(event.Remove, "deleted")
	}
}

// detach takes a resting host out of its backend and leaves the machine alone.
func detach(h lifecycle.Host, stage v1alpha1.ProvisioningState) (lifecycle.Task, lifecycle.Step) {
	op, _ := h.Op()
	switch {
	case h.Registration.Detached || !h.Registration.Registered:
		return rest()
	case op != nil && op.Kind != event.Detach:
		return rest() // its end is a trigger
	case stage == v1alpha1.StateAvailable || lifecycle.Used(stage) || h.Intent.Detached.Force:
		return task(event.Detach, "annotation "+v1alpha1.DetachedAnnotation)
	default:
		return rest()
	}
}

func register(h lifecycle.Host, stage v1alpha1.ProvisioningState, now time.Time, grace time.Duration) (lifecycle.Task, lifecycle.Step) {
	r, i := h.Registration, h.Intent
	credentials := lifecycle.Credentials(i)
	current := r.Registered && !r.Detached && lifecycle.SameCredentials(r.Good, credentials) && r.Address == i.Spec.BMC.Address
	if !current || r.Lost || r.Problem != nil {
		if step := refuse(h, now, grace); step != nil {
			return lifecycle.Task{}, step
		}
	}
	switch {
	case current && r.Lost && r.Node != "" && (r.Problem == nil || r.Problem.Kind == event.Adopt) && lifecycle.Used(stage):
		return task(event.Adopt, "the backend lost the node")
	case !current || r.Lost || (r.Problem != nil && r.Problem.Kind != event.Adopt):
		return task(event.Enroll, reason(h))
	default:
		return rest()
	}
}

func reason(h lifecycle.Host) string {
	switch r := h.Registration; {
	case r.Detached:
		return "attached again"
	case r.Lost:
		return "the backend lost the node"
	case r.Registered:
		return "the credentials or the address changed"
	default:
		return "new host"
	}
}

// refuse names what is wrong with what the user wrote, before anybody is asked.
// A Secret that is not there yet is waited for in silence for a while: in a
// move between clusters hosts arrive before their Secrets.
func refuse(h lifecycle.Host, now time.Time, grace time.Duration) lifecycle.Step {
	bmc, secret := h.Intent.Spec.BMC, h.Intent.Credentials
	switch {
	case bmc.CredentialsName == "":
		return fail(event.ClassCredentials, "spec.bmc.credentialsName is empty", "Name the Secret that holds the BMC's username and password")
	case bmc.Address == "":
		return fail(event.ClassAddress, "spec.bmc.address is empty", "Give the BMC's address, such as redfish://192.0.2.10")
	case secret.Version != "":
		return profile(h)
	case now.Sub(secret.MissingSince) < grace:
		return lifecycle.Wait{For: fmt.Sprintf("the Secret %s/%s", secret.Namespace, secret.Name), Every: grace}
	default:
		return fail(event.ClassCredentials, fmt.Sprintf("the BMC secret %s/%s does not exist", secret.Namespace, secret.Name),
			"Create it with the keys username and password; registration goes on at once")
	}
}

func profile(h lifecycle.Host) lifecycle.Step {
	if _, err := lifecycle.ProfileHints(lifecycle.Profile(h)); err != nil {
		return fail(event.ClassUnsupported, err.Error(), "Remove spec.hardwareProfile, which is deprecated")
	}
	return nil
}

func fail(c event.Class, message, next string) lifecycle.Step {
	return lifecycle.Record{Fact: lifecycle.Failed{Kind: event.Enroll, Problem: event.Problem{
		Type: v1alpha1.RegistrationError, Class: c, Message: message, Next: next, Local: true,
	}}}
}

func abort(k event.Kind, reason string) lifecycle.Step {
	return lifecycle.Record{Fact: lifecycle.Aborted{Kind: k, Reason: reason}}
}
