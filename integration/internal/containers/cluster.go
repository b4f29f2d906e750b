package containers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/integration/internal/programs"
)

// A Cluster is three NATS servers with JetStream. They reach each other over a
// network of their own, which a test may cut without touching the clients.
type Cluster struct {
	// URLs are for clients on the test's machine, comma-separated.
	URLs string
	// InsideURLs are for clients in containers on the network it was given.
	InsideURLs string
	// Nodes are the servers by name: n1, n2, n3.
	Nodes map[string]*Container
	// Routes is the network that joins the servers.
	Routes *Network
}

// StartCluster runs a cluster for the test, with its clients on the network
// inside.
func (s *Session) StartCluster(tb testing.TB, inside *Network) *Cluster {
	tb.Helper()
	c := &Cluster{Routes: s.Network(tb), Nodes: map[string]*Container{}}
	var urls, insideURLs []string
	for _, name := range []string{"n1", "n2", "n3"} {
		port := lab.FreePort(tb)
		// Another name for clients, or routes would cross their network too.
		forClients := "nats-" + name
		c.Nodes[name] = s.Start(tb, programs.NATSServer, name, map[*Network]string{inside: forClients, c.Routes: name},
			Publish("4222/tcp", port),
			withVolume("/data"),
			// Without advertising, clients keep to the addresses that they were
			// given, which they reach however the servers see each other.
			testcontainers.WithCmd("--name", name, "--js", "--sd", "/data", "--cluster_name", "test", "--no_advertise",
				"--cluster", "nats://0.0.0.0:6222", "--routes", "nats://n1:6222,nats://n2:6222,nats://n3:6222"),
			testcontainers.WithWaitStrategy(wait.ForLog("Server is ready")),
		)
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", port))
		insideURLs = append(insideURLs, fmt.Sprintf("nats://%s:4222", forClients))
	}
	c.URLs, c.InsideURLs = strings.Join(urls, ","), strings.Join(insideURLs, ",")
	return c
}

// withVolume keeps a folder's content while the container lives.
func withVolume(path string) testcontainers.CustomizeRequestOption {
	return testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeVolume, Target: path})
	})
}
