package ironic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// enroll is how a registration stands. What the node alone does not tell is asked
// last: whether its ports are there, and whether the BMC takes new credentials.
func (b *Backend) enroll(ctx context.Context, v view) (lifecycle.Outlook, error) {
	if o := v.refusal(); o != nil {
		return o, nil
	}
	if v.node.UUID == "" {
		return b.newcomer(ctx, v)
	}
	v, err := b.explained(ctx, v)
	if err != nil {
		return nil, err
	}
	o := v.enroll()
	if _, done := o.(lifecycle.Finished); !done {
		return o, nil
	}
	if !ironic.Busy(v.node.ProvisionState) && !ironic.Waiting(v.node.ProvisionState) {
		missing, err := b.missingPorts(ctx, v)
		if err != nil {
			return nil, err
		}
		if len(missing) > 0 {
			return needs(writePorts), nil
		}
	}
	if err := b.verified(ctx, v); err != nil {
		return nil, err
	}
	if v.renewed() && v.node.Fault == ironic.FaultPower && !v.did(writeUnmaintain) {
		return needs(writeUnmaintain), nil // Ironic itself would take minutes to find out
	}
	return lifecycle.Finished{Result: lifecycle.Result{Node: v.node.UUID}}, nil
}

// renewed reports whether the node was given an address or a login that nobody has
// tried with success yet, by this operation or by an earlier one that failed.
func (v view) renewed() bool {
	r, intent := v.host.Registration, v.host.Intent
	known := r.Registered && !r.Lost && !r.Detached && r.Node == v.node.UUID
	changed := r.Address != intent.Spec.BMC.Address || !lifecycle.SameCredentials(r.Good, lifecycle.Credentials(intent))
	return v.did(writeUpdate, writePorts) || known && changed
}

// newcomer is the outlook of a host without a node. A node without a name that has
// the host's MAC address, which some discovery made, becomes its node.
func (b *Backend) newcomer(ctx context.Context, v view) (lifecycle.Outlook, error) {
	mac := v.host.Intent.Spec.BootMACAddress
	if mac == "" {
		return needs(writeEnroll), nil
	}
	n, err := b.ownerOf(ctx, mac)
	switch {
	case err != nil:
		return nil, err
	case n.UUID == "":
		return needs(writeEnroll), nil
	case n.Name != "":
		return nil, conflictOfMAC(mac, n)
	default:
		return needs(writeUpdate), nil
	}
}

// ownerOf is the node that has a port with a MAC address, one without UUID if there
// is none.
func (b *Backend) ownerOf(ctx context.Context, mac string) (ironic.Node, error) {
	port, ok, err := b.reader.PortOf(ctx, mac)
	if err != nil || !ok {
		return ironic.Node{}, err
	}
	n, err := b.reader.Node(ctx, port.Node)
	if errors.Is(err, ironic.ErrNoNode) {
		return ironic.Node{}, nil
	}
	return n, err
}

func conflictOfMAC(mac string, n ironic.Node) error {
	return problemError(event.Enroll, event.ClassConflict, fmt.Sprintf("MAC address %s conflicts with existing node %s (%s)", mac, n.Name, n.UUID),
		"Correct spec.bootMACAddress of the one host that has the wrong one, or delete the other node")
}

// wantedPorts are the MAC addresses that the node must have ports for, and whether
// the machine may boot from them. The boot MAC address is the first.
func (b *Backend) wantedPorts(ctx context.Context, h lifecycle.Host) ([]v1alpha1.NIC, error) {
	var list []v1alpha1.NIC
	add := func(mac string, pxe bool) {
		mac = strings.ToLower(mac)
		if mac != "" && !slices.ContainsFunc(list, func(n v1alpha1.NIC) bool { return n.MAC == mac }) {
			list = append(list, v1alpha1.NIC{MAC: mac, PXE: pxe})
		}
	}
	add(h.Intent.Spec.BootMACAddress, true)
	if b.beside.Inventories == nil || h.Inspection.Digest == "" {
		return list, nil
	}
	d, err := b.beside.Inventories.Hardware(ctx, h)
	if err != nil || d == nil {
		return list, err
	}
	for _, n := range d.NIC {
		add(n.MAC, n.PXE)
	}
	return list, nil
}

// missingPorts are the ports that the node lacks. A boot MAC address that another
// node has is the host's own problem; another one, such as that of a device that
// all BMCs show alike, is let be.
func (b *Backend) missingPorts(ctx context.Context, v view) ([]v1alpha1.NIC, error) {
	wanted, err := b.wantedPorts(ctx, v.host)
	if err != nil || len(wanted) == 0 {
		return nil, err
	}
	have, err := b.reader.Ports(ctx, v.node.UUID)
	if err != nil {
		return nil, err
	}
	missing := slices.DeleteFunc(wanted, func(n v1alpha1.NIC) bool {
		return slices.ContainsFunc(have, func(p ironic.Port) bool { return strings.EqualFold(p.MAC, n.MAC) })
	})
	return b.takeable(ctx, v, missing)
}

// takeable are those of the missing ports that no other node has.
func (b *Backend) takeable(ctx context.Context, v view, missing []v1alpha1.NIC) ([]v1alpha1.NIC, error) {
	var list []v1alpha1.NIC
	for _, nic := range missing {
		other, err := b.ownerOf(ctx, nic.MAC)
		switch {
		case err != nil:
			return nil, err
		case other.UUID == "":
			list = append(list, nic)
		case strings.EqualFold(nic.MAC, v.host.Intent.Spec.BootMACAddress):
			return nil, conflictOfMAC(nic.MAC, other)
		}
	}
	return list, nil
}

// bmcAnswers is how long a BMC may take to answer Ironic. Ironic itself tries a dead
// one for a minute, which is longer than anybody here may wait.
const bmcAnswers = 12 * time.Second

// verified is nil once Ironic has reached the BMC with the credentials that the node
// was given. A node that came through state enroll was verified there.
func (b *Backend) verified(ctx context.Context, v view) error {
	if !v.renewed() || ironic.Busy(v.node.ProvisionState) {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, bmcAnswers)
	defer cancel()
	err := b.client.CheckBMC(within, v.node.UUID)
	switch {
	case errors.Is(err, ironic.ErrUnsupported), errors.Is(err, ironic.ErrNotFound):
		return nil // it shows at the next power sync
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return problemError(event.Enroll, event.ClassUnreachable, "the BMC does not answer Ironic in time with the new credentials", "")
	case errors.Is(err, ironic.ErrFailed), errors.Is(err, ironic.ErrInvalid):
		text := ironic.Detail(err)
		return problemError(event.Enroll, classify(text, event.ClassUnreachable), text, "")
	default:
		return err
	}
}

// login is the user name and password of the host's BMC, in the version that the
// host asks for.
func (b *Backend) login(ctx context.Context, h lifecycle.Host) (user, password string, err error) {
	ref := h.Intent.Credentials
	data, version, err := b.beside.Secrets.Get(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return "", "", err
	}
	if version != ref.Version {
		return "", "", fmt.Errorf("the Secret %s/%s has changed, and the host will be told: %w", ref.Namespace, ref.Name, lifecycle.ErrBusy)
	}
	values := map[string]string{}
	for _, key := range []string{"username", "password"} {
		values[key] = strings.TrimSpace(string(data[key]))
		if values[key] == "" {
			return "", "", problemError(event.Enroll, event.ClassCredentials,
				fmt.Sprintf("Validation error with BMC credentials: Missing BMC connection detail '%s' in credentials: the Secret %s/%s has no value under that key", key, ref.Namespace, ref.Name), "")
		}
	}
	return values["username"], values["password"], nil
}
