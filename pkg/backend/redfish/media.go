package redfish

import (
	"context"
	"fmt"
	"slices"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// withMedia is for writes that need virtual media, which IPMI has not.
func withMedia(write func(context.Context, lifecycle.Host, *bmc.BMC) error) func(context.Context, lifecycle.Host, controller) error {
	return func(ctx context.Context, h lifecycle.Host, c controller) error {
		m, ok := c.(*bmc.BMC)
		if !ok {
			return &lifecycle.ProblemError{Problem: noMedia().Problem}
		}
		return write(ctx, h, m)
	}
}

func noMedia() lifecycle.Broken {
	return refuse(v1alpha1.ProvisioningError, fmt.Sprintf("the %s backend cannot provision a host over IPMI", Name))
}

// boot puts the image into the virtual drive, and switches the host on to boot
// from it once. Each part leaves alone what is so already.
func boot(ctx context.Context, h lifecycle.Host, m *bmc.BMC) error {
	if err := m.InsertMedia(ctx, h.Intent.Spec.Image.URL); err != nil {
		return err
	}
	if err := setBootOnce(ctx, h, m, bmc.Cd, mode(h)); err != nil {
		return err
	}
	return m.SetPower(ctx, bmc.TurnOn)
}

// setBootOnce sets the override of the next boot. Where a write of the operation was
// claimed before, that may have been this one, and have come as far as here: then
// what is so already is left alone.
func setBootOnce(ctx context.Context, h lifecycle.Host, m *bmc.BMC, d bmc.Device, mode bmc.BootMode) error {
	if op := h.Provisioning.Op; op != nil && op.Claim > 1 {
		s, err := m.State(ctx)
		if err != nil || boots(s.Boot, d, mode) {
			return err
		}
	}
	return m.SetBootOnce(ctx, d, mode)
}

// boots reports whether an override is as it would be set.
func boots(o bmc.BootOverride, d bmc.Device, mode bmc.BootMode) bool {
	return o.Device == d && (d == bmc.None || o.Once && o.Mode == mode)
}

func mode(h lifecycle.Host) bmc.BootMode {
	if lifecycle.BootMode(h.Intent) == v1alpha1.Legacy {
		return bmc.Legacy
	}
	return bmc.UEFI
}

func eject(ctx context.Context, h lifecycle.Host, m *bmc.BMC) error {
	if err := m.EjectMedia(ctx); err != nil {
		return err
	}
	return setBootOnce(ctx, h, m, bmc.None, bmc.AnyMode)
}

// unfit says why this backend cannot bring the image to the host; nil if it can.
func unfit(spec v1alpha1.BareMetalHostSpec) lifecycle.Outlook {
	switch {
	case spec.CustomDeploy != nil && spec.CustomDeploy.Method != "":
		return refuse(v1alpha1.ProvisioningError, fmt.Sprintf("the %s backend cannot run the custom deploy method %q", Name, spec.CustomDeploy.Method))
	case spec.Image == nil || spec.Image.DiskFormat == nil || *spec.Image.DiskFormat != v1alpha1.DiskFormatLiveISO:
		return refuse(v1alpha1.ProvisioningError, fmt.Sprintf("the %s backend cannot write an image to disk; it boots images with format %s", Name, v1alpha1.DiskFormatLiveISO))
	default:
		return nil
	}
}

// deploy: off, then media in and on. It is finished when the host is on, has
// used up its boot override, and the image is in the drive.
func (b *Backend) deploy(ctx context.Context, v view) (lifecycle.Outlook, error) {
	if o := unfit(v.host.Intent.Spec); o != nil {
		return o, nil
	}
	if _, ok := v.bmc.(*bmc.BMC); !ok {
		return noMedia(), nil
	}
	s, err := v.bmc.State(ctx)
	if err != nil {
		return nil, err
	}
	off := s.Power == bmc.PowerOff
	if v.step() != writeBoot {
		if off {
			return lifecycle.Needs{Write: writeBoot}, nil
		}
		return b.switchOff(v, v1alpha1.RebootModeHard), nil
	}
	switch {
	case off && !v.op().Answered:
		return lifecycle.Needs{Write: writeBoot}, nil
	case s.Power != bmc.PowerOn || s.Boot.Device == bmc.Cd:
		return b.within(v, b.limits.Boot, "the host to boot from its virtual drive"), nil
	default:
		return b.verify(ctx, v)
	}
}

func (b *Backend) verify(ctx context.Context, v view) (lifecycle.Outlook, error) {
	machine, ok := v.bmc.(*bmc.BMC)
	if !ok {
		return noMedia(), nil
	}
	drives, err := machine.Drives(ctx)
	if err != nil {
		return nil, err
	}
	url := v.host.Intent.Spec.Image.URL
	if slices.ContainsFunc(drives, func(d bmc.Drive) bool { return d.Inserted && d.Image == url }) {
		return lifecycle.Finished{}, nil
	}
	return b.within(v, b.limits.Boot, "the virtual drive to show the image "+url), nil
}

// undeploy: off, then media out.
func (b *Backend) undeploy(ctx context.Context, v view) (lifecycle.Outlook, error) {
	step := v.step()
	if step == writeEject {
		if v.op().Answered {
			return lifecycle.Finished{}, nil
		}
		return lifecycle.Needs{Write: writeEject}, nil
	}
	s, err := v.bmc.State(ctx)
	switch {
	case err != nil:
		return nil, err
	case s.Power == bmc.PowerOff:
		return lifecycle.Needs{Write: writeEject}, nil
	default:
		return b.switchOff(v, v1alpha1.RebootModeHard), nil
	}
}
