//go:build realagent

package realagent_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"

	"github.com/metalbus/metalbus/integration/internal/containers"
	"github.com/metalbus/metalbus/integration/ironic/rack"
	"github.com/metalbus/metalbus/integration/ironic/rig"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

const (
	agentImage = "metalbus/agent:13"
	diskBytes  = 6 << 30 // sparse; the agent takes nothing under 4 GiB for a disk
)

// machine gives a simulated machine a processor and a disk: when it boots the agent's
// image, a container runs the real agent, on a loop device.
type machine struct {
	tb   testing.TB
	rig  *rig.Rig
	name string
	disk string // path of the file
	loop string // its device

	box   *containers.Container // nil while no agent runs
	boots int                   // of the machine, when the agent was started
}

func newMachine(tb testing.TB, r *rig.Rig, name string) *machine {
	tb.Helper()
	m := &machine{tb: tb, rig: r, name: name, disk: filepath.Join(tb.TempDir(), name+".img")}
	f, err := os.Create(m.disk)
	if err != nil {
		tb.Fatal(err)
	}
	if err := errors.Join(f.Truncate(diskBytes), f.Close()); err != nil {
		tb.Fatal(err)
	}
	out, err := exec.CommandContext(tb.Context(), "losetup", "-P", "-f", "--show", m.disk).CombinedOutput()
	if err != nil {
		tb.Fatalf("losetup: %v %s", err, out)
	}
	m.loop = strings.TrimSpace(string(out))
	tb.Cleanup(func() {
		if out, err := exec.Command("losetup", "-d", m.loop).CombinedOutput(); err != nil { //nolint:noctx // the test's context is over
			tb.Errorf("losetup -d: %v %s", err, out)
		}
	})
	return m
}

func (m *machine) look() rack.State {
	m.tb.Helper()
	s, err := m.rig.Rack.Machine(m.tb.Context(), m.name)
	if err != nil {
		m.tb.Fatal(err)
	}
	return s
}

// turn lets the machine go on: it runs what was booted, and stops what was switched
// off. Whoever waits for something calls it again and again.
func (m *machine) turn() {
	m.tb.Helper()
	s := m.look()
	booted := s.View.Running.Kind == bmcsim.RunsISO && s.View.Power == "On"
	if m.box != nil && (!booted || s.View.Boots != m.boots) {
		m.end()
	}
	if booted && m.box == nil {
		m.boots = s.View.Boots
		m.run(s)
	}
	if m.box == nil {
		return
	}
	state, err := m.box.State(m.tb.Context())
	if err != nil {
		m.tb.Fatal(err)
	}
	if !state.Running { // the agent has switched its machine off
		m.end()
		if _, err := m.rig.Rack.Change(m.tb.Context(), m.name, rack.Change{Reset: "ForceOff"}); err != nil {
			m.tb.Fatal(err)
		}
	}
}

// run starts the agent. Its container is not privileged: the list of devices keeps
// it away from this machine's disks.
func (m *machine) run(s rack.State) {
	m.tb.Helper()
	params := m.parameters(s.View.Running.Image)
	m.box = docker.Start(m.tb, "agent", m.name, map[*containers.Network]string{m.rig.Network: m.name},
		testcontainers.CustomizeRequestOption(func(r *testcontainers.GenericContainerRequest) error {
			r.Image = agentImage
			return nil
		}),
		testcontainers.WithEnv(map[string]string{"AGENT_PARAMS": params, "AGENT_MAC": s.MACs[0], "AGENT_DISK": m.loop}),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
			h.ReadonlyRootfs, h.Tmpfs = false, nil
			h.CapDrop, h.CapAdd, h.SecurityOpt = nil, []string{"SYS_ADMIN", "NET_ADMIN"}, nil
			h.Devices = []container.DeviceMapping{{PathOnHost: m.loop, PathInContainer: m.loop, CgroupPermissions: "rwm"}}
			h.DeviceCgroupRules = []string{"b 259:* rwm"} // the loop device's partitions
		}),
	)
}

// parameters are what the boot image tells its agent.
func (m *machine) parameters(image string) string {
	m.tb.Helper()
	b, err := m.rig.Rack.Download(m.tb.Context(), path.Base(image))
	if err != nil {
		m.tb.Fatal(err)
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

func (m *machine) end() {
	m.tb.Helper()
	if err := m.box.Terminate(m.tb.Context(), testcontainers.StopTimeout(0)); err != nil {
		m.tb.Error(fmt.Errorf("end %s: %w", m.name, err))
	}
	m.box = nil
}
