// Command crddiff prints where our CustomResourceDefinitions differ from those
// that users come with, and why. It fails if a difference has no reason. Run it
// anywhere in the repository:
//
//	go run ./compat/crddiff
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/metalbus/metalbus/deploy/crds"
	"github.com/metalbus/metalbus/integration/compat/schema"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "crddiff:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	theirs, err := schema.Upstream()
	if err != nil {
		return err
	}
	ours, err := schema.Ours(crds.FS)
	if err != nil {
		return err
	}
	known, err := schema.Differences()
	if err != nil {
		return err
	}
	unknown, stale := schema.Check(schema.Compare(theirs, ours), known)
	for _, k := range known {
		fmt.Fprintf(out, "%s\n    %s\n", k.Difference, k.Why)
	}
	for _, d := range unknown {
		fmt.Fprintf(out, "NEW %s\n", d)
	}
	for _, k := range stale {
		fmt.Fprintf(out, "GONE %s\n", k.Difference)
	}
	if len(unknown)+len(stale) > 0 {
		return fmt.Errorf("%d differences without a reason, %d reasons without a difference: correct the types, or differences.yaml", len(unknown), len(stale))
	}
	return nil
}
