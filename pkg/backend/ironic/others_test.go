package ironic_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Somebody else's hand in a node is seen in what is read of it anyway.
func TestOthersAreSeen(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	free := l.available(l.host())
	used := l.deploy(l.available(l.host()))
	failing := used
	failing.Provisioning.Problem = &event.Problem{Message: "no"}
	serviced := l.record(used, lifecycle.Aborted{Kind: event.Service})
	for name, c := range map[string]struct {
		host  lifecycle.Host
		state ironictest.State
		want  backend.PowerState
	}{
		"nobody":                             {used, ironictest.State{Provision: "active"}, backend.PowerState{Others: "another client of Ironic"}},
		"maintenance":                        {used, ironictest.State{Provision: "active", Maintenance: true, MaintenanceReason: "new fans"}, backend.PowerState{Maintenance: "maintenance, new fans", Others: "another client of Ironic"}},
		"maintenance that says nothing":      {used, ironictest.State{Provision: "active", Maintenance: true}, backend.PowerState{Maintenance: "maintenance, without a reason", Others: "another client of Ironic"}},
		"maintenance of our own":             {used, ironictest.State{Provision: "active", Maintenance: true, MaintenanceReason: "metalbus: deletion of the node"}, backend.PowerState{Others: "another client of Ironic"}},
		"maintenance of Ironic's own":        {used, ironictest.State{Provision: "active", Maintenance: true, Fault: "clean failure"}, backend.PowerState{Others: "another client of Ironic"}},
		"undeploying":                        {used, ironictest.State{Provision: "clean wait"}, backend.PowerState{Astray: "clean wait", Passing: true, Others: "another client of Ironic"}},
		"taken away":                         {used, ironictest.State{Provision: "available"}, backend.PowerState{Astray: "available", Others: "another client of Ironic"}},
		"broken, with what Ironic says":      {used, ironictest.State{Provision: "clean failed", LastError: "no disk"}, backend.PowerState{Astray: "clean failed", Others: "another client of Ironic; Ironic says: no disk"}},
		"what an operation of ours has left": {failing, ironictest.State{Provision: "deploy failed"}, backend.PowerState{Others: "another client of Ironic"}},
		"what a service of ours has left":    {serviced, ironictest.State{Provision: "service failed"}, backend.PowerState{Others: "another client of Ironic"}},
		"a free one in use":                  {free, ironictest.State{Provision: "active"}, backend.PowerState{Astray: "active", Others: "another client of Ironic"}},
		"a free one at rest":                 {free, ironictest.State{Provision: "manageable"}, backend.PowerState{Others: "another client of Ironic"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.state.Power = "power on"
			if err := l.ironic.Force(c.host.Registration.Node, c.state); err != nil {
				t.Fatal(err)
			}
			got, err := l.backend.Power(t.Context(), c.host)
			if err != nil {
				t.Fatal(err)
			}
			got.On, got.Health = nil, ""
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Whose the node is, is told with who is suspected.
func TestWhoseTheNodeIs(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.enroll(l.host())
	var p ironic.Patch
	p.Set("/owner", "tenants")
	p.Set("/lessee", "team-7")
	if _, err := l.client.Update(t.Context(), h.Registration.Node, p); err != nil {
		t.Fatal(err)
	}
	got, err := l.backend.Power(t.Context(), h)
	if want := "another client of Ironic (the node is owned by tenants and leased to team-7)"; err != nil || got.Others != want {
		t.Errorf("%q (%v), want %q", got.Others, err, want)
	}
}
