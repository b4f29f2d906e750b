package compat_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/integration/internal/programs"
)

var (
	ruleInBook  = regexp.MustCompile(`(?m)^\| ((?:[BUSDFCNW]\d+(?:, )?)+) \|`)
	ruleInTests = regexp.MustCompile(`"([BUSDFCNW]\d+) `)
	number      = regexp.MustCompile(`[A-Z]\d+`)
)

// Each rule of admission that docs/compatibility.md names is tried on a real
// API, and each that is tried is named there.
func TestRulesAreInTheBook(t *testing.T) {
	root, err := programs.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	var book, tried []string
	for _, row := range ruleInBook.FindAllStringSubmatch(read(t, filepath.Join(root, "docs", "compatibility.md")), -1) {
		book = append(book, number.FindAllString(row[1], -1)...)
	}
	for _, file := range []string{"host_rules_test.go", "companion_rules_test.go", "warnings_test.go"} {
		for _, rule := range ruleInTests.FindAllStringSubmatch(read(t, file), -1) {
			tried = append(tried, rule[1])
		}
	}
	for _, list := range []*[]string{&book, &tried} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	if diff := cmp.Diff(book, tried); diff != "" || len(book) < 60 {
		t.Errorf("%d rules (-in the book +tried)\n%s", len(book), diff)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
