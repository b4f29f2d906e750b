package ironic_test

import (
	"fmt"
	"testing"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/backend/backendtest"
	backend "github.com/metalbus/metalbus/pkg/backend/ironic"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Every version of Ironic passes the suite that every backend passes. Ironic 21
// has no inspection by an agent of its own: there the BMC is asked.
func TestConform(t *testing.T) {
	for _, release := range ironictest.Releases() {
		t.Run(fmt.Sprint("ironic ", release), func(t *testing.T) {
			backendtest.Conform(t, func(t *testing.T) backendtest.Lab {
				l := newLab(t, ironictest.Config{Release: release}, nil)
				b := l.bench()
				if release < ironictest.Ironic29 {
					b.NewHost = fast(l)
				}
				return b
			})
		})
	}
}

// fast declares hosts that are inspected by asking their BMC.
func fast(l *lab) func(t *testing.T) lifecycle.Host {
	return func(*testing.T) lifecycle.Host {
		h := l.host()
		h.Intent.Spec.InspectionMode = v1alpha1.InspectionModeFast
		return h
	}
}

var _ = backend.Name
