package provisioner

import (
	"fmt"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// decide says what the provisioner's turn is for a host: a task, or a step
// that needs no look at the outside. maxAttempts limits deployments of one
// image; 0 is no limit.
func decide(h lifecycle.Host, maxAttempts int) (lifecycle.Task, lifecycle.Step) {
	if h.Intent.Paused || (lifecycle.Apart(h) && h.Provisioning.Op == nil) {
		return rest()
	}
	switch lifecycle.Stage(h) {
	case v1alpha1.StatePreparing:
		return prepare(h)
	case v1alpha1.StateAvailable:
		return use(h, maxAttempts)
	case v1alpha1.StateProvisioning:
		return deploy(h)
	case v1alpha1.StateProvisioned:
		return keep(h)
	case v1alpha1.StateExternallyProvisioned:
		return external(h)
	case v1alpha1.StateDeprovisioning:
		return undeploy(h)
	default:
		return stop(h, "the host is being deleted")
	}
}

func rest() (lifecycle.Task, lifecycle.Step) { return lifecycle.Task{}, lifecycle.Nothing{} }

func record(f lifecycle.Fact) (lifecycle.Task, lifecycle.Step) {
	return lifecycle.Task{}, lifecycle.Record{Fact: f}
}

func task(k event.Kind, reason string) (lifecycle.Task, lifecycle.Step) {
	return lifecycle.Task{Kind: k, Reason: reason}, nil
}

// stop gives up an operation, if one is under way.
func stop(h lifecycle.Host, reason string) (lifecycle.Task, lifecycle.Step) {
	if op := h.Provisioning.Op; op != nil {
		return record(lifecycle.Aborted{Kind: op.Kind, Reason: reason})
	}
	return rest()
}

func prepare(h lifecycle.Host) (lifecycle.Task, lifecycle.Step) {
	switch {
	case lifecycle.Apart(h):
		return stop(h, "the host is being detached")
	case !h.Inspection.Done || !lifecycle.Reachable(h):
		return rest()
	default:
		return task(event.Prepare, "before the host is available")
	}
}

// use looks what an available host is to be used for.
func use(h lifecycle.Host, maxAttempts int) (lifecycle.Task, lifecycle.Step) {
	p, spec := h.Provisioning, h.Intent.Spec
	wants := lifecycle.WantsImage(h)
	switch {
	case lifecycle.Apart(h) || !lifecycle.Reachable(h):
		return rest()
	case spec.ExternallyProvisioned:
		return record(lifecycle.EnteredExternal{})
	case lifecycle.WantsInspection(h):
		return rest() // the inspector's turn
	case lifecycle.Unsettled(h):
		return task(event.Prepare, "settings changed")
	case !wants && (p.Attempts > 0 || p.Problem != nil):
		return record(lifecycle.Forgiven{})
	case !wants:
		return rest()
	case p.Attempts > 0 && !lifecycle.SameImage(p.LastAttempted, spec.Image):
		return record(lifecycle.Forgiven{})
	case maxAttempts > 0 && p.Attempts >= maxAttempts:
		return exhausted(h, maxAttempts)
	default:
		return task(event.Deploy, "an image is wanted")
	}
}

// exhausted says once that no further attempt is made.
func exhausted(h lifecycle.Host, limit int) (lifecycle.Task, lifecycle.Step) {
	p := h.Provisioning
	problem := lifecycle.NewProblem(v1alpha1.ProvisioningError, event.ClassImage,
		fmt.Sprintf("provisioning failed %d times, retry limit (%d) reached; change image or reset provisioningFailCount to retry", p.Attempts, limit))
	if p.Problem != nil {
		if p.Problem.Message == problem.Message {
			return rest()
		}
		problem.Next = "The last failure was: " + p.Problem.Message
	}
	return record(lifecycle.Failed{Kind: event.Deploy, Problem: problem})
}

func deploy(h lifecycle.Host) (lifecycle.Task, lifecycle.Step) {
	op := h.Provisioning.Op
	unwanted := lifecycle.Unwanted(h)
	switch {
	case lifecycle.Apart(h):
		return stop(h, "the host is being detached")
	case unwanted && op != nil:
		return stop(h, "the image is no longer wanted")
	case lifecycle.Unreachable(h):
		return record(abandoned(h))
	case !lifecycle.Reachable(h):
		return rest()
	case unwanted:
		return task(event.Undeploy, unwantedReason(h))
	case h.Provisioning.Problem != nil:
		return task(event.Undeploy, "the deployment failed, and is tried again from a clean disk")
	default:
		return task(event.Deploy, "an image is wanted")
	}
}

// keep leaves a provisioned host alone until its user wants something else.
func keep(h lifecycle.Host) (lifecycle.Task, lifecycle.Step) {
	switch {
	case !lifecycle.Unwanted(h):
		return stop(h, "the host is provisioned")
	case lifecycle.Unreachable(h):
		return record(abandoned(h))
	case !lifecycle.Reachable(h):
		return rest()
	default:
		return task(event.Undeploy, unwantedReason(h))
	}
}

func unwantedReason(h lifecycle.Host) string {
	switch spec := h.Intent.Spec; {
	case lifecycle.Leaving(h):
		return "the host is being deleted"
	case spec.Image == nil && spec.CustomDeploy == nil:
		return "the image was removed"
	default:
		return "another image is wanted"
	}
}

func abandoned(h lifecycle.Host) lifecycle.Fact {
	why := "the host could not be reached"
	if p := lifecycle.Problem(h); p != nil {
		why = p.Message
	}
	return lifecycle.Abandoned{Undone: fmt.Sprintf("deleted without deprovisioning, %s is left on its disk: %s", h.Provisioning.Image.URL, why)}
}

func external(h lifecycle.Host) (lifecycle.Task, lifecycle.Step) {
	switch {
	case lifecycle.Apart(h):
		return rest()
	case !h.Intent.Spec.ExternallyProvisioned:
		return record(lifecycle.LeftExternal{})
	case h.Provisioning.Phase != event.External:
		return record(lifecycle.EnteredExternal{})
	default:
		return rest()
	}
}

func undeploy(h lifecycle.Host) (lifecycle.Task, lifecycle.Step) {
	p := h.Provisioning
	gaveUp := p.Problem != nil && p.Problem.Kind == event.Undeploy && p.Failures > lifecycle.GiveUpAfter
	switch {
	case lifecycle.Leaving(h) && (gaveUp || h.Intent.ForceDelete && p.Problem != nil || lifecycle.Unreachable(h)):
		return record(abandoned(h))
	case !lifecycle.Reachable(h) && p.Op == nil:
		return rest()
	default:
		return task(event.Undeploy, unwantedReason(h))
	}
}
