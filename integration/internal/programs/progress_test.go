package programs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProgressCountsPackagesAndKeepsComplaints(t *testing.T) {
	var said strings.Builder
	c := &counter{title: "kubeapi", total: 300, out: &said}
	for n := range 250 {
		fmt.Fprintf(c, "k8s.io/kubernetes/pkg/p%d\n", n)
	}
	// Lines may come in pieces.
	fmt.Fprint(c, "# k8s.io/kuber")
	fmt.Fprint(c, "netes/pkg/broken\n./file.go:1:2: undefined: x\n")
	c.end()

	want := "kubeapi: compiled 100 packages of at most 300\n" +
		"kubeapi: compiled 200 packages of at most 300\n" +
		"kubeapi: compiled 250 packages, the rest was in the cache\n"
	if diff := cmp.Diff(want, said.String()); diff != "" {
		t.Errorf("what it said (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("# k8s.io/kubernetes/pkg/broken\n./file.go:1:2: undefined: x", c.complaints()); diff != "" {
		t.Errorf("complaints (-want +got):\n%s", diff)
	}
}

func TestAWarmBuildSaysNothing(t *testing.T) {
	var said strings.Builder
	c := &counter{title: "kubeapi", total: 300, out: &said}
	fmt.Fprintln(c, "github.com/metalbus/metalbus/integration/kubeapi")
	c.end()
	if said.Len() > 0 {
		t.Errorf("it said %q", said.String())
	}
}
