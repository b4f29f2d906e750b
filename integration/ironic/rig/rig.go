// Package rig starts a real Ironic in a container, with simulated machines and the
// agents that they boot in another one, for tests: see Start. The images are made
// by the scripts in integration/ironic/images, out of Debian packages; the first
// time takes minutes and needs root.
package rig

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/metalbus/metalbus/integration/internal/containers"
	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/integration/internal/programs"
	"github.com/metalbus/metalbus/integration/ironic/rack"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

const (
	// machinesName and ironicName are how the two containers find each other.
	machinesName = "machines"
	ironicName   = "ironic"
	machinesPort = "8000"
	ironicPort   = "6385"
	// patience is how long an Ironic may take to be ready: ten seconds when nobody
	// else is at work.
	patience = 5 * time.Minute
)

// Config says which Ironic and what machines.
type Config struct {
	Release ironictest.Release
	Hosts   int
	// PowerSync is the interval of Ironic's power sync; 5 s if zero.
	PowerSync time.Duration
	// Username and Password protect the API by http_basic, if they are given.
	Username, Password string
	// Profile is the machines' hardware profile; if empty bmcsim.Dell, but for
	// Ironic 21, whose Redfish library looks for virtual media elsewhere.
	Profile string
	// FastTrack keeps agents up between operations. Ironic 29 services no host without.
	FastTrack bool
	// RealAgents leaves it to the test to play what machines boot.
	RealAgents bool
}

// Rig is an Ironic with machines, for as long as the test runs.
type Rig struct {
	// URL is the address of the API, without a slash and without /v1.
	URL string
	// Rack is the machines' page of control.
	Rack rack.Rack
	// BMC is the address of all BMCs, as Ironic reaches it; with SystemPath of a
	// machine it tells which one is meant.
	BMC string
	// Network is where the containers are.
	Network *containers.Network

	cfg    Config
	ironic *containers.Container
}

// Release is which Ironic it is.
func (r *Rig) Release() ironictest.Release { return r.cfg.Release }

// Files is where images are, as Ironic and the machines reach it.
func (r *Rig) Files() string { return r.BMC + "/files" }

// Start runs an Ironic and machines for the test, and waits until both are ready.
func Start(tb testing.TB, s *containers.Session, cfg Config) *Rig {
	tb.Helper()
	if err := MakeImages(tb.Context(), os.Stderr, cfg.Release); err != nil {
		tb.Fatal(err)
	}
	if cfg.PowerSync == 0 {
		cfg.PowerSync = 5 * time.Second
	}
	if cfg.Profile == "" {
		cfg.Profile = bmcsim.Dell
		if cfg.Release < ironictest.Ironic29 {
			cfg.Profile = bmcsim.Plain
		}
	}
	network := s.Network(tb)
	at, control := lab.FreePort(tb), lab.FreePort(tb)
	r := &Rig{
		URL: fmt.Sprintf("http://127.0.0.1:%d", at), Rack: rack.Rack{URL: fmt.Sprintf("http://127.0.0.1:%d", control)},
		BMC: "http://" + machinesName + ":" + machinesPort, Network: network, cfg: cfg,
	}
	s.Start(tb, machinesName, "machines", map[*containers.Network]string{network: machinesName},
		containers.Publish(machinesPort+"/tcp", control),
		testcontainers.WithCmd("-hosts", strconv.Itoa(cfg.Hosts), "-profile", cfg.Profile, "-agents="+strconv.FormatBool(!cfg.RealAgents)),
		testcontainers.WithWaitStrategyAndDeadline(patience, wait.ForHTTP("/redfish").WithPort(machinesPort+"/tcp")),
	)
	r.ironic = s.Start(tb, ironicName, "ironic", map[*containers.Network]string{network: ironicName},
		image(Image(cfg.Release)), containers.Publish(ironicPort+"/tcp", at), roomy(),
		testcontainers.WithEnv(r.environment()), testcontainers.WithWaitStrategyAndDeadline(patience, r.ready()),
	)
	return r
}

func (r *Rig) environment() map[string]string {
	return map[string]string{
		"MACHINES": r.BMC, "POWER_SYNC": strconv.Itoa(int(r.cfg.PowerSync.Seconds())),
		"IRONIC_USER": r.cfg.Username, "IRONIC_PASSWORD": r.cfg.Password, "FAST_TRACK": map[bool]string{true: "True", false: "False"}[r.cfg.FastTrack],
	}
}

// ready waits for the drivers: the API answers before they are there.
func (r *Rig) ready() wait.Strategy {
	s := wait.ForHTTP("/v1/drivers").WithPort(ironicPort + "/tcp").WithStartupTimeout(patience).WithResponseMatcher(func(body io.Reader) bool {
		b, err := io.ReadAll(body)
		return err == nil && bytes.Contains(b, []byte(`"redfish"`))
	})
	if r.cfg.Username != "" {
		s = s.WithBasicAuth(r.cfg.Username, r.cfg.Password)
	}
	return s
}

// Lose ends Ironic and starts it again: its database is in memory and begins empty.
// It answers at the same address.
func (r *Rig) Lose(tb testing.TB) {
	tb.Helper()
	r.ironic.Kill(tb)
	r.ironic.Revive(tb)
	if err := r.ready().WaitUntilReady(tb.Context(), r.ironic); err != nil {
		tb.Fatal(err)
	}
}

// Ironic is the container that Ironic runs in.
func (r *Rig) Ironic() *containers.Container { return r.ironic }

// image runs another image than that of a program of ours.
func image(name string) testcontainers.CustomizeRequestOption {
	return func(r *testcontainers.GenericContainerRequest) error {
		r.Image = name
		return nil
	}
}

// roomy gives Ironic a root that it can write to, and memory for its state.
func roomy() testcontainers.CustomizeRequestOption {
	return testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
		h.ReadonlyRootfs = false
		h.Tmpfs = map[string]string{"/run": "", "/tmp": ""}
	})
}

// Image is the image of a release.
func Image(r ironictest.Release) string { return fmt.Sprintf("metalbus/ironic:%d", r) }

// MakeImages makes the image of a release, if it is not there, and that of the
// machines.
func MakeImages(ctx context.Context, progress io.Writer, r ironictest.Release) error {
	root, err := programs.Root(".")
	if err != nil {
		return err
	}
	if err := run(ctx, progress, root, nil, filepath.Join(root, "integration", "ironic", "images", "build"), "ironic", strconv.Itoa(int(r))); err != nil {
		return err
	}
	bin, err := os.MkdirTemp("", "metalbus-machines-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	env := append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if err := run(ctx, progress, filepath.Join(root, "integration"), env, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", filepath.Join(bin, machinesName), "./ironic/machines"); err != nil {
		return err
	}
	return run(ctx, progress, root, nil, filepath.Join(root, "deploy", "images", "build"), bin, machinesName)
}

func run(ctx context.Context, progress io.Writer, dir string, env []string, command string, args ...string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Dir, cmd.Env = dir, env
	cmd.Stdout, cmd.Stderr = &said, io.MultiWriter(&said, progress)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(command), err, said.Bytes())
	}
	return nil
}
