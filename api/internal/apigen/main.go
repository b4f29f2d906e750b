// Command apigen makes everything that follows from the types in api/v1alpha1:
// the deep copies beside them, the CustomResourceDefinitions in deploy/crds and
// the reference in docs/api.md. Run it from anywhere in the module:
//
//	go run ./api/internal/apigen
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	"github.com/metalbus/metalbus/api/internal/module"
)

// controllerGen makes deep copies and CustomResourceDefinitions. Its version
// is written into each definition, and must know our Kubernetes minor.
const controllerGen = "sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0"

// Directories, from the module's root.
const (
	typesDir = "api/v1alpha1"
	crdsDir  = "deploy/crds"
	page     = "docs/api.md"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "apigen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	root, err := module.Root()
	if err != nil {
		return err
	}
	if err := generate(ctx, root); err != nil {
		return err
	}
	text, err := reference(filepath.Join(root, crdsDir), filepath.Join(root, typesDir))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, page), text, 0o644) //nolint:gosec // A page for everybody to read.
}

// generate runs controller-gen in the module at root. allowDangerousTypes is
// for the CPU's clock, which users of the API know as a float.
func generate(ctx context.Context, root string) error {
	cmd := exec.CommandContext(ctx, "go", "run", controllerGen,
		"object",
		"crd:allowDangerousTypes=true,crdVersions=v1",
		"paths=./"+typesDir,
		"output:crd:dir="+crdsDir)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w", controllerGen, err)
	}
	return nil
}
