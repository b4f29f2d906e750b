package ironic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Do makes a write.
func (b *Backend) Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error {
	return writeFailed(w.Kind, b.do(ctx, h, w))
}

func (b *Backend) do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error {
	if verb := verbOf(w.Name); verb != "" {
		return b.client.Provision(ctx, ident(w.Kind, h), ironic.Provision{Verb: verb})
	}
	switch w.Name {
	case writeUnmaintain:
		return b.client.UnsetMaintenance(ctx, ident(w.Kind, h))
	case writeOn:
		return b.client.Power(ctx, ident(w.Kind, h), ironic.PowerOn, 0)
	}
	write := map[string]func(context.Context, view) error{
		writeEnroll: b.doEnroll, writeRecreate: b.doRecreate, writeUpdate: b.doUpdate, writePorts: b.doPorts, writeConfigure: b.doConfigure,
		writeClean: b.doClean, writeService: b.doService, writeDeploy: b.doDeploy, writeProtect: b.doProtect, writeUndeploy: b.doUndeploy,
		writeDetach: b.doDetach, writeDelete: b.doDelete, writeRecover: b.doRecover, writeSoft: b.doSoft, writeHard: b.doHard, writeReboot: b.doReboot,
	}[w.Name]
	switch {
	case w.Kind == event.Subscribe:
		write = b.doSubscribe
	case strings.HasPrefix(w.Name, writeAttach+"/"):
		write = b.doAttach
	}
	if write == nil {
		return fmt.Errorf("the ironic backend knows no write %q", w.Name)
	}
	v, err := b.wanted(ctx, w.Kind, h)
	if err == nil && w.Name != writeEnroll {
		v, err = b.found(ctx, v)
	}
	switch {
	case err != nil:
		return err
	case v.node.UUID == "" && w.Kind != event.Enroll && w.Name != writeDelete:
		return lifecycle.ErrUnregistered
	}
	return write(ctx, v)
}

// verbOf is the verb of a write that is nothing but that.
func verbOf(write string) string {
	return map[string]string{
		writeManage: ironic.VerbManage, writeProvide: ironic.VerbProvide, writeAdopt: ironic.VerbAdopt, writeInspect: ironic.VerbInspect, writeAbort: ironic.VerbAbort,
	}[write]
}

// ident is by what a host's node is written to. While it is being registered the
// name is all that holds.
func ident(k event.Kind, h lifecycle.Host) string {
	if k == event.Enroll || h.Registration.Node == "" {
		return nodeName(h)
	}
	return h.Registration.Node
}

// doEnroll makes the node, with its boot port: without a port Ironic knows no agent.
func (b *Backend) doEnroll(ctx context.Context, v view) error {
	user, password, err := b.login(ctx, v.host)
	if err != nil {
		return err
	}
	fields := v.newNode(user, password)
	if err := b.addResolved(ctx, v, fields); err != nil {
		return err
	}
	n, err := b.client.Create(ctx, fields)
	if errors.Is(err, ironic.ErrConflict) {
		return b.nameTaken(ctx, v, err)
	}
	if err != nil {
		return err
	}
	v.node = n
	return b.doPorts(ctx, v)
}

// nameTaken: somebody was faster, or the node is there and hidden.
func (b *Backend) nameTaken(ctx context.Context, v view, conflict error) error {
	if _, err := b.client.Get(ctx, v.wish.name); err != nil && !errors.Is(err, ironic.ErrNoNode) {
		return err
	}
	return fmt.Errorf("%w: %w", lifecycle.ErrBusy, conflict)
}

// addResolved adds to a new node what has to be looked up.
func (b *Backend) addResolved(ctx context.Context, v view, fields map[string]any) error {
	info, _ := fields["driver_info"].(map[string]any)
	if b.fetchesOverIPv6(ctx, v) {
		info["external_http_url"] = b.set.ExternalURLv6
	}
	data, err := b.networkData(ctx, v.host)
	if data != nil {
		fields["network_data"] = data
	}
	return err
}

// fetchesOverIPv6 reports whether the BMC's name stands for an IPv6 address.
func (b *Backend) fetchesOverIPv6(ctx context.Context, v view) bool {
	host := v.wish.address.Host
	if b.set.ExternalURLv6 == "" || v.wish.address.HostIsLiteral() || host == "" {
		return false
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	return err == nil && len(addresses) > 0 && isIPv6(addresses[0])
}

// networkData is the network of the ramdisk, nil if the host names none, or if its
// ramdisk was built with it.
func (b *Backend) networkData(ctx context.Context, h lifecycle.Host) (map[string]any, error) {
	name, own := h.Intent.Spec.PreprovisioningNetworkDataName, h.Intent.Ramdisk
	if name == "" || (own != nil && !own.Plain) {
		return nil, nil
	}
	return b.object(ctx, h, secretHere(name), "networkData", false)
}

// doRecreate deletes a node that never worked.
func (b *Backend) doRecreate(ctx context.Context, v view) error {
	if v.node.UUID == "" || v.node.ProvisionState != ironic.StateEnroll {
		return nil
	}
	return b.client.Delete(ctx, v.node.UUID)
}

// doUpdate brings the node up to date, with the login.
func (b *Backend) doUpdate(ctx context.Context, v view) error {
	if v.node.UUID == "" {
		n, err := b.ownerOf(ctx, v.host.Intent.Spec.BootMACAddress)
		if err != nil || n.UUID == "" || n.Name != "" {
			return err
		}
		v.node = n
	}
	user, password, err := b.login(ctx, v.host)
	if err != nil {
		return err
	}
	p := v.registrationPatch()
	if v.changeable() {
		p = append(p, v.configPatch()...)
	}
	for key, value := range v.wish.address.DriverInfo(user, password) {
		if _, open := v.wish.driverInfo[key]; !open {
			p.Set("/driver_info/"+key, value)
		}
	}
	if b.fetchesOverIPv6(ctx, v) {
		p.Match("/driver_info/external_http_url", v.node.DriverInfo["external_http_url"], b.set.ExternalURLv6)
	}
	data, err := b.networkData(ctx, v.host)
	if err != nil {
		return err
	}
	if data != nil {
		p.Match("/network_data", v.node.NetworkData, data)
	}
	_, err = b.client.Update(ctx, v.node.UUID, p)
	return err
}

// doPorts makes the ports that the node lacks. What another node has is seen, and
// told, at the next look.
func (b *Backend) doPorts(ctx context.Context, v view) error {
	wanted, err := b.wantedPorts(ctx, v.host)
	if err != nil {
		return err
	}
	for _, nic := range wanted {
		if err := b.client.AddPort(ctx, v.node.UUID, nic.MAC, nic.PXE); err != nil && !errors.Is(err, ironic.ErrConflict) {
			return err
		}
	}
	return nil
}

// doConfigure brings the node to what it is worked with.
func (b *Backend) doConfigure(ctx context.Context, v view) error {
	if err := fence(v.node, v.host); err != nil {
		return err
	}
	p := v.configPatch()
	if len(p) == 0 {
		return nil
	}
	_, err := b.client.Update(ctx, v.node.UUID, p)
	return err
}

// mark notes the operation at the node, with other changes.
func (b *Backend) mark(ctx context.Context, v view, p ironic.Patch) error {
	if err := fence(v.node, v.host); err != nil {
		return err
	}
	p.MatchKeys("/extra", v.node.Extra, map[string]any{markOp: opMark(v.host)})
	if len(p) == 0 {
		return nil
	}
	_, err := b.client.Update(ctx, v.node.UUID, p)
	return err
}

// doClean sets the RAID that is wanted and has the node cleaned.
func (b *Backend) doClean(ctx context.Context, v view) error {
	c, err := v.cleaning()
	if err != nil || len(c.steps) == 0 {
		return err
	}
	if err := b.mark(ctx, v, nil); err != nil {
		return err
	}
	if c.disks != nil {
		if err := b.client.SetRAID(ctx, v.node.UUID, c.disks); err != nil {
			return err
		}
	}
	return b.client.Provision(ctx, v.node.UUID, ironic.Provision{Verb: ironic.VerbClean, Steps: c.steps})
}

// doService changes the firmware of a host in use.
func (b *Backend) doService(ctx context.Context, v view) error {
	steps := firmwareSteps(lifecycle.FirmwareChanges(v.host))
	if len(steps) == 0 {
		return nil
	}
	if err := b.mark(ctx, v, nil); err != nil {
		return err
	}
	return b.client.Provision(ctx, v.node.UUID, ironic.Provision{Verb: ironic.VerbService, Steps: steps})
}

// doDeploy says what is to be deployed, has that checked, and begins.
func (b *Backend) doDeploy(ctx context.Context, v view) error {
	if s := v.node.ProvisionState; s != ironic.StateAvailable && s != ironic.StateDeployFailed {
		return fmt.Errorf("node %s is in state %q by now: %w", v.node.UUID, s, lifecycle.ErrBusy)
	}
	drive, err := b.configDrive(ctx, v.host)
	if err != nil {
		return err
	}
	if err := b.claim(ctx, v); err != nil {
		return err
	}
	missing, err := b.client.Validate(ctx, v.node.UUID)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return problemError(event.Deploy, event.ClassImage, fmt.Sprintf("host validation error: %s", joined(missing)), "")
	}
	return b.client.Provision(ctx, v.node.UUID, ironic.Provision{Verb: ironic.VerbActive, ConfigDrive: drive, Steps: deploySteps(v.host)})
}

// claim makes the node the instance of this host, with what is to be deployed.
func (b *Backend) claim(ctx context.Context, v view) error {
	if err := fence(v.node, v.host); err != nil {
		return err
	}
	pull, err := b.pullSecret(ctx, v.host)
	if err != nil {
		return err
	}
	if claimed := v.node.InstanceUUID; claimed != "" && claimed != v.host.UID {
		if v.node, err = b.unclaimed(ctx, v); err != nil {
			return err
		}
	}
	p, err := v.instancePatch(pull)
	if err != nil {
		return err
	}
	_, err = b.client.Update(ctx, v.node.UUID, p)
	return err
}

// unclaimed is the node without the instance that it was before the host was moved
// here. Ironic lets a claim be made only where there is none.
func (b *Backend) unclaimed(ctx context.Context, v view) (ironic.Node, error) {
	if !v.oldUID(v.node.InstanceUUID) {
		return v.node, fmt.Errorf("node %s is claimed by instance %s by now: %w", v.node.UUID, v.node.InstanceUUID, lifecycle.ErrBusy)
	}
	var p ironic.Patch
	p.Remove("/instance_uuid")
	return b.client.Update(ctx, v.node.UUID, p)
}

// doProtect protects the node of a machine in use: whoever would undeploy or delete
// it has to take that off first.
func (b *Backend) doProtect(ctx context.Context, v view) error {
	var p ironic.Patch
	p.Set("/protected", true)
	p.Set("/protected_reason", reasonProtected)
	_, err := b.client.Update(ctx, v.node.UUID, p)
	return err
}

// doUndeploy takes the image off.
func (b *Backend) doUndeploy(ctx context.Context, v view) error {
	if v.kind == event.Deploy && v.node.ProvisionState == ironic.StateActive {
		return fmt.Errorf("node %s is active by now: %w", v.node.UUID, lifecycle.ErrBusy)
	}
	if ironic.Waiting(v.node.ProvisionState) { // nodes that wait take no change
		if err := fence(v.node, v.host); err != nil {
			return err
		}
	} else if err := b.mark(ctx, v, unprotect(v.node)); err != nil {
		return err
	}
	return b.client.Provision(ctx, v.node.UUID, ironic.Provision{Verb: ironic.VerbDeleted})
}

func unprotect(n ironic.Node) ironic.Patch {
	var p ironic.Patch
	if n.Protected {
		p.Set("/protected", false)
	}
	return p
}
