package apiserver_test

import (
	"os"
	"testing"

	"github.com/metalbus/metalbus/integration/internal/lab"
)

var shared lab.Lab

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
