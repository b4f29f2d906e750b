package lab

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/metalbus/metalbus/integration/internal/programs"
)

// natsPatience is how long a NATS server may take to be ready.
const natsPatience = 30 * time.Second

// A NATS is a NATS server with JetStream, a process of the test's own.
type NATS struct {
	URL string

	lab     *Lab
	args    []string
	process *Process
}

// StartNATS runs a server for the test. Args are further flags of nats-server.
func (l *Lab) StartNATS(t testing.TB, args ...string) *NATS {
	t.Helper()
	port := FreePort(t)
	n := &NATS{
		URL: fmt.Sprintf("nats://127.0.0.1:%d", port),
		lab: l,
		args: append([]string{
			"--addr", "127.0.0.1", "--port", fmt.Sprint(port), "--jetstream", "--store_dir", t.TempDir(),
		}, args...),
	}
	n.Restart(t)
	return n
}

// Process is the server's process.
func (n *NATS) Process() *Process { return n.process }

// Restart runs the server again after its process was stopped or killed, at
// the same address and with what it had stored.
func (n *NATS) Restart(t testing.TB) {
	t.Helper()
	n.process = n.lab.Start(t, programs.NATSServer, nil, n.args...)
	Eventually(t, natsPatience, "reach the NATS server", func() error {
		nc, err := nats.Connect(n.URL)
		if err == nil {
			nc.Close()
		}
		return err
	})
}

// FreePort is a loopback port that nobody listens on.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
