package ironic

import (
	"context"
	"errors"
	"time"

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
		s := powerState(n)
		s.Fault = err.Error()
		return s, nil
	case err != nil:
		return backend.PowerState{}, err
	}
	return powerState(n), nil
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
func powerState(n ironic.Node) backend.PowerState {
	s := backend.PowerState{Health: n.Health}
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

// Fleet is all nodes of this Ironic at rest: states, power, faults and health. It
// takes one request for each thousand nodes.
func (b *Backend) Fleet(ctx context.Context) (ironic.Fleet, error) { return b.reader.Fleet(ctx) }
