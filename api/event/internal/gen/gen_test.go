package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/internal/module"
)

func TestGeneratedFilesAreFresh(t *testing.T) {
	root, err := module.Root()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s is stale, run make generate (-want +got):\n%s", path, diff)
		}
		if json.Valid(got) != (path != "docs/events.md") {
			t.Errorf("%s is no JSON", path)
		}
	}
}
