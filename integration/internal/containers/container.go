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
func (s *Session) Network(t testing.TB) *Network {
	t.Helper()
	n, err := tcnetwork.New(t.Context(), tcnetwork.WithLabels(map[string]string{label: s.name}))
	testcontainers.CleanupNetwork(t, n)
	if err != nil {
		t.Fatal(err)
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
func (s *Session) Start(t testing.TB, program, name string, aliases map[*Network]string, options ...testcontainers.ContainerCustomizer) *Container {
	t.Helper()
	engine, err := testcontainers.NewDockerClientWithOpts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	all := []testcontainers.ContainerCustomizer{
		testcontainers.WithLabels(map[string]string{label: s.name}),
		testcontainers.WithHostConfigModifier(harden),
	}
	for n, alias := range aliases {
		all = append(all, tcnetwork.WithNetworkName([]string{alias}, n.Name))
	}
	c, err := testcontainers.Run(t.Context(), "metalbus/"+program+":dev", append(all, options...)...)
	t.Cleanup(func() { showLog(t, name, c) })
	testcontainers.CleanupContainer(t, c, testcontainers.StopTimeout(0))
	if err != nil {
		t.Fatalf("start %s: %v", name, err)
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
func (c *Container) Kill(t testing.TB) {
	t.Helper()
	_, err := c.engine.ContainerKill(t.Context(), c.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
	c.check(t, "kill", err)
}

// Revive runs a killed or stopped container again, with what it had stored.
func (c *Container) Revive(t testing.TB) {
	t.Helper()
	_, err := c.engine.ContainerStart(t.Context(), c.GetContainerID(), client.ContainerStartOptions{})
	c.check(t, "start", err)
}

// Pause freezes the container: its peers see silence, not a refusal.
func (c *Container) Pause(t testing.TB) {
	t.Helper()
	_, err := c.engine.ContainerPause(t.Context(), c.GetContainerID(), client.ContainerPauseOptions{})
	c.check(t, "pause", err)
}

// Resume thaws a paused container.
func (c *Container) Resume(t testing.TB) {
	t.Helper()
	_, err := c.engine.ContainerUnpause(t.Context(), c.GetContainerID(), client.ContainerUnpauseOptions{})
	c.check(t, "resume", err)
}

// CutOff takes the container off a network, with its connections hanging.
func (c *Container) CutOff(t testing.TB, n *Network) {
	t.Helper()
	_, err := c.engine.NetworkDisconnect(t.Context(), n.id, client.NetworkDisconnectOptions{Container: c.GetContainerID()})
	c.check(t, "cut off", err)
}

// Rejoin brings it back, under the same name and another address.
func (c *Container) Rejoin(t testing.TB, n *Network) {
	t.Helper()
	_, err := c.engine.NetworkConnect(t.Context(), n.id, client.NetworkConnectOptions{
		Container:      c.GetContainerID(),
		EndpointConfig: &network.EndpointSettings{Aliases: []string{c.aliases[n]}},
	})
	c.check(t, "rejoin", err)
}

func (c *Container) check(t testing.TB, verb string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s %s: %v", verb, c.Name, err)
	}
}

// showLog shows the end of a container's log if the test has failed.
func showLog(t testing.TB, name string, c *testcontainers.DockerContainer) {
	if !t.Failed() || c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
	defer cancel()
	log, err := c.Logs(ctx)
	if err != nil {
		t.Logf("%s: no log: %v", name, err)
		return
	}
	defer log.Close()
	var text bytes.Buffer
	_, _ = io.Copy(&text, log)
	tail := text.Bytes()[max(0, text.Len()-lastBytes):]
	t.Logf("%s, the end of its log:\n%s", name, strings.ToValidUTF8(string(tail), ""))
}
