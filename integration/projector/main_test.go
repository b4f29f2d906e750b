// Package projector_test tests what the projector and its door to Kubernetes
// rely on against a real API server.
package projector_test

import (
	"os"
	"testing"

	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/pkg/kube/kubetest"
)

var shared lab.Lab

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

func TestTheAPIServerConforms(t *testing.T) {
	kube := shared.Kube(t)
	kubetest.Conform(t, kube.Config, kube.Namespace(t))
}
