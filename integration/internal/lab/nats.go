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
func (l *Lab) StartNATS(tb testing.TB, args ...string) *NATS {
	tb.Helper()
	port := FreePort(tb)
	n := &NATS{
		URL: fmt.Sprintf("nats://127.0.0.1:%d", port),
		lab: l,
		args: append([]string{
			"--addr", "127.0.0.1", "--port", fmt.Sprint(port), "--jetstream", "--store_dir", tb.TempDir(),
		}, args...),
	}
	n.Restart(tb)
	return n
}

// Process is the server's process.
func (n *NATS) Process() *Process { return n.process }

// Restart runs the server again after its process was stopped or killed, at
// the same address and with what it had stored.
func (n *NATS) Restart(tb testing.TB) {
	tb.Helper()
	n.process = n.lab.Start(tb, programs.NATSServer, nil, n.args...)
	Eventually(tb, natsPatience, "reach the NATS server", func() error {
		nc, err := nats.Connect(n.URL)
		if err == nil {
			nc.Close()
		}
		return err
	})
}

// FreePort is a loopback port that nobody listens on.
func FreePort(tb testing.TB) int {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
