package provisioner

import (
	"fmt"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// decide says what the provisioner's turn is for a host: a task, or a step
// that needs no look at the outside. maxAttempts limits deployments of one
// image; 0 is no limit.
func decide(h lifecycle.Host, now time.Time, maxAttempts int) (lifecycle.Task, lifecycle.Step) {
	op := h.Provisioning.Op
	switch {
	case h.Intent.Paused:
		return rest()
	case lifecycle.Apart(h) && !lifecycle.Leaving(h):
		return stop(h, "the host is being detached")
	case lifecycle.Stage(h) == v1alpha1.StateDeprovisioning:
		return undeploy(h, now)
	case op != nil && lifecycle.Orphaned(h):
		return stop(h, "the backend lost the node")
	case op == nil && !lifecycle.Reachable(h):
		return rest()
	default:
		return onward(h, maxAttempts)
	}
}

// onward is the turn of a host that is reachable, or being worked on.
func onward(h lifecycle.Host, maxAttempts int) (lifecycle.Task, lifecycle.Step) {
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
	case v1alpha1.StatePoweringOffBeforeDelete:
		return eject(h)
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
	if !h.Inspection.Done || (h.Provisioning.Op == nil && lifecycle.Refused(h, v1alpha1.PreparationError)) {
		return rest()
	}
	return task(event.Prepare, "before the host is available")
}

// use looks what an available host is to be used for.
func use(h lifecycle.Host, maxAttempts int) (lifecycle.Task, lifecycle.Step) {
	p, spec := h.Provisioning, h.Intent.Spec
	wants := lifecycle.WantsImage(h)
	switch {
	case spec.ExternallyProvisioned:
		return record(lifecycle.EnteredExternal{})
	case lifecycle.WantsInspection(h):
		return rest() // the inspector's turn
	case lifecycle.Unsettled(h) && !lifecycle.Refused(h, v1alpha1.PreparationError):
		return task(event.Prepare, "settings changed")
	case !wants && (p.Failures > 0 || p.Attempts > 0):
		return record(lifecycle.Forgiven{})
	case !wants:
		return rest()
	case p.Failures > 0 && (!lifecycle.SameImage(p.LastAttempted, spec.Image) || p.Retry != h.Intent.Retry):
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
	unwanted := lifecycle.Unwanted(h)
	switch {
	case unwanted && h.Provisioning.Op != nil:
		return stop(h, "the image is no longer wanted")
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
	unwanted := lifecycle.Unwanted(h)
	switch {
	case media(h):
		return task(event.Media, mediaReason(h))
	case unwanted && h.Provisioning.Op != nil:
		return stop(h, "the image is to go")
	case unwanted:
		return task(event.Undeploy, unwantedReason(h))
	default:
		return serve(h)
	}
}

// serve changes the firmware of a host in use, where its user lets that be done.
func serve(h lifecycle.Host) (lifecycle.Task, lifecycle.Step) {
	switch op := h.Provisioning.Op; {
	case op != nil && op.Kind != event.Service:
		return stop(h, "the host is in use")
	case op != nil || lifecycle.BeforeBoot(h) == event.Service:
		return task(event.Service, "its HostUpdatePolicy lets its firmware be changed")
	default:
		return rest()
	}
}

// rests reports whether the host is at rest, and may be asked about itself.
func rests(h lifecycle.Host) bool {
	op, _ := h.Op()
	return op == nil && lifecycle.AtRest(lifecycle.Stage(h)) && lifecycle.Reachable(h) && !h.Intent.Paused && !lifecycle.Apart(h) && !lifecycle.Leaving(h)
}

// media reports whether the virtual CD is to be brought to what is wanted, or
// is on its way there.
func media(h lifecycle.Host) bool {
	return h.Doing(event.Media) || (h.Provisioning.Op == nil && lifecycle.MediaDue(h))
}

func mediaReason(h lifecycle.Host) string {
	if lifecycle.WantedMedia(h) == "" {
		return "the virtual CD is to be empty"
	}
	return "the host is about to boot with its data image"
}

// eject empties the virtual CD of a host that is being deleted.
func eject(h lifecycle.Host) (lifecycle.Task, lifecycle.Step) {
	if media(h) {
		return task(event.Media, mediaReason(h))
	}
	return stop(h, "the host is being deleted")
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

func external(h lifecycle.Host) (lifecycle.Task, lifecycle.Step) {
	switch {
	case media(h):
		return task(event.Media, mediaReason(h))
	case h.Provisioning.Op == nil && !h.Intent.Spec.ExternallyProvisioned:
		return record(lifecycle.LeftExternal{})
	case h.Provisioning.Phase != event.External:
		return record(lifecycle.EnteredExternal{})
	default:
		return serve(h)
	}
}

// undeploy cleans a host. If that is for its deletion, it ends in any case.
func undeploy(h lifecycle.Host, now time.Time) (lifecycle.Task, lifecycle.Step) {
	p := h.Provisioning
	switch {
	case lifecycle.Leaving(h) && lifecycle.GaveUp(h, p.Work):
		return record(abandoned(h, p.Problem.Message))
	case lifecycle.Unreachable(h):
		return record(abandoned(h, unreachable(h)))
	case lifecycle.Overdue(h, now):
		return record(abandoned(h, "it took too long"))
	case media(h) && !lifecycle.Orphaned(h):
		return task(event.Media, mediaReason(h))
	case p.Op != nil && (p.Op.Kind != event.Undeploy || lifecycle.Orphaned(h)):
		return stop(h, "the disk is to be cleaned")
	case p.Op == nil && !lifecycle.Reachable(h):
		return rest()
	default:
		return task(event.Undeploy, unwantedReason(h))
	}
}

// unreachable says why a host cannot be reached.
func unreachable(h lifecycle.Host) string {
	if p := h.Registration.Problem; p != nil {
		return p.Message
	}
	return "the host could not be reached"
}

func abandoned(h lifecycle.Host, why string) lifecycle.Fact {
	left := "what is on its disk is left there"
	if url := h.Provisioning.Image.URL; url != "" {
		left = url + " is left on its disk"
	}
	return lifecycle.Abandoned{Undone: fmt.Sprintf("the host was not deprovisioned, %s: %s", left, why)}
}
