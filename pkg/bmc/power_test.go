package bmc_test

import (
	"errors"
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bmc/bmctest"
)

func TestPowerOfEveryVendor(t *testing.T) {
	for _, profile := range bmcsim.Profiles() {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, profile, bmc.Config{})
			b := l.open(t)
			_, err := b.Check(t.Context())
			must(t, err)
			must(t, b.InsertMedia(t.Context(), iso)) // something that a shutdown can be asked of
			for _, step := range []struct {
				action bmc.Action
				power  bmc.Power
				boots  int
			}{
				{bmc.TurnOff, bmc.PowerOff, 0}, // is so already
				{bmc.TurnOn, bmc.PowerOn, 1},
				{bmc.TurnOn, bmc.PowerOn, 1}, // is so already
				{bmc.Restart, bmc.PowerOn, 2},
				{bmc.Cycle, bmc.PowerOn, 3},
				{bmc.ShutDown, bmc.PowerOff, 3},
				{bmc.ShutDown, bmc.PowerOff, 3}, // is so already
				{bmc.TurnOn, bmc.PowerOn, 4},
				{bmc.TurnOff, bmc.PowerOff, 4},
			} {
				must(t, b.SetPower(t.Context(), step.action))
				var got bmc.State
				if n, kinds := l.cost(func() { got, err = b.State(t.Context()) }); n != 1 {
					t.Errorf("reading the power costs %d requests: %v", n, kinds)
				}
				must(t, err)
				if got.Power != step.power || l.host.View().Boots != step.boots {
					t.Errorf("after %s: power %s, %d boots; want %s, %d", step.action, got.Power, l.host.View().Boots, step.power, step.boots)
				}
			}
		})
	}
}

func TestCycleSwitchesOnWhatIsOff(t *testing.T) {
	for _, profile := range []string{bmcsim.Dell, bmcsim.HPE} {
		l := newLab(t, profile, bmc.Config{})
		must(t, l.open(t).SetPower(t.Context(), bmc.Cycle))
		if got := l.host.View().Power; got != "On" {
			t.Errorf("%s: power is %s after a cycle", profile, got)
		}
	}
}

// The answer to a command is no news of the machine: it is on until the BMC shows
// that it is off.
func TestPowerIsWhatTheBMCShowsNotWhatWasAccepted(t *testing.T) {
	for profile, between := range map[string]bmc.Power{bmcsim.Dell: bmc.PowerOn, bmcsim.OpenBMC: bmc.PoweringOff} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			s := bmctest.Rack(t, bmcsim.Config{Hosts: 1, Profiles: []string{profile}, Delays: bmcsim.Delays{PowerOff: 100 * time.Millisecond}})
			h := s.Hosts()[0]
			b := bmctest.Open(t, bmctest.Pool(t, bmc.Config{}), bmctest.Target(bmctest.Serve(t, s), h))
			must(t, b.SetPower(t.Context(), bmc.TurnOn))
			must(t, b.SetPower(t.Context(), bmc.TurnOff))
			got, err := b.State(t.Context())
			must(t, err)
			if h.View().Power != "Off" && got.Power != between {
				t.Errorf("shown at once after the command: %s, want %s", got.Power, between)
			}
			until(t, func() bool {
				got, err = b.State(t.Context())
				must(t, err)
				return got.Power == bmc.PowerOff
			})
		})
	}
}

func TestPowerFaults(t *testing.T) {
	tests := map[string]struct {
		profile string
		faults  bmcsim.Faults
		action  bmc.Action
		reason  error
		power   string
	}{
		"the BMC refuses":                        {bmcsim.Dell, bmcsim.Faults{RefusePower: true}, bmc.TurnOff, bmc.ErrRefused, "On"},
		"the BMC accepts and does nothing":       {bmcsim.HPE, bmcsim.Faults{IgnorePower: true}, bmc.TurnOff, nil, "On"},
		"the BMC knows no shutdown":              {bmcsim.Supermicro, bmcsim.Faults{RefuseShutdown: true}, bmc.ShutDown, bmc.ErrRefused, "On"},
		"the operating system does not listen":   {bmcsim.OpenBMC, bmcsim.Faults{IgnoreShutdown: true}, bmc.ShutDown, nil, "On"},
		"hard is possible where soft is refused": {bmcsim.Supermicro, bmcsim.Faults{RefuseShutdown: true}, bmc.TurnOff, nil, "Off"},
		"the BMC is busy":                        {bmcsim.Dell, bmcsim.Faults{Unavailable: true}, bmc.TurnOff, bmc.ErrBusy, "On"},
		"the BMC is down":                        {bmcsim.Dell, bmcsim.Faults{Down: true}, bmc.TurnOff, bmc.ErrUnreachable, "On"},
		"the system is lost":                     {bmcsim.Dell, bmcsim.Faults{Lost: true}, bmc.TurnOff, bmc.ErrNoSystem, "On"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, tc.profile, bmc.Config{})
			b := l.open(t)
			must(t, b.InsertMedia(t.Context(), iso))
			must(t, b.SetPower(t.Context(), bmc.TurnOn))
			l.host.SetFaults(tc.faults)
			err := b.SetPower(t.Context(), tc.action)
			if !errors.Is(err, tc.reason) {
				t.Errorf("got error %v, want %v", err, tc.reason)
			}
			l.host.SetFaults(bmcsim.Faults{})
			if got := l.host.View().Power; got != tc.power {
				t.Errorf("power is %s, want %s", got, tc.power)
			}
		})
	}
}

func TestACommandWhoseAnswerIsLostIsSentOnce(t *testing.T) {
	l := newLab(t, bmcsim.Dell, bmc.Config{})
	b := l.open(t)
	_, err := b.Check(t.Context())
	must(t, err)
	l.host.SetFaults(bmcsim.Faults{Drop: true})
	wants(t, b.SetPower(t.Context(), bmc.TurnOn), bmc.ErrUnreachable)
	l.host.SetFaults(bmcsim.Faults{})
	if got := l.host.Commands(); len(got) != 1 {
		t.Errorf("the BMC was given %d commands, want 1", len(got))
	}
	if st, err := b.State(t.Context()); err != nil || st.Power != bmc.PowerOn {
		t.Errorf("the command took effect: power %s, %v", st.Power, err)
	}
}

func TestHealthAndBootOverrideAreInTheState(t *testing.T) {
	l := newLab(t, bmcsim.HPE, bmc.Config{})
	b := l.open(t)
	l.host.SetHealth("Critical")
	must(t, b.SetBootOnce(t.Context(), bmc.Pxe, bmc.UEFI))
	got, err := b.State(t.Context())
	must(t, err)
	want := bmc.State{Power: bmc.PowerOff, Health: bmc.HealthCritical, Boot: bmc.BootOverride{Device: bmc.Pxe, Once: true, Mode: bmc.UEFI}, Progress: "None"}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	must(t, b.SetBootOnce(t.Context(), bmc.None, bmc.AnyMode))
	if got, err = b.State(t.Context()); err != nil || got.Boot.Device != bmc.None {
		t.Errorf("after the override was taken back: %+v, %v", got.Boot, err)
	}
	wants(t, b.SetBootOnce(t.Context(), "Tape", bmc.AnyMode), bmc.ErrRefused)
}

// until waits for a condition.
func until(t *testing.T, f func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !f(); {
		if time.Now().After(end) {
			t.Fatal("it does not come about")
		}
		time.Sleep(time.Millisecond)
	}
}
