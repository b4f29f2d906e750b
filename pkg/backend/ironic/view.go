package ironic

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// view is all that a table decides by.
type view struct {
	kind event.Kind
	host lifecycle.Host
	// node is the host's node; its LastError has been filled in from the history if
	// the node itself has lost it.
	node    ironic.Node
	version ironic.Version
	set     Settings
	// wish is what the node is to be like before it is worked with.
	wish wish
	now  time.Time
}

// op is the operation of the view's kind, nil if it has not begun.
func (v view) op() *event.Op { return v.host.OpOf(v.kind) }

// did reports whether the write was the operation's last, and was taken.
func (v view) did(writes ...string) bool {
	op := v.op()
	return op != nil && op.Answered && op.Refusals == 0 && slices.Contains(writes, op.Step)
}

// used reports whether the machine may be running somebody's work.
func (v view) used() bool { return lifecycle.Used(lifecycle.Stage(v.host)) }

// why is what Ironic says of a failure, or what is to be said without that.
func (v view) why(otherwise string) string {
	if v.node.LastError == "" {
		return otherwise
	}
	return ironic.Scrub(v.node.LastError)
}

// broken is the outlook of an operation that failed. What is to be done about it is
// taken from what Ironic says.
func (v view) broken(otherwise event.Class, prefix, unexplained string) lifecycle.Outlook {
	text := v.why(unexplained)
	return lifecycle.Broken{Problem: lifecycle.NewProblem(lifecycle.ErrorTypeOf(v.kind), classify(text, otherwise), prefix+text)}
}

// refuse is the outlook of what is not done, with what to do instead.
func (v view) refuse(c event.Class, message, next string) lifecycle.Outlook {
	return lifecycle.Broken{Problem: event.Problem{Type: lifecycle.ErrorTypeOf(v.kind), Class: c, Message: message, Next: next}}
}

func finished() lifecycle.Outlook { return lifecycle.Finished{} }

func needs(write string) lifecycle.Outlook { return lifecycle.Needs{Write: write} }

func underway(what string, every time.Duration) lifecycle.Outlook {
	return lifecycle.Underway{For: what, Every: every}
}

// verb is the outlook of a verb that the node is to get: what stands in its way
// comes first.
func (v view) verb(write string) lifecycle.Outlook {
	switch {
	case v.node.Fault == ironic.FaultPower:
		return v.powerless()
	case v.node.Maintenance:
		return needs(writeUnmaintain)
	default:
		return needs(write)
	}
}

// powerless is the outlook while Ironic has lost the power of a machine. It looks
// for it again by itself; taking the node out of maintenance by hand does not help.
func (v view) powerless() lifecycle.Outlook {
	reason := ironic.Scrub(v.node.MaintenanceReason)
	if reason == "" {
		reason = v.why("it does not say why")
	}
	return lifecycle.Broken{Problem: event.Problem{
		Type: lifecycle.ErrorTypeOf(v.kind), Class: classify(reason, event.ClassUnreachable),
		Message: "Ironic has lost control of the machine's power: " + reason,
		Next:    "Check the BMC and its credentials; Ironic tries it again by itself every few minutes",
	}}
}

// How long a node may be without any change in a state before it counts as stuck.
// Ironic itself gives agents half an hour.
const (
	stuckSoon  = 10 * time.Minute
	stuckLate  = time.Hour
	stuckAgent = 65 * time.Minute
	// stuckLocked is for nodes whose lock a conductor holds: it may be at work.
	stuckLocked = 3 * time.Hour
)

// limit is how long nothing may happen to a node in its present state.
func (v view) limit() time.Duration {
	switch n := v.node; {
	case ironic.Waiting(n.ProvisionState):
		return stuckAgent
	case n.Reservation != "":
		return stuckLocked
	case n.ProvisionState == ironic.StateVerifying, n.ProvisionState == ironic.StateAdopting, n.ProvisionState == ironic.StateInspecting:
		return stuckSoon
	default:
		return stuckLate
	}
}

// busy is the outlook while Ironic or its agent is at work on the node, and what
// helps if that takes for ever.
func (v view) busy(every time.Duration) lifecycle.Outlook {
	state := v.node.ProvisionState
	if v.node.Idle() > v.limit() {
		return v.stuck()
	}
	if ironic.Waiting(state) && v.node.Maintenance && v.node.Fault != ironic.FaultPower {
		return needs(writeUnmaintain) // in maintenance the agent is not listened to
	}
	what := fmt.Sprintf("Ironic, which has the node in state %q", state)
	if ironic.Waiting(state) {
		what = fmt.Sprintf("the agent on the machine (the node is in state %q)", state)
	}
	return underway(what, every)
}

// stuck is the way out of a state in which nothing happens any more.
func (v view) stuck() lifecycle.Outlook {
	n := v.node
	switch {
	case n.ProvisionState == ironic.StateDeployWait && !v.version.Has(ironic.FeatureDeployAbort):
		return needs(writeUndeploy)
	case ironic.Waiting(n.ProvisionState):
		return needs(writeAbort)
	case n.Reservation == "" && !v.used():
		return needs(writeRecover)
	}
	held := "no conductor works on it"
	if n.Reservation != "" {
		held = "conductor " + n.Reservation + " holds its lock"
	}
	return v.refuse(event.ClassTimeout,
		fmt.Sprintf("node %s has been in state %q for %s without any change, and %s", n.UUID, n.ProvisionState, n.Idle().Round(time.Minute), held),
		"Restart that conductor of Ironic; the machine goes on running, and is not touched")
}

// timedOut is the outlook of a wait that we have ended, since nothing came of it.
func (v view) timedOut(prefix string) lifecycle.Outlook {
	return v.refuse(event.ClassTimeout, prefix+"the agent on the machine was not heard of for an hour",
		"Look at the machine's console: does it boot the ramdisk, and can it reach Ironic? It is tried again by itself")
}

// unexpected is the outlook in a state that this operation knows no way out of.
func (v view) unexpected(next string) lifecycle.Outlook {
	return v.refuse(event.ClassConflict, fmt.Sprintf("node %s is in state %q, from which no way leads on", v.node.UUID, v.node.ProvisionState), next)
}

// active: a machine that runs something we know nothing of is left alone.
func (v view) active() lifecycle.Outlook {
	return v.refuse(event.ClassConflict,
		fmt.Sprintf("node %s is %q: Ironic says that the machine is in use, and it was not metalbus that provisioned it for this host", v.node.UUID, v.node.ProvisionState),
		"If it is in use, set spec.externallyProvisioned; if not, undeploy the node by hand (baremetal node undeploy)")
}

// nodeName is what the host's node is called.
func nodeName(h lifecycle.Host) string { return h.Intent.Namespace + "~" + h.Intent.Name }

// plainName is what it was called by others before, "" if it cannot have been.
func plainName(h lifecycle.Host) string {
	if strings.Contains(h.Intent.Name, "~") {
		return ""
	}
	return h.Intent.Name
}
