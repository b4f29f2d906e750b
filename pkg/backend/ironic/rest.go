package ironic

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

const hard = v1alpha1.RebootModeHard

// refusedAsSuch reports whether a power action is one that the driver does not have.
func refusedAsSuch(err error) bool {
	return errors.Is(err, ironic.ErrInvalid) || errors.Is(err, ironic.ErrUnsupported)
}

// Power is the power of a host, as Ironic saw it last. For hosts at rest the answer
// may be some seconds old, but never older than anything that has happened to the
// host.
func (b *Backend) Power(ctx context.Context, h lifecycle.Host) (backend.PowerState, error) {
	if h.Registration.Node == "" {
		return backend.PowerState{}, lifecycle.ErrUnregistered
	}
	n, err := b.reader.Recent(ctx, h.Registration.Node, b.since(h), b.set.RestAge)
	switch {
	case errors.Is(err, ironic.ErrNoNode):
		return backend.PowerState{}, lifecycle.ErrUnregistered
	case errors.Is(err, ironic.ErrHidden):
		s := powerState(h, n)
		s.Fault, s.Maintenance, s.Astray = err.Error(), h.Power.Maintenance, h.Power.Astray
		return s, nil
	case err != nil:
		return backend.PowerState{}, err
	}
	return powerState(h, n), nil
}

// forgetAfter bounds what is kept of hosts that are not looked at any more.
const forgetAfter = time.Hour

// since is when this process first saw the host at its present revision. Whatever
// led to that revision happened before, so a later reading shows it, by whatever
// clock it was done.
func (b *Backend) since(h lifecycle.Host) time.Time {
	now := b.beside.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, ok := b.seen[h.UID]; ok && s.rev == h.Rev {
		return s.at
	}
	if len(b.seen) > 0 && len(b.seen)%1024 == 0 {
		for uid, s := range b.seen {
			if now.Sub(s.at) > forgetAfter {
				delete(b.seen, uid)
			}
		}
	}
	b.seen[h.UID] = revisionSeen{rev: h.Rev, at: now}
	return now
}

// powerState is what a node tells of its machine's power. A machine on its way has
// not arrived.
func powerState(h lifecycle.Host, n ironic.Node) backend.PowerState {
	s := backend.PowerState{Health: n.Health, Maintenance: maintenance(n), Astray: astray(h, n), Others: others(n)}
	s.Passing = s.Astray != "" && (ironic.Busy(n.ProvisionState) || ironic.Waiting(n.ProvisionState))
	switch n.PowerState {
	case ironic.PowerOn:
		on := true
		s.On = &on
	case ironic.PowerOff:
		on := false
		s.On = &on
	}
	if n.Fault == ironic.FaultPower {
		s.Fault = "Ironic has lost control of the machine's power"
		if n.MaintenanceReason != "" {
			s.Fault += ": " + ironic.Scrub(n.MaintenanceReason)
		}
	}
	return s
}

// maintenance is why somebody has Ironic leave the node alone, "" if nobody has. What
// we asked for, or Ironic decided by itself, is somebody's neither.
func maintenance(n ironic.Node) string {
	switch {
	case !n.Maintenance || n.Fault != "" || ours(n.MaintenanceReason):
		return ""
	case n.MaintenanceReason == "":
		return "maintenance, without a reason"
	default:
		return "maintenance, " + ironic.Scrub(n.MaintenanceReason)
	}
}

// astray is the node's state if it is not one in which a host at rest leaves it, and
// nothing that we have tried explains it.
func astray(h lifecycle.Host, n ironic.Node) string {
	stage, usual := lifecycle.Stage(h), []string{ironic.StateActive}
	if !lifecycle.Used(stage) { // an inspection that is no longer wanted leaves what it leaves
		usual = []string{
			ironic.StateAvailable, ironic.StateManageable, ironic.StateInspecting, ironic.StateInspectWait, ironic.StateInspectFailed, ironic.StateVerifying,
		}
	}
	if n.ProvisionState == "" || !lifecycle.AtRest(stage) || slices.Contains(usual, n.ProvisionState) || tried(h) {
		return ""
	}
	return n.ProvisionState
}

// tried reports whether an operation of ours is under way on the host, or has left
// its node where it did not want to.
func tried(h lifecycle.Host) bool {
	op, _ := h.Op()
	problem := h.Registration.Problem != nil || h.Inspection.Problem != nil || h.Provisioning.Problem != nil
	service := strings.HasPrefix(h.Newest(event.SectionProvisioning).Fact, string(event.Service)+".")
	return op != nil || problem || service || lifecycle.Unadopted(h)
}

// others is who else may do something with the node.
func others(n ironic.Node) string {
	text := "another client of Ironic"
	switch {
	case n.Owner != "" && n.Lessee != "":
		text += " (the node is owned by " + ironic.Scrub(n.Owner) + " and leased to " + ironic.Scrub(n.Lessee) + ")"
	case n.Owner != "":
		text += " (the node is owned by " + ironic.Scrub(n.Owner) + ")"
	case n.Lessee != "":
		text += " (the node is leased to " + ironic.Scrub(n.Lessee) + ")"
	}
	if ironic.Failed(n.ProvisionState) && n.LastError != "" {
		text += "; Ironic says: " + ironic.Scrub(n.LastError)
	}
	return text
}

// Fleet is all nodes of this Ironic at rest: states, power, faults and health. It
// takes one request for each thousand nodes.
func (b *Backend) Fleet(ctx context.Context) (ironic.Fleet, error) { return b.reader.Fleet(ctx) }
