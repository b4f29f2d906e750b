// Package containers gives tests what only a container engine can: our own
// images, networks that can be cut, a NATS cluster whose nodes can be killed.
// Everything that it makes bears a label of this run, and goes with it.
//
// A test package declares a Session and runs its tests through it:
//
//	var docker = containers.Session{Programs: []string{"registrar", "nats-server"}}
//
//	func TestMain(m *testing.M) { os.Exit(docker.Run(m)) }
package containers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/metalbus/metalbus/integration/internal/programs"
)

const (
	// label is on every container and network that a test makes. Its value is
	// the run's.
	label = "metalbus.test.session"
	// pingPatience is how long an engine may take to answer.
	pingPatience = 10 * time.Second
	// sweepPatience bounds the cleaning up.
	sweepPatience = time.Minute
)

// A Session is one run of one test package's container tests.
type Session struct {
	// Programs are the ones whose images the tests use; none are made if there are
	// none.
	Programs []string

	name string // the label's value
	// absent says why no engine is in reach.
	absent error
}

// Run makes the images, runs the tests and returns their exit code. Where no
// container engine is in reach it runs none of them, and says so: into the
// file that the environment variable METALBUS_LEFT_OUT names, whose lines are
// counted at the end, or else by failing.
func (s *Session) Run(m *testing.M) int {
	if err := setUp(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	docker, err := connect()
	if err != nil {
		return leaveOut(err)
	}
	return s.run(m, docker)
}

// RunBeside is Run for a package most of whose tests need no engine: they run in
// any case. Those that need one ask for it with Need.
func (s *Session) RunBeside(m *testing.M) int {
	if err := setUp(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	docker, err := connect()
	if err != nil {
		s.absent = err
		return m.Run()
	}
	return s.run(m, docker)
}

// Need leaves a test out where no container engine is in reach, as Run does with
// all tests of a package: it is counted, or fails.
func (s *Session) Need(tb testing.TB) {
	tb.Helper()
	if s.absent == nil {
		return
	}
	if code := leaveOut(s.absent); code != 0 {
		tb.Fatal("no container engine is in reach")
	}
	tb.SkipNow()
}

// run makes the images and runs the tests.
func (s *Session) run(m *testing.M, docker *client.Client) int {
	defer docker.Close()
	s.name = fmt.Sprintf("%d-%d", os.Getpid(), time.Now().Unix())
	defer s.sweep(docker)
	stop := s.sweepOnSignal(docker)
	defer stop()
	if err := s.makeImages(); err != nil {
		fmt.Fprintln(os.Stderr, "make the images:", err)
		return 1
	}
	return m.Run()
}

// setUp tells testcontainers two things that it finds out wrongly: that its
// reaper is not needed (its image would have to be pulled), and that published
// ports are on the loopback address, also where tests run in a container
// themselves.
func setUp() error {
	return errors.Join(os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"), os.Setenv("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1"))
}

func connect() (*client.Client, error) {
	docker, err := client.New(client.FromEnv)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), pingPatience)
	defer cancel()
	if _, err := docker.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		return nil, errors.Join(err, docker.Close())
	}
	return docker, nil
}

// leaveOut reports this suite as left out. A run that nobody counts must not
// look like a success.
func leaveOut(why error) int {
	file, counted := os.LookupEnv("METALBUS_LEFT_OUT")
	if !counted {
		fmt.Fprintln(os.Stderr, "these tests need a container engine, and none is in reach:", why)
		fmt.Fprintln(os.Stderr, "start Docker, or run \"make test\", which counts what is left out")
		return 1
	}
	if err := report(file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func report(file string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, "left out:", filepath.Base(dir))
	return errors.Join(err, f.Close())
}

func (s *Session) makeImages() error {
	if len(s.Programs) == 0 {
		return nil
	}
	ctx := context.Background()
	bin, err := programs.Folder(ctx, os.Stderr)
	if err != nil {
		return err
	}
	root, err := programs.Root(".")
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, filepath.Join(root, "deploy", "images", "build"), append([]string{bin}, s.Programs...)...)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// sweepOnSignal cleans up when the run is interrupted: no clean-up of a test
// runs then.
func (s *Session) sweepOnSignal(docker *client.Client) (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	go func() {
		if _, ok := <-c; ok {
			s.sweep(docker)
			os.Exit(130)
		}
	}()
	return func() {
		signal.Stop(c)
		close(c)
	}
}

// sweep removes what this run has made. What it cannot remove is left to
// "make clean".
func (s *Session) sweep(docker *client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), sweepPatience)
	defer cancel()
	ours := make(client.Filters).Add("label", label+"="+s.name)
	if list, err := docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours}); err == nil {
		for _, c := range list.Items {
			_, _ = docker.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		}
	}
	if list, err := docker.NetworkList(ctx, client.NetworkListOptions{Filters: ours}); err == nil {
		for _, n := range list.Items {
			_, _ = docker.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{})
		}
	}
}
