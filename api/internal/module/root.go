// Package module finds the module for the generators, so that they can be run from
// anywhere in it. It knows nothing of what they make.
package module

import (
	"errors"
	"os"
	"path/filepath"
)

// Root finds the nearest go.mod, upwards from the working directory.
func Root() (string, error) {
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
