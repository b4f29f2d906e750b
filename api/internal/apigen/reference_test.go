package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/internal/module"
)

// The page is made from the definitions, so it cannot say anything else.
func TestReferenceIsFresh(t *testing.T) {
	t.Parallel()
	root, err := module.Root()
	if err != nil {
		t.Fatal(err)
	}
	want, err := reference(filepath.Join(root, crdsDir), filepath.Join(root, typesDir))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is old: run go run ./api/internal/apigen (-want +got)\n%s", page, diff)
	}
}

func TestReadConstantsNamesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a call":            "package p\nconst A = len(\"x\")\n",
		"a stranger":        "package p\nconst A = B + \"x\"\n",
		"a list of names":   "package p\nconst A, B = \"a\", \"b\"\n",
		"no constants":      "package p\n",
		"not even Go":       "pack age",
		"a stranger behind": "package p\nconst A = \"x\" + B\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "states.go"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if groups, err := readConstants(dir); err == nil {
				t.Errorf("read as %v", groups)
			}
		})
	}
}
