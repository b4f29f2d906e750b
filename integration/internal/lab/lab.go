// Package lab gives tests what they need around them as real processes: a
// Kubernetes API, NATS servers, our own programs. Nothing in it needs a
// container engine or the network.
//
// A test package declares a Lab, runs its tests through it, and asks it:
//
//	var shared lab.Lab
//
//	func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
//
//	func TestHosts(t *testing.T) {
//		kube := shared.Kube(t)
//		namespace := kube.Namespace(t)
//		...
//	}
package lab

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalbus/metalbus/integration/internal/programs"
)

// A Lab is what the tests of one package share. Its zero value is ready to Run.
type Lab struct {
	bin  string // folder of programs
	dir  string // state of what is shared
	once sync.Once
	kube *Kube
	err  error
}

// Run builds the programs, unless METALBUS_BIN names a folder that has them,
// runs the tests and returns their exit code. Everything shared is stopped at
// the end, and at an interrupt too.
func (l *Lab) Run(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.SetLogger(logr.Discard()) // or the Kubernetes clients complain that there is none
	if err := l.prepare(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "prepare the tests:", err)
		return 1
	}
	defer l.close()
	interrupted := context.AfterFunc(ctx, func() {
		l.close()
		os.Exit(130)
	})
	defer interrupted()
	return m.Run()
}

func (l *Lab) prepare(ctx context.Context) (err error) {
	if l.bin, err = programs.Folder(ctx, os.Stderr); err != nil {
		return err
	}
	l.dir, err = os.MkdirTemp("", "metalbus-lab-")
	return err
}

func (l *Lab) close() {
	l.once.Do(func() {}) // from here on nothing is started
	if l.kube != nil {
		l.kube.process.end()
	}
	_ = os.RemoveAll(l.dir)
}

// Program is the path of one of our programs, for a test that runs it.
func (l *Lab) Program(name string) string {
	programs.Used()
	return filepath.Join(l.bin, name)
}

// Kube is the API that all tests of the package share; each takes a namespace
// of its own in it. Our CRDs are there.
func (l *Lab) Kube(tb testing.TB) *Kube {
	tb.Helper()
	l.once.Do(func() { l.kube, l.err = l.startKube(filepath.Join(l.dir, "kube"), filepath.Join(l.dir, "kubeapi.log")) })
	if l.err != nil {
		tb.Fatal(l.err)
	}
	return l.kube
}
