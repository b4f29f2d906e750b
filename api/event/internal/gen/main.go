// Command gen makes what follows from the types of api/event: the JSON Schema
// of each section's events in api/event/schemas, and docs/events.md. Run it
// from anywhere in the module:
//
//	go run ./api/event/internal/gen
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/metalbus/metalbus/api/internal/module"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := module.Root()
	if err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil { // comments are found by relative paths
		return err
	}
	files, err := generate()
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // sources are readable
			return err
		}
		if err := os.WriteFile(path, files[path], 0o644); err != nil { //nolint:gosec // sources are readable
			return err
		}
	}
	return nil
}

// generate is everything that is generated, by path from the module's root,
// which must be the working directory.
func generate() (map[string][]byte, error) {
	schemas, err := newSchemas()
	if err != nil {
		return nil, err
	}
	files, err := schemas.files()
	if err != nil {
		return nil, err
	}
	page, err := schemas.page()
	if err != nil {
		return nil, err
	}
	files["docs/events.md"] = page
	return files, nil
}
