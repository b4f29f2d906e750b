package ironic_test

import (
	"fmt"
	"testing"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/backend/backendtest"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Every Ironic passes the suite that every backend passes, but for 21: there is no
// inspection that leaves an inventory, see TestIronic21.
func TestConform(t *testing.T) {
	for _, release := range ironictest.Releases() {
		if release == ironictest.Ironic21 {
			continue
		}
		t.Run(fmt.Sprint("ironic ", release), func(t *testing.T) {
			backendtest.Conform(t, func(t *testing.T) backendtest.Lab {
				t.Helper()
				// Without fast track Ironic 29 lets no agent in while a node is serviced.
				return newLab(t, ironictest.Config{Release: release, FastTrack: release < ironictest.Ironic39}, nil).bench()
			})
		})
	}
}

// Ironic 21 asks the BMC and tells little of what it said. The rest is the same.
func TestIronic21(t *testing.T) {
	l := newLab(t, ironictest.Config{Release: ironictest.Ironic21}, nil)
	h := l.host()
	h.Intent.Spec.InspectionMode = v1alpha1.InspectionModeFast
	h = l.enroll(h)
	h, found := l.must(h, event.Inspect)
	if hw := found.Hardware; hw == nil || len(hw.NIC) != 2 || hw.CPU.Arch != "x86_64" {
		t.Errorf("hardware %+v, want the architecture and both network cards", found.Hardware)
	}
	h = l.record(h, lifecycle.Inspected{Digest: "d"})
	h = l.deploy(l.prepare(h))
	h.Intent.Spec.Image = nil
	h = l.does(h, event.Undeploy, lifecycle.Deprovisioned{})
	h.Intent.DeletedAt = l.now()
	l.does(h, event.Remove, lifecycle.Removed{})
	if n := len(l.ironic.Nodes()); n != 0 {
		t.Errorf("%d nodes are left", n)
	}
}
