package ironic

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Name is how users call this backend where there is one Ironic only.
const Name = "ironic"

// Backend has one Ironic do the work.
type Backend struct {
	client *ironic.Client
	reader *ironic.Reader
	set    Settings
	beside Beside
	// selector chooses the hosts that are this Ironic's; nil for none.
	selector labels.Selector

	mu   sync.Mutex
	seen map[string]revisionSeen // by uid, of hosts at rest
}

// revisionSeen is when this process first saw a host at its present revision.
type revisionSeen struct {
	rev uint64
	at  time.Time
}

var _ backend.Backend = (*Backend)(nil)

// New is a Backend over an Ironic.
func New(c *ironic.Client, s Settings, beside Beside) (*Backend, error) {
	if beside.Now == nil || beside.Secrets == nil {
		return nil, errors.New("the ironic backend needs a clock and Secrets")
	}
	return &Backend{client: c, reader: ironic.NewReader(c), set: s, beside: beside, seen: map[string]revisionSeen{}}, nil
}

// Name is the name of the Ironic.
func (b *Backend) Name() string { return b.client.Name() }

// Look reads how an operation stands.
func (b *Backend) Look(ctx context.Context, k event.Kind, h lifecycle.Host) (lifecycle.Outlook, error) {
	v, err := b.wanted(ctx, k, h)
	if err == nil {
		v, err = b.found(ctx, v)
	}
	if err != nil {
		return lookFailed(k, err)
	}
	o, err := b.outlook(ctx, v)
	if err != nil {
		return lookFailed(k, err)
	}
	return o, nil
}

// wanted is what the tables decide by, but for the node.
func (b *Backend) wanted(ctx context.Context, k event.Kind, h lifecycle.Host) (view, error) {
	v := view{kind: k, host: h, set: b.set, now: b.beside.Now()}
	var err error
	if v.version, err = b.client.Version(ctx); err != nil {
		return view{}, err
	}
	if needsWish(k) {
		v.wish, err = b.wishFor(h)
	}
	return v, err
}

// found is the view with the node. One that there is not has no UUID.
func (b *Backend) found(ctx context.Context, v view) (view, error) {
	var err error
	v.node, err = b.node(ctx, v.kind, v.host)
	if err == nil && v.mayBeStuck() {
		v.node, err = b.client.Get(ctx, v.node.UUID)
	}
	if errors.Is(err, ironic.ErrNoNode) {
		v.node, err = ironic.Node{}, nil
	}
	return v, err
}

// mayBeStuck reports whether a node seems to be stuck by what a listing tells, which
// leaves out the heartbeats of agents.
func (v view) mayBeStuck() bool {
	return v.occupied() && v.node.UpdatedAt.IsZero() && v.node.Idle() > v.limit()
}

// needsWish: a host can be removed, and its power be changed, whatever is wrong with
// what its user wrote.
func needsWish(k event.Kind) bool {
	switch k {
	case event.Detach, event.Remove, event.Media, event.PowerOn, event.PowerOff, event.Reboot:
		return false
	default:
		return true
	}
}

// node is a host's node. A registered one is known by its UUID alone. Who registers
// or removes it looks for it by its names too.
func (b *Backend) node(ctx context.Context, k event.Kind, h lifecycle.Host) (ironic.Node, error) {
	id := h.Registration.Node
	switch k {
	case event.Enroll:
		return b.reader.Find(ctx, some(id, nodeName(h), plainName(h))...)
	case event.Detach, event.Remove:
		return b.reader.Node(ctx, some(id, nodeName(h))...)
	default:
		if id == "" {
			return ironic.Node{}, &ironic.Error{Reason: ironic.ErrNoNode, Op: "read the node of " + h.Name(), Detail: "the host has none yet"}
		}
		return b.reader.Node(ctx, id)
	}
}

// some are the texts that are not empty.
func some(all ...string) []string {
	var list []string
	for _, s := range all {
		if s != "" {
			list = append(list, s)
		}
	}
	return list
}

// outlook is what the operation's table says.
func (b *Backend) outlook(ctx context.Context, v view) (lifecycle.Outlook, error) {
	switch {
	case v.kind == event.Enroll:
		return b.enroll(ctx, v)
	case v.node.UUID == "" && (v.kind == event.Detach || v.kind == event.Remove):
		return finished(), nil
	case v.node.UUID == "":
		return nil, lifecycle.ErrUnregistered
	}
	v, err := b.explained(ctx, v)
	if err != nil {
		return nil, err
	}
	switch v.kind {
	case event.Adopt:
		return v.adopt(), nil
	case event.Detach, event.Remove:
		return v.remove(), nil
	case event.Inspect:
		return b.inspect(ctx, v)
	case event.Prepare:
		return v.prepareWhole()
	case event.Deploy:
		return v.deploy(), nil
	case event.Undeploy:
		return v.undeploy(), nil
	case event.Media:
		return b.media(ctx, v)
	case event.Service:
		return v.service(), nil
	case event.PowerOn:
		return v.powerOn(), nil
	case event.PowerOff:
		return v.powerOff(), nil
	case event.Reboot:
		return v.reboot(), nil
	case event.Subscribe:
		return b.subscription(ctx, v)
	default:
		return v.refuse(event.ClassUnsupported, "the ironic backend cannot "+string(v.kind)+" a host", ""), nil
	}
}

// explained is the view with the reason of a failure from the node's history, where
// the node itself has lost it: newer Ironics clear last_error at the next power
// sync.
func (b *Backend) explained(ctx context.Context, v view) (view, error) {
	op := v.op()
	if op == nil || !op.Answered || v.node.LastError != "" || !v.mayHaveFailed() {
		return v, nil
	}
	text, err := b.client.LastErrorSince(ctx, v.node.UUID, op.StepAt)
	if err != nil && !errors.Is(err, ironic.ErrNotFound) {
		return v, err
	}
	v.node.LastError = text
	return v, nil
}

// mayHaveFailed reports whether the last write may have had no effect.
func (v view) mayHaveFailed() bool {
	n := v.node
	switch v.kind {
	case event.PowerOn:
		return n.PowerState != ironic.PowerOn && !v.changing()
	case event.PowerOff:
		return n.PowerState != ironic.PowerOff && !v.changing() && !v.occupied()
	case event.Reboot:
		return !v.changing()
	case event.Media:
		return n.Reservation == ""
	case event.Subscribe:
		return false // what goes wrong is in the answer
	case event.Enroll:
		return n.ProvisionState == ironic.StateEnroll && v.did(writeManage) && n.TargetProvisionState == ""
	default:
		return ironic.Failed(n.ProvisionState)
	}
}

// inspect is how an inspection stands, with what it has found.
func (b *Backend) inspect(ctx context.Context, v view) (lifecycle.Outlook, error) {
	if _, done := v.inspect().(lifecycle.Finished); !done {
		return v.inspect(), nil
	}
	inv, err := b.client.Inventory(ctx, v.node.UUID)
	switch {
	case errors.Is(err, ironic.ErrNotFound):
		return b.withoutInventory(ctx, v)
	case err != nil:
		return nil, err
	default:
		return lifecycle.Finished{Result: lifecycle.Result{Node: v.node.UUID, Hardware: hardwareDetails(inv)}}, nil
	}
}

// withoutInventory is the outlook where Ironic keeps no inventory: nobody has
// inspected the machine yet, or it is an Ironic before 29, which writes what a BMC
// tells into the node and its ports.
func (b *Backend) withoutInventory(ctx context.Context, v view) (lifecycle.Outlook, error) {
	switch {
	case !v.did(writeInspect):
		return v.prepared(writeInspect, !fast(v.host)), nil
	case !fast(v.host):
		return v.refuse(event.ClassInspection, "the inspection has ended, and Ironic keeps no inventory of it (its inspect interface is "+v.node.InspectInterface+")",
			"Update Ironic, or set spec.inspectionMode to fast or disabled"), nil
	}
	ports, err := b.reader.Ports(ctx, v.node.UUID)
	if err != nil {
		return nil, err
	}
	return lifecycle.Finished{Result: lifecycle.Result{Node: v.node.UUID, Hardware: sparseDetails(v.node, ports, v.host.Intent.Spec.BootMACAddress)}}, nil
}

// prepareWhole is how the preparing of a host stands.
func (v view) prepareWhole() (lifecycle.Outlook, error) {
	c, err := v.cleaning()
	if err != nil {
		return nil, err
	}
	return v.prepare(c), nil
}
