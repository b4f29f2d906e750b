package bmc

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// Action is a command to a machine's power.
type Action string

// The commands. All return when the BMC has accepted them, not when they are done:
// look at State.
const (
	// TurnOn switches on.
	TurnOn Action = "on"
	// TurnOff cuts the power.
	TurnOff Action = "off"
	// ShutDown asks the operating system to go down. A BMC that cannot refuses; an
	// operating system may not listen.
	ShutDown Action = "shutdown"
	// Restart asks the operating system to restart.
	Restart Action = "restart"
	// Cycle restarts the machine, whatever runs; one that is off is switched on.
	Cycle Action = "cycle"
)

// resets are the Redfish resets that carry out an action, the best first.
func (a Action) resets() []string {
	switch a {
	case TurnOn:
		return []string{"On", "ForceOn"}
	case TurnOff:
		return []string{"ForceOff"}
	case ShutDown:
		return []string{"GracefulShutdown"}
	case Restart:
		return []string{"GracefulRestart"}
	case Cycle:
		return []string{"ForceRestart", "PowerCycle"}
	default:
		return nil
	}
}

// done tells whether there is nothing left to do in a state.
func (a Action) done(p Power) bool {
	switch a {
	case TurnOn:
		return p == PowerOn || p == PoweringOn
	case TurnOff, ShutDown:
		return p == PowerOff
	default:
		return false
	}
}

// SetPower gives a command, in one request. What is so already is no error.
func (b *BMC) SetPower(ctx context.Context, a Action) error {
	return b.converse(ctx, "command power "+string(a), func(t *talk) error {
		s, err := t.known()
		if err != nil {
			return err
		}
		kind, err := t.resetFor(s, a)
		if err != nil {
			return err
		}
		err = t.reset(s, kind)
		if _, refused := refusedByBMC(err); !refused {
			return err
		}
		return t.whyRefused(s, a, err)
	})
}

func (t *talk) reset(s *system, kind string) error {
	return t.change(http.MethodPost, s.reset.Target, map[string]string{"ResetType": kind}, nil)
}

// resetFor picks the reset that this BMC knows. On and ForceOff are known to all, so
// a BMC that says nothing of its resets is not asked about them.
func (t *talk) resetFor(s *system, a Action) (string, error) {
	if a != TurnOn && a != TurnOff {
		if err := t.readActionInfo(s); err != nil {
			return "", err
		}
	}
	for _, kind := range a.resets() {
		if s.allows(kind) {
			return kind, nil
		}
	}
	return "", t.fail(&Error{
		Reason: ErrRefused, Detail: "the BMC cannot do it, it knows only " + strings.Join(s.reset.Allowed, ", "), Advice: "use another way to command the power",
	})
}

// readActionInfo finds out which resets there are, where the system does not say it
// itself; once.
func (t *talk) readActionInfo(s *system) error {
	where := pathOf(s.reset.ActionInfo)
	if len(s.reset.Allowed) > 0 || where == "" {
		return nil
	}
	var info struct {
		Parameters []struct {
			Name            string
			AllowableValues []string
		}
	}
	if _, _, err := t.get(where, &info); err != nil && !isOdd(err) {
		return err
	}
	for _, p := range info.Parameters {
		if p.Name == "ResetType" {
			s.reset.Allowed = p.AllowableValues
		}
	}
	t.remember(s.path, s)
	return nil
}

// whyRefused looks at the machine after a refusal: it may be where it should be
// already, or only be off.
func (t *talk) whyRefused(s *system, a Action, refusal error) error {
	body, _, _, err := t.readSystem()
	switch {
	case errors.Is(err, ErrNoSystem):
		return err
	case err != nil:
		return refusal
	case a.done(body.PowerState):
		return nil
	case a == Cycle && body.PowerState == PowerOff:
		return t.reset(s, "On")
	default:
		return refusal
	}
}
