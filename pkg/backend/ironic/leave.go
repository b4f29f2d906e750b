package ironic

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// doDelete deletes the node and leaves the machine as it is. Where Ironic would
// refuse that it is put into maintenance first.
func (b *Backend) doDelete(ctx context.Context, v view) error {
	n := v.node
	if n.UUID == "" || foreign(n, v.host) {
		return nil
	}
	if p := b.loosen(n); len(p) > 0 {
		if _, err := b.client.Update(ctx, n.UUID, p); err != nil {
			return err
		}
	}
	if !deletable(n.ProvisionState) && !n.Maintenance {
		if err := b.client.SetMaintenance(ctx, n.UUID, reasonDelete); err != nil {
			return err
		}
	}
	return b.client.Delete(ctx, n.UUID)
}

// loosen takes off what would keep a node from being deleted.
func (b *Backend) loosen(n ironic.Node) ironic.Patch {
	p := unprotect(n)
	if n.InstanceUUID != "" && (n.ProvisionState == ironic.StateAvailable || n.ProvisionState == ironic.StateManageable) {
		p.Remove("/instance_uuid")
	}
	return p
}

// deletable reports whether Ironic deletes nodes in this state.
func deletable(state string) bool {
	switch state {
	case ironic.StateEnroll, ironic.StateManageable, ironic.StateAvailable, ironic.StateAdoptFailed:
		return true
	default:
		return false
	}
}

// doRecover deletes a node in whose state nothing happens any more, so that it is
// made anew. Never that of a machine in use.
func (b *Backend) doRecover(ctx context.Context, v view) error {
	if v.used() || !ironic.Busy(v.node.ProvisionState) || v.node.Protected {
		return fmt.Errorf("node %s is not stuck any more: %w", v.node.UUID, lifecycle.ErrBusy)
	}
	if err := b.client.SetMaintenance(ctx, v.node.UUID, reasonRecover); err != nil {
		return err
	}
	return b.client.Delete(ctx, v.node.UUID)
}

// doSoft asks the system to shut down, and cuts the power where the driver cannot
// ask.
func (b *Backend) doSoft(ctx context.Context, v view) error {
	if err := fence(v.node, v.host); err != nil {
		return err
	}
	err := b.client.Power(ctx, v.node.UUID, ironic.SoftPowerOff, int(b.set.SoftPowerOff/time.Second))
	if refusedAsSuch(err) {
		return b.client.Power(ctx, v.node.UUID, ironic.PowerOff, 0)
	}
	return err
}

func (b *Backend) doHard(ctx context.Context, v view) error {
	if err := fence(v.node, v.host); err != nil {
		return err
	}
	return b.client.Power(ctx, v.node.UUID, ironic.PowerOff, 0)
}

// doReboot restarts the machine, softly if it may take its time and the driver can.
func (b *Backend) doReboot(ctx context.Context, v view) error {
	if err := fence(v.node, v.host); err != nil {
		return err
	}
	if v.offMode() == hard {
		return b.client.Power(ctx, v.node.UUID, ironic.Rebooting, 0)
	}
	err := b.client.Power(ctx, v.node.UUID, ironic.SoftRebooting, int(b.set.SoftPowerOff/time.Second))
	if refusedAsSuch(err) {
		return b.client.Power(ctx, v.node.UUID, ironic.Rebooting, 0)
	}
	return err
}

func joined(list []string) string { return strings.Join(list, "; ") }

func secretHere(name string) *corev1.SecretReference { return &corev1.SecretReference{Name: name} }
