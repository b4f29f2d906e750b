package lifecycle_test

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/pkg/lifecycle"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The page of the states is drawn from the table, so that it cannot be wrong.
func TestLifecyclePage(t *testing.T) {
	const page = "../../docs/lifecycle.md"
	want := lifecycle.Page()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/lifecycle.md is not what the table says; run `make generate`:\n%s", diff)
	}
}
