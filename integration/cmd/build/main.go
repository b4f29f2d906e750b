// Command build makes the programs of the demo and of the tests.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/metalbus/metalbus/integration/internal/programs"
)

func main() {
	bin := flag.String("o", "bin", "folder for the programs")
	flag.Parse()
	if err := run(*bin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(bin string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root, err := programs.Root(".")
	if err != nil {
		return err
	}
	return programs.Build(ctx, root, bin, os.Stderr)
}
