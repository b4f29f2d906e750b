package contained_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
)

// While hosts are on their way a NATS server is killed and a service is cut off
// from everything. The other services go on with what is theirs, also for hosts
// that are declared only then; and when both are back all hosts get to where
// they are to be, with not one write too many to a machine and no gap in the log.
func TestHostsOutliveAKilledServerAndACutOffService(t *testing.T) {
	const machines = 20
	s := newSite(t, machines)
	objects := s.manifests(t)
	half := len(objects) / 2
	early := s.declare(t, objects[:half])
	s.await(t, 3, early, v1alpha1.StateProvisioned)

	server, service := s.nats.Nodes["n2"], s.services["provisioner"]
	server.Kill(t)
	service.CutOff(t, s.inside)
	late := s.declare(t, objects[half:])
	s.await(t, len(late), late, v1alpha1.StatePreparing) // as far as it goes without a provisioner

	service.Rejoin(t, s.inside)
	s.await(t, 1, late, v1alpha1.StateProvisioned)
	server.Revive(t)
	hosts := append(early, late...)
	s.await(t, machines, hosts, v1alpha1.StateProvisioned)

	for _, name := range hosts {
		var did []string
		for _, c := range s.commands(t, name) {
			if c.Status < 400 {
				did = append(did, c.Action)
			}
		}
		if diff := cmp.Diff([]string{"InsertMedia", "SetBoot", "Reset"}, did); diff != "" {
			t.Errorf("what was done to %s (-want +got):\n%s", name, diff)
		}
	}
	s.audit(t, machines)
}

// audit wants a log of so many hosts that keeps what the bus promises.
func (s *site) audit(t *testing.T, hosts int) {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Config{URLs: strings.Split(s.nats.URLs, ","), Cluster: cluster, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	report, err := b.Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.Hosts != hosts {
		t.Errorf("the log has %d hosts, want %d", report.Hosts, hosts)
	}
	for _, f := range report.Findings {
		t.Error(f)
	}
}
