package bmc_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/bmc/bmctest"
)

// The tests of IPMI are not parallel: a program that is being written while another
// test forks cannot be run.

// ipmitool puts a program in the place of ipmitool that notes how it is called and
// prints what say says for each command. It gives the program and its notes.
func ipmitool(t *testing.T, say map[string]string) (program string, notes func() []string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "calls")
	var script strings.Builder
	script.WriteString("#!/bin/sh\necho \"$@ password=$IPMITOOL_PASSWORD\" >>" + log + "\ncase \"$*\" in\n")
	for command, text := range say {
		code := 0
		if strings.HasPrefix(text, "!") {
			text, code = text[1:], 1
		}
		fmt.Fprintf(&script, "*%q) echo %q; exit %d;;\n", command, text, code)
	}
	script.WriteString("esac\nexit 3\n")
	program = filepath.Join(dir, "ipmitool")
	must(t, os.WriteFile(program, []byte(script.String()), 0o700))
	return program, func() []string {
		b, err := os.ReadFile(log)
		if os.IsNotExist(err) {
			return nil
		}
		must(t, err)
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
}

const isOff, isOn = "Chassis Power is off", "Chassis Power is on"

func openIPMI(t *testing.T, program, host string) *bmc.IPMI {
	t.Helper()
	i, err := bmctest.Pool(t, bmc.Config{IPMITool: program}).IPMI(bmc.IPMITarget{Host: host, Credentials: bmc.NewCredentials("admin", canary)})
	must(t, err)
	return i
}

func TestIPMIPower(t *testing.T) {
	const status, on, off, soft, cycle = "chassis power status", "chassis power on", "chassis power off", "chassis power soft", "chassis power cycle"
	tests := map[string]struct {
		is     string
		action bmc.Action
		runs   string // the last command
	}{
		"on":                {isOff, bmc.TurnOn, on},
		"on when on":        {isOn, bmc.TurnOn, status},
		"off":               {isOn, bmc.TurnOff, off},
		"off when off":      {isOff, bmc.TurnOff, status},
		"shutdown":          {isOn, bmc.ShutDown, soft},
		"shutdown when off": {isOff, bmc.ShutDown, status},
		"cycle":             {isOn, bmc.Cycle, cycle},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			program, calls := ipmitool(t, map[string]string{
				status: tc.is, on: "Chassis Power Control: Up/On", off: "Chassis Power Control: Down/Off", soft: "Chassis Power Control: Soft", cycle: "Chassis Power Control: Cycle",
			})
			i := openIPMI(t, program, "192.0.2.1")
			got, err := i.State(t.Context())
			must(t, err)
			if want := map[string]bmc.Power{isOn: bmc.PowerOn, isOff: bmc.PowerOff}[tc.is]; got.Power != want {
				t.Errorf("power %q, want %q", got.Power, want)
			}
			must(t, i.SetPower(t.Context(), tc.action))
			all := calls()
			last := all[len(all)-1]
			if !strings.Contains(last, tc.runs+" password="+canary) || !strings.Contains(last, "-H 192.0.2.1 -p 623") {
				t.Errorf("ran %q, want %s", last, tc.runs)
			}
			if args, _, _ := strings.Cut(last, " password="); leaks(args) {
				t.Errorf("the password is among the arguments: %s", args)
			}
		})
	}
}

func TestIPMIBootDeviceAndIPv6(t *testing.T) {
	program, calls := ipmitool(t, map[string]string{"chassis bootdev pxe options=efiboot": "Set Boot Device to pxe"})
	i := openIPMI(t, program, "2001:db8::10")
	must(t, i.SetBootOnce(t.Context(), bmc.Pxe, bmc.UEFI))
	if got := calls(); len(got) != 1 || !strings.Contains(got[0], "-H 2001:db8::10 -p 623") {
		t.Errorf("ran %q", got)
	}
	wants(t, i.SetBootOnce(t.Context(), bmc.UEFIHTTP, bmc.UEFI), bmc.ErrRefused)
	wants(t, i.SetPower(t.Context(), bmc.Restart), bmc.ErrRefused)
}

func TestIPMIErrors(t *testing.T) {
	tests := map[string]struct {
		says   string
		reason error
		runs   int // in five calls
	}{
		"a wrong password is tried once": {"!Error: RAKP 2 HMAC is invalid", bmc.ErrUnauthorized, 1},
		"a wrong user is tried once":     {"!RAKP 2 message indicates an error : unauthorized name", bmc.ErrUnauthorized, 1},
		"nobody answers":                 {"!Error: Unable to establish IPMI v2 / RMCP+ session", bmc.ErrUnreachable, 3},
		"anything else":                  {"!Insufficient privilege level " + canary, bmc.ErrRefused, 5},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			program, calls := ipmitool(t, map[string]string{"chassis power status": tc.says})
			i := openIPMI(t, program, "192.0.2.1")
			for range 5 {
				err := i.SetPower(t.Context(), bmc.ShutDown)
				wants(t, err, tc.reason)
				if leaks(err.Error()) {
					t.Errorf("the password shows in %q", err)
				}
			}
			if got := len(calls()); got != tc.runs {
				t.Errorf("ipmitool ran %d times, want %d", got, tc.runs)
			}
		})
	}
}

func TestIPMIWithoutIPMITool(t *testing.T) {
	i := openIPMI(t, filepath.Join(t.TempDir(), "nothing"), "192.0.2.1")
	_, err := i.State(t.Context())
	wants(t, err, bmc.ErrNoIPMITool)
	if !strings.Contains(err.Error(), "install ipmitool") {
		t.Errorf("%q does not say what to do", err)
	}
}

func TestIPMITargetsThatAreNoAddress(t *testing.T) {
	pool := bmctest.Pool(t, bmc.Config{})
	for _, target := range []bmc.IPMITarget{{}, {Host: "[::1]"}, {Host: "a b"}, {Host: "admin@192.0.2.1"}, {Host: "192.0.2.1", Port: 70000}} {
		if _, err := pool.IPMI(target); err == nil {
			t.Errorf("%+v is accepted", target)
		}
	}
	if errors.Is(bmc.ErrNoIPMITool, bmc.ErrRefused) {
		t.Error("reasons are not told apart")
	}
}
