// Command gen makes what follows from the types of api/event: the JSON Schema
// of each section's events in api/event/schemas, and docs/events.md. Run it
// from anywhere in the module:
//
//	go run ./api/event/internal/gen
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := moduleRoot()
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

// moduleRoot finds the nearest go.mod, upwards from the working directory.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory: run it inside the module")
		}
		dir = parent
	}
}
