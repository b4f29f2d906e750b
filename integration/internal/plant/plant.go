// Package plant runs whole installations for tests and measurements: the five
// services as processes of their own, as many replicas of each as are asked
// for, against a NATS server, a Kubernetes API and a rack of simulated
// machines, all of which are processes of their own but the last.
package plant

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/pkg/bus"
)

// cluster is the token of an installation on its NATS.
const cluster = "plant"

// Services are the programs of an installation, in the order in which a host
// meets them.
func Services() []string {
	return []string{"projector", "registrar", "inspector", "provisioner", "powermonitor"}
}

// A Plant is an installation.
type Plant struct {
	Kube *lab.Kube
	NATS *lab.NATS
	Rack *Rack
	// Namespace is where its hosts are, and the only one that it watches.
	Namespace string
	// Hosts are its hosts, as Kubernetes shows them.
	Hosts *Hosts
	// Env are further settings of services that are started from now on, as
	// "NAME=value".
	Env []string

	lab      *lab.Lab
	replicas []*Replica
}

// A Replica is a running service.
type Replica struct {
	*lab.Process
	Service string
	ended   bool // by us
}

// New is an installation without services, which Start brings: with a NATS of
// its own, whose streams are made, and a namespace of its own in the given API.
func New(tb testing.TB, l *lab.Lab, kube *lab.Kube, rack *Rack) *Plant {
	tb.Helper()
	return At(tb, l, kube, l.StartNATS(tb), rack, kube.Namespace(tb))
}

// At is an installation in a namespace that is there, on a NATS whose streams
// may be there.
func At(tb testing.TB, l *lab.Lab, kube *lab.Kube, nats *lab.NATS, rack *Rack, namespace string) *Plant {
	tb.Helper()
	p := &Plant{Kube: kube, NATS: nats, Rack: rack, Namespace: namespace, lab: l}
	p.Hosts = Follow(tb, kube, namespace)
	p.Run(tb, "metalbus", "bus", "init", "--replicas=1")
	return p
}

// env are the settings that all programs of ours share.
func (p *Plant) env() []string {
	return []string{"NATS_URL=" + p.NATS.URL, "CLUSTER=" + cluster, "KUBECONFIG=" + p.Kube.Kubeconfig, "WATCH_NAMESPACE=" + p.Namespace, "LOG_LEVEL=DEBUG"}
}

// Run runs a command of ours to its end, and returns what it said.
func (p *Plant) Run(tb testing.TB, program string, args ...string) string {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), p.lab.Program(program), args...)
	cmd.Env = append(os.Environ(), p.env()...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		tb.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Start runs so many more replicas of every service.
func (p *Plant) Start(tb testing.TB, replicas int) {
	tb.Helper()
	for _, s := range Services() {
		for range replicas {
			p.StartOne(tb, s)
		}
	}
}

// StartOne runs one more replica of a service; args are further flags.
func (p *Plant) StartOne(tb testing.TB, service string, args ...string) *Replica {
	tb.Helper()
	env := append(append(p.env(), p.Env...), "STATE_DIR="+tb.TempDir(), fmt.Sprintf("POD_NAME=%s-%d", service, len(p.replicas)))
	r := &Replica{Service: service, Process: p.lab.Start(tb, service, env, append([]string{"--health-address="}, args...)...)}
	p.replicas = append(p.replicas, r)
	return r
}

// Stop tells every service to stop, and waits until all have.
func (p *Plant) Stop(tb testing.TB) {
	tb.Helper()
	for _, r := range p.running("") {
		r.ended = true
		r.Stop(tb)
		if code := r.ExitCode(); code != 0 {
			tb.Errorf("%s ended with exit code %d", r.Name, code)
		}
	}
}

// KillOneOfEach ends one replica of every service as a crash would: that which
// has run for the longest.
func (p *Plant) KillOneOfEach(tb testing.TB) {
	tb.Helper()
	for _, s := range Services() {
		left := p.running(s)
		if len(left) == 0 {
			tb.Fatalf("no replica of %s is left", s)
		}
		left[0].ended = true
		left[0].Kill()
	}
}

// Running are the living replicas of a service, the oldest first.
func (p *Plant) Running(service string) []*Replica { return p.running(service) }

func (p *Plant) running(service string) []*Replica {
	return slices.DeleteFunc(slices.Clone(p.replicas), func(r *Replica) bool {
		return r.ended || (service != "" && r.Service != service)
	})
}

// crashed names a replica that has ended by itself, "" if there is none.
func (p *Plant) crashed() string {
	for _, r := range p.running("") {
		select {
		case <-r.Done():
			return fmt.Sprintf("%s ended by itself, with exit code %d", r.Name, r.ExitCode())
		default:
		}
	}
	return ""
}

// Logs are the logs of all services that ever ran, by the path of the file.
func (p *Plant) Logs(tb testing.TB) map[string]string {
	tb.Helper()
	texts := map[string]string{}
	for _, r := range p.replicas {
		text, err := os.ReadFile(r.Log)
		if err != nil {
			tb.Fatal(err)
		}
		texts[r.Log] = string(text)
	}
	return texts
}

// Bus is a connection to the installation's bus until the test ends.
func (p *Plant) Bus(tb testing.TB) *bus.Bus {
	tb.Helper()
	b, err := bus.Connect(tb.Context(), bus.Config{URLs: []string{p.NATS.URL}, Cluster: cluster, Name: "test"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// Audit proves that the log has so many hosts, and keeps what the bus promises.
func (p *Plant) Audit(tb testing.TB, hosts int) {
	tb.Helper()
	report, err := p.Bus(tb).Audit(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	if report.Hosts != hosts {
		tb.Errorf("the log has %d hosts, want %d", report.Hosts, hosts)
	}
	for _, f := range report.Findings {
		tb.Error(f)
	}
}
