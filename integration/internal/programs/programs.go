// Package programs builds what the demo and the tests run as processes: the
// services of the root module, the Kubernetes API of laptops and tests, and
// the NATS server that go.mod pins. Each module builds its own programs with
// its own choice of versions, never with the workspace's.
package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// The names under which programs lie in the folder that Build fills.
const (
	Kubeapi    = "kubeapi"
	NATSServer = "nats-server"
	Probe      = "probe"
)

// kubeapiModule is the folder of the module of what is built from Kubernetes.
const kubeapiModule = "integration/kubeapi"

// kubernetesVersion is what the API calls itself: the version in its go.mod.
const kubernetesVersion = " -X k8s.io/component-base/version.gitVersion=v1.37.2" +
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"

// A group is the programs of one module: one call of go build.
type group struct {
	title    string
	module   string // folder, from the repository's root
	packages []string
	ldflags  string
}

// Root is the repository's root, found from a folder inside it.
func Root(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.work")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not inside the repository: no go.work in it or above it", dir)
		}
	}
}

// Build makes every program anew in bin, where it is out of date, and tells
// progress how far it is. A cold build takes minutes, most of them for
// Kubernetes' own packages; a warm one takes seconds.
func Build(ctx context.Context, root, bin string, progress io.Writer) error {
	groups, err := groups(root)
	if err != nil {
		return err
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return err
	}
	for _, g := range groups {
		if err := g.build(ctx, root, bin, progress); err != nil {
			return fmt.Errorf("build %s: %w", g.title, err)
		}
	}
	return nil
}

// Helm builds helm in bin, if it is out of date there, and tells its path. It
// is a group of its own since only the chart's tests need it.
func Helm(ctx context.Context, bin string) (string, error) {
	root, err := Root(".")
	if err != nil {
		return "", err
	}
	g := group{title: "helm", module: kubeapiModule, packages: []string{"helm.sh/helm/v4/cmd/helm"}, ldflags: "-s -w"}
	return filepath.Join(bin, "helm"), g.build(ctx, root, bin, os.Stderr)
}

func groups(root string) ([]group, error) {
	mains, err := filepath.Glob(filepath.Join(root, "services", "*", "cmd", "*"))
	if err != nil {
		return nil, err
	}
	services := group{title: "services", module: ".", ldflags: "-s -w"}
	for _, m := range mains {
		services.packages = append(services.packages, "./"+filepath.ToSlash(strings.TrimPrefix(m, root+string(filepath.Separator))))
	}
	all := []group{
		{title: "tools", module: "integration", packages: []string{"github.com/nats-io/nats-server/v2", "./cmd/probe"}, ldflags: "-s -w"},
		{title: Kubeapi, module: kubeapiModule, packages: []string{"."}, ldflags: "-s -w" + kubernetesVersion},
	}
	if len(services.packages) > 0 {
		all = append(all, services)
	}
	return all, nil
}

func (g group) build(ctx context.Context, root, bin string, progress io.Writer) error {
	total, err := g.dependencies(ctx, root)
	if err != nil {
		return err
	}
	args := append([]string{"build", "-v", "-ldflags=" + g.ldflags, "-o", bin + string(filepath.Separator)}, g.packages...)
	cmd := g.command(ctx, root, args...)
	c := &counter{title: g.title, total: total, out: progress}
	cmd.Stderr = c
	err = cmd.Run()
	c.end()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, c.complaints())
	}
	return nil
}

// dependencies counts the packages that a cold build compiles.
func (g group) dependencies(ctx context.Context, root string) (int, error) {
	out, err := g.command(ctx, root, append([]string{"list", "-deps"}, g.packages...)...).Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			return 0, fmt.Errorf("%w\n%s", err, failed.Stderr)
		}
		return 0, err
	}
	return strings.Count(string(out), "\n"), nil
}

// command is a call of go that shares the build cache with every other one:
// same flags, no C compiler, and the module's own versions.
func (g group) command(ctx context.Context, root string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(root, g.module)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath -buildvcs=false", "CGO_ENABLED=0")
	return cmd
}

// Used is called by a test that runs a program. What a test has read of its
// environment Go knows its result by, and not what it has run: METALBUS_PROGRAMS is read
// for that alone, and tells programs apart.
func Used() { _ = os.Getenv("METALBUS_PROGRAMS") }

// Folder is where the tests find the programs: in the folder that the
// environment variable METALBUS_BIN names, as they are, else in bin at the
// repository's root, built anew where out of date.
func Folder(ctx context.Context, progress io.Writer) (string, error) {
	if bin, given := os.LookupEnv("METALBUS_BIN"); given {
		return filepath.Abs(bin)
	}
	root, err := Root(".")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(root, "bin")
	unlock, err := lock(bin)
	if err != nil {
		return "", err
	}
	defer unlock()
	return bin, Build(ctx, root, bin, progress)
}

// lock waits until no other test binary builds into dir.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
