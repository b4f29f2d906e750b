// Package ironic_test runs the suite that every Ironic passes over real ones.
package ironic_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/integration/internal/containers"
	"github.com/metalbus/metalbus/integration/ironic/rack"
	"github.com/metalbus/metalbus/integration/ironic/rig"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim/agent"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest/conform"
)

var (
	docker containers.Session
	full   = flag.String("full", "", "releases to run the whole suite on, as 21,29,39; the newest runs a short one if this is empty")
)

// atOnce is how many cases run at the same time: they mostly wait.
const atOnce = "4"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(docker.Run(m))
}

func TestConformance(t *testing.T) {
	if *full == "" {
		conform.RunShort(t, newLab(t, rig.Config{Release: ironictest.Ironic39, Hosts: 6}))
		return
	}
	for name := range strings.SplitSeq(*full, ",") {
		n, err := strconv.Atoi(name)
		if err != nil {
			t.Fatalf("-full=%s: %q is no release: give some of %v", *full, name, ironictest.Releases())
		}
		cfg := rig.Config{Release: ironictest.Release(n), Hosts: 60}
		t.Run(name, func(t *testing.T) { conform.Run(t, newLab(t, cfg)) })
		cfg.Hosts, cfg.Username, cfg.Password = 0, "user", "secret"
		t.Run(name+" with a password", func(t *testing.T) { conform.RunProtected(t, newLab(t, cfg), cfg.Username, cfg.Password) })
	}
}

func newLab(t *testing.T, cfg rig.Config) conform.Lab {
	t.Helper()
	r := rig.Start(t, &docker, cfg)
	free := make(chan string, cfg.Hosts)
	machines, err := r.Rack.Machines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range machines {
		free <- m.View.Name
	}
	return conform.Lab{
		URL: r.URL, Release: cfg.Release, Files: r.Files(), Poll: 300 * time.Millisecond, Patience: 10 * time.Minute,
		Machine: func(tb testing.TB) conform.Machine {
			tb.Helper()
			select {
			case name := <-free:
				return newMachine(tb, r, name)
			default:
				tb.Fatalf("the rack of %d machines is used up: raise the number", cfg.Hosts)
				return nil
			}
		},
		Lose: r.Lose,
	}
}

// machine is one of the rack.
type machine struct {
	rig  *rig.Rig
	name string
	as   conform.Access
}

func newMachine(tb testing.TB, r *rig.Rig, name string) machine {
	tb.Helper()
	s, err := r.Rack.Machine(tb.Context(), name)
	if err != nil {
		tb.Fatal(err)
	}
	return machine{rig: r, name: name, as: conform.Access{
		Info: map[string]any{
			"redfish_address": r.BMC, "redfish_system_id": s.SystemPath, "redfish_username": s.Username, "redfish_password": s.Password, "redfish_verify_ca": false,
		},
		MACs: s.MACs,
	}}
}

func (m machine) Access() conform.Access { return m.as }

func (m machine) Look(tb testing.TB) conform.Look {
	tb.Helper()
	s, err := m.rig.Rack.Machine(tb.Context(), m.name)
	if err != nil {
		tb.Fatal(err)
	}
	runs := map[string]string{bmcsim.RunsAgent: ironictest.RunsAgent, bmcsim.RunsDisk: ironictest.RunsDisk, bmcsim.RunsISO: ironictest.RunsISO}[s.View.Running.Kind]
	setting, _ := s.View.Settings[conform.Setting].(string)
	return conform.Look{
		On: s.View.Power == "On", Runs: runs, Disk: s.Disk.Image, Drive: len(s.Disk.ConfigDrive) > 0, Writes: s.Disk.Writes, Erases: s.Disk.Erases, CD: len(s.View.Media) > 0, Boots: s.View.Boots,
		Setting: setting, Firmware: map[string]string{"bios": s.View.BIOS, "bmc": s.View.BMC}, Volumes: s.Volumes, Changes: s.View.Commands + s.Disk.Writes + s.Disk.Erases,
	}
}

func (m machine) Fault(tb testing.TB, f conform.Fault) {
	tb.Helper()
	bmc := bmcsim.Faults{Down: f.Down, RefusePower: f.RefusePower, NoBoot: f.NoBoot, RefuseMedia: f.FailMedia, FailTasks: f.FailUpdate}
	if f.Slow {
		bmc.Latency = 8 * time.Second // Ironic tries a locked node for two seconds
	}
	agents := agent.Faults{FailInspect: f.FailInspect, FailClean: f.FailClean, FailDeploy: f.FailDeploy, FailService: f.FailService}
	if f.LongSteps {
		agents.Step = time.Hour
	}
	m.change(tb, rack.Change{BMC: &bmc, Agent: &agents})
}

func (m machine) Change(tb testing.TB, c conform.Change) {
	tb.Helper()
	m.change(tb, rack.Change{Password: c.Password, Health: c.Health, Reset: map[string]string{"on": "On", "off": "ForceOff"}[c.Power]})
}

func (m machine) change(tb testing.TB, c rack.Change) {
	tb.Helper()
	if _, err := m.rig.Rack.Change(tb.Context(), m.name, c); err != nil {
		tb.Fatal(err)
	}
}
