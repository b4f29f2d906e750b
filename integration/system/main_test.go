// Package system_test runs whole installations through what happens to them:
// the five services as processes of their own, against a NATS server, a
// Kubernetes API and simulated BMCs.
package system_test

import (
	"os"
	"testing"

	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/integration/internal/plant"
)

var shared lab.Lab

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// newPlant is an installation without services, with a rack of its own, in the
// API that all tests share.
func newPlant(t *testing.T) *plant.Plant {
	t.Helper()
	return plant.New(t, &shared, shared.Kube(t), plant.StartRack(t, plant.ShortDelays()))
}
