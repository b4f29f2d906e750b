package metalbus_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalbus/metalbus/services/metalbus"
)

// The test binary plays the child where this variable says how it behaves.
const playing = "METALBUS_TEST_PLAYS"

func TestMain(m *testing.M) {
	if how := os.Getenv(playing); how != "" {
		os.Exit(play(how))
	}
	os.Exit(m.Run())
}

// play behaves as the Kubernetes API does, more or less.
func play(how string) int {
	if how == "broken" {
		fmt.Fprintln(os.Stderr, "the port is taken")
		return 1
	}
	fmt.Println("starting")
	if how == "ready" {
		fmt.Println("ready KUBECONFIG=" + os.Args[2] + "/kubeconfig")
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	fmt.Fprintln(os.Stderr, "stored everything")
	return 0
}

func child(t *testing.T, how string) (c *metalbus.Child, log string) {
	t.Helper()
	t.Setenv(playing, how)
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log = filepath.Join(t.TempDir(), "log")
	if c, err = metalbus.StartChild(own, "/data", log); err != nil {
		t.Fatal(err)
	}
	return c, log
}

func TestTheAPIEndsWithUs(t *testing.T) {
	c, log := child(t, "ready")
	kubeconfig, err := c.Await(t.Context())
	if err != nil || kubeconfig != "/data/kubeconfig" {
		t.Errorf("got %q, %v", kubeconfig, err)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(text), "stored everything") {
		t.Errorf("it had no time to end: %q, %v", text, err)
	}
}

func TestAnAPIThatDoesNotStartSaysWhy(t *testing.T) {
	c, log := child(t, "broken")
	_, err := c.Await(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the port is taken") || !strings.Contains(err.Error(), log) {
		t.Errorf("got %v", err)
	}
}

func TestNobodyWaitsForEver(t *testing.T) {
	c, _ := child(t, "never ready")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Await(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}

func TestAFolderHasOneInstallation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	release, err := metalbus.Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = metalbus.Take(dir)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) || !strings.Contains(err.Error(), "--data") {
		t.Errorf("got %v", err)
	}
	release()
	if release, err = metalbus.Take(dir); err != nil {
		t.Fatal(err)
	}
	release()
}
