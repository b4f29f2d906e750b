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
		return remove(h, now)
	case h.Intent.Detached != nil && lifecycle.Apart(h):
		return detach(h)
	case stage == v1alpha1.StateUnmanaged:
		return rest()
	case lifecycle.Unreachable(h):
		return rest() // the others give up on it
	}
	return instead(h, register(h, now, grace))
}

// choice is a decision on its way through the rules.
type choice struct {
	task lifecycle.Task
	step lifecycle.Step
}

// instead gives up an operation that is not the one which is wanted now.
func instead(h lifecycle.Host, c choice) (lifecycle.Task, lifecycle.Step) {
	if op := h.Registration.Op; op != nil && c.task.Kind != "" && op.Kind != c.task.Kind {
		return lifecycle.Task{}, abort(op.Kind, "what is wanted has changed")
	}
	return c.task, c.step
}

func rest() (lifecycle.Task, lifecycle.Step) { return lifecycle.Task{}, lifecycle.Nothing{} }

func task(k event.Kind, reason string) (lifecycle.Task, lifecycle.Step) {
	return lifecycle.Task{Kind: k, Reason: reason}, nil
}

// remove takes a host out of its backend for good. What was never in one, or
// is out of it already, is removed by saying so.
func remove(h lifecycle.Host, now time.Time) (lifecycle.Task, lifecycle.Step) {
	r := h.Registration
	switch {
	case r.Op != nil && r.Op.Kind != event.Remove:
		return lifecycle.Task{}, abort(r.Op.Kind, "the host is being deleted")
	case r.Detached || (r.Node == "" && r.Tried.Reference == nil):
		return lifecycle.Task{}, lifecycle.Record{Fact: lifecycle.Removed{}}
	case r.Problem != nil && r.Problem.Kind == event.Remove && lifecycle.GaveUp(h, r.Work):
		return leftBehind(r.Problem.Message)
	case lifecycle.Overdue(h, now):
		return leftBehind("it did not let go of the host in time")
	default:
		return task(event.Remove, "deleted")
	}
}

func leftBehind(why string) (lifecycle.Task, lifecycle.Step) {
	return lifecycle.Task{}, lifecycle.Record{Fact: lifecycle.Removed{Undone: "the host is left in its backend: " + why}}
}

// detach takes a host out of its backend and leaves the machine alone.
func detach(h lifecycle.Host) (lifecycle.Task, lifecycle.Step) {
	op, _ := h.Op()
	switch {
	case h.Registration.Detached || !h.Registration.Registered:
		return rest()
	case h.Registration.Op != nil && op.Kind != event.Detach:
		return lifecycle.Task{}, abort(op.Kind, "the host is being detached")
	case op != nil && op.Kind != event.Detach:
		return rest() // its end is a trigger
	default:
		return task(event.Detach, "annotation "+v1alpha1.DetachedAnnotation)
	}
}

// register brings the backend to hold the host as it is asked for, and to take
// over the machine if that runs.
func register(h lifecycle.Host, now time.Time, grace time.Duration) choice {
	if lifecycle.Reachable(h) {
		return choice{step: lifecycle.Nothing{}}
	}
	problem, current := h.Registration.Problem, lifecycle.Current(h)
	if step := refuse(h, now, grace); step != nil && (!current || !lifecycle.Leaving(h)) {
		return choice{step: step}
	}
	if current && lifecycle.Unadopted(h) && (problem == nil || problem.Kind == event.Adopt) {
		return choice{task: lifecycle.Task{Kind: event.Adopt, Reason: "the backend has yet to take the running machine over"}}
	}
	return choice{task: lifecycle.Task{Kind: event.Enroll, Reason: reason(h)}}
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
	case lifecycle.Refused(h, v1alpha1.RegistrationError) && !lifecycle.Used(lifecycle.Stage(h)):
		return lifecycle.Record{Fact: lifecycle.Failed{Kind: event.Enroll, Problem: *h.Intent.Invalid}}
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
