package kube_test

import (
	"testing"

	"github.com/metalbus/metalbus/pkg/kube/kubetest"
)

func TestTheFakeConforms(t *testing.T) {
	kubetest.Conform(t, kubetest.New(t).Config(), "default")
}
