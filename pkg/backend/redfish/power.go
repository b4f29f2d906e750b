package redfish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// The writes that this backend makes, as they stand in an operation's step.
const (
	writeOn     = "on"
	writeSoft   = "soft"
	writeHard   = "hard"
	writeReboot = "reboot"
	writeBoot   = "boot"
	writeEject  = "eject"
)

func command(a bmc.Action) func(context.Context, lifecycle.Host, controller) error {
	return func(ctx context.Context, _ lifecycle.Host, m controller) error { return m.SetPower(ctx, a) }
}

// shutDown asks the operating system, and cuts the power where the BMC cannot ask.
func shutDown(ctx context.Context, _ lifecycle.Host, m controller) error {
	err := m.SetPower(ctx, bmc.ShutDown)
	if errors.Is(err, bmc.ErrRefused) {
		return m.SetPower(ctx, bmc.TurnOff)
	}
	return err
}

func (b *Backend) powerOn(ctx context.Context, v view) (lifecycle.Outlook, error) {
	s, err := v.bmc.State(ctx)
	switch {
	case err != nil:
		return nil, err
	case s.Power == bmc.PowerOn:
		return lifecycle.Finished{}, nil
	case v.step() != writeOn || !v.op().Answered:
		return lifecycle.Needs{Write: writeOn}, nil
	default:
		return b.within(v, b.limits.Power, "the host to come on"), nil
	}
}

func (b *Backend) powerOff(ctx context.Context, v view) (lifecycle.Outlook, error) {
	s, err := v.bmc.State(ctx)
	switch {
	case err != nil:
		return nil, err
	case s.Power == bmc.PowerOff:
		return lifecycle.Finished{}, nil
	default:
		return b.switchOff(v, lifecycle.OffMode(v.host)), nil
	}
}

// switchOff is what comes next for a host that is on and is to be off.
func (b *Backend) switchOff(v view, mode v1alpha1.RebootMode) lifecycle.Outlook {
	step, op := v.step(), v.op()
	switch {
	case step != writeSoft && step != writeHard:
		return lifecycle.Needs{Write: string(mode)}
	case !op.Answered || (step == writeSoft && mode == v1alpha1.RebootModeHard):
		return lifecycle.Needs{Write: string(mode)}
	case step == writeSoft && b.now().Sub(op.StepAt) > b.limits.SoftOff:
		return lifecycle.Needs{Write: writeHard}
	case step == writeSoft:
		return lifecycle.Underway{For: "the operating system to shut down", Every: lifecycle.Quick}
	default:
		return b.within(v, b.limits.Power, "the host to go off")
	}
}

func (b *Backend) reboot(ctx context.Context, v view) (lifecycle.Outlook, error) {
	if v.step() != writeReboot || !v.op().Answered {
		return lifecycle.Needs{Write: writeReboot}, nil
	}
	s, err := v.bmc.State(ctx)
	switch {
	case err != nil:
		return nil, err
	case s.Power == bmc.PowerOn:
		return lifecycle.Finished{}, nil
	default:
		return b.within(v, b.limits.Power, "the host to come on"), nil
	}
}

// within waits for the effect of the last write, and calls it broken when that
// takes too long.
func (b *Backend) within(v view, limit time.Duration, what string) lifecycle.Outlook {
	if b.now().Sub(v.op().StepAt) <= limit {
		return lifecycle.Underway{For: what, Every: lifecycle.Quick}
	}
	return lifecycle.Broken{Problem: lifecycle.NewProblem(lifecycle.ErrorTypeOf(v.kind), event.ClassTimeout,
		fmt.Sprintf("waited %s for %s after the BMC at %s had accepted the command", limit, what, v.bmc))}
}
