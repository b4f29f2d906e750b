package containers

import (
	"bytes"
	"context"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"

	"github.com/metalbus/metalbus/integration/internal/programs"
)

// lastBytes is how much of a container's log a failed test shows.
const lastBytes = 8 << 10

// loopback is where ports are published. The test's machine is nobody else's
// business.
func loopback() netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, 1}) }

// A Network joins containers, which find each other by name.
type Network struct {
	Name string
	id   string
}

// Network makes a network for the test.
func (s *Session) Network(tb testing.TB) *Network {
	tb.Helper()
	n, err := tcnetwork.New(tb.Context(), tcnetwork.WithLabels(map[string]string{label: s.name}))
	testcontainers.CleanupNetwork(tb, n)
	if err != nil {
		tb.Fatal(err)
	}
	return &Network{Name: n.Name, id: n.ID}
}

// A Container is a program of ours in a container that a test may hurt.
type Container struct {
	*testcontainers.DockerContainer
	Name string

	engine  *testcontainers.DockerClient
	aliases map[*Network]string
}

// Start runs the image of a program on the given networks, each with the name
// by which the others there find it. The container is as tight as in production: no rights, no
// capabilities, nothing writable but /data and /tmp.
func (s *Session) Start(tb testing.TB, program, name string, aliases map[*Network]string, options ...testcontainers.ContainerCustomizer) *Container {
	tb.Helper()
	programs.Used()
	engine, err := testcontainers.NewDockerClientWithOpts(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = engine.Close() })
	all := []testcontainers.ContainerCustomizer{
		testcontainers.WithLabels(map[string]string{label: s.name}),
		testcontainers.WithHostConfigModifier(harden),
	}
	for n, alias := range aliases {
		all = append(all, tcnetwork.WithNetworkName([]string{alias}, n.Name))
	}
	c, err := testcontainers.Run(tb.Context(), "metalbus/"+program+":dev", append(all, options...)...)
	testcontainers.CleanupContainer(tb, c, testcontainers.StopTimeout(0))
	tb.Cleanup(func() { showLog(tb, name, c) }) // runs first
	if err != nil {
		tb.Fatalf("start %s: %v", name, err)
	}
	return &Container{DockerContainer: c, Name: name, engine: engine, aliases: aliases}
}

func harden(h *container.HostConfig) {
	h.ReadonlyRootfs = true
	h.CapDrop = []string{"ALL"}
	h.SecurityOpt = []string{"no-new-privileges:true"}
	h.Tmpfs = map[string]string{"/tmp": ""}
}

// Publish makes a port of the container reachable under the same loopback port
// for all of its life. One that the engine chooses changes with each restart.
func Publish(port string, at int) testcontainers.CustomizeRequestOption {
	return func(r *testcontainers.GenericContainerRequest) error {
		r.ExposedPorts = append(r.ExposedPorts, port)
		return testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
			if h.PortBindings == nil {
				h.PortBindings = network.PortMap{}
			}
			h.PortBindings[network.MustParsePort(port)] = []network.PortBinding{{HostIP: loopback(), HostPort: strconv.Itoa(at)}}
		})(r)
	}
}

// Kill ends the container's program as a crash would.
func (c *Container) Kill(tb testing.TB) {
	tb.Helper()
	_, err := c.engine.ContainerKill(tb.Context(), c.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
	c.check(tb, "kill", err)
}

// Revive runs a killed or stopped container again, with what it had stored.
func (c *Container) Revive(tb testing.TB) {
	tb.Helper()
	_, err := c.engine.ContainerStart(tb.Context(), c.GetContainerID(), client.ContainerStartOptions{})
	c.check(tb, "start", err)
}

// Pause freezes the container: its peers see silence, not a refusal.
func (c *Container) Pause(tb testing.TB) {
	tb.Helper()
	_, err := c.engine.ContainerPause(tb.Context(), c.GetContainerID(), client.ContainerPauseOptions{})
	c.check(tb, "pause", err)
}

// Resume thaws a paused container.
func (c *Container) Resume(tb testing.TB) {
	tb.Helper()
	_, err := c.engine.ContainerUnpause(tb.Context(), c.GetContainerID(), client.ContainerUnpauseOptions{})
	c.check(tb, "resume", err)
}

// CutOff takes the container off a network, with its connections hanging.
func (c *Container) CutOff(tb testing.TB, n *Network) {
	tb.Helper()
	_, err := c.engine.NetworkDisconnect(tb.Context(), n.id, client.NetworkDisconnectOptions{Container: c.GetContainerID()})
	c.check(tb, "cut off", err)
}

// Rejoin brings it back, under the same name and another address.
func (c *Container) Rejoin(tb testing.TB, n *Network) {
	tb.Helper()
	_, err := c.engine.NetworkConnect(tb.Context(), n.id, client.NetworkConnectOptions{
		Container:      c.GetContainerID(),
		EndpointConfig: &network.EndpointSettings{Aliases: []string{c.aliases[n]}},
	})
	c.check(tb, "rejoin", err)
}

func (c *Container) check(tb testing.TB, verb string, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%s %s: %v", verb, c.Name, err)
	}
}

// showLog shows the end of a container's log if the test has failed.
func showLog(tb testing.TB, name string, c *testcontainers.DockerContainer) {
	tb.Helper()
	if !tb.Failed() || c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 10*time.Second)
	defer cancel()
	log, err := c.Logs(ctx)
	if err != nil {
		tb.Logf("%s: no log: %v", name, err)
		return
	}
	defer log.Close()
	var text bytes.Buffer
	_, _ = io.Copy(&text, log)
	tail := text.Bytes()[max(0, text.Len()-lastBytes):]
	tb.Logf("%s, the end of its log:\n%s", name, strings.ToValidUTF8(string(tail), ""))
}
