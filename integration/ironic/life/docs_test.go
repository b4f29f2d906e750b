package life_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/ironic/site"
	"github.com/metalbus/metalbus/pkg/assembly"
	"github.com/metalbus/metalbus/pkg/backend/ironic"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/kube/preprov"
)

// page is the page about Ironic.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/ironic.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks are the page's blocks of code in a language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	var list []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(page(t), -1) {
		list = append(list, m[1])
	}
	if len(list) == 0 {
		t.Fatalf("docs/ironic.md has no block of %s", language)
	}
	return list
}

// The page names flags that there are, all of those of Ironic, and the variables that
// stand for them.
func TestDocumentedFlags(t *testing.T) {
	var b assembly.Backends
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	b.Bind(fs)
	var images preprov.Config
	projectors := pflag.NewFlagSet("", pflag.ContinueOnError)
	images.Bind(projectors)
	text := page(t)
	for _, m := range regexp.MustCompile("`--([a-z0-9-]+)`").FindAllStringSubmatch(text, -1) {
		if fs.Lookup(m[1]) == nil && projectors.Lookup(m[1]) == nil {
			t.Errorf("there is no flag --%s", m[1])
		}
	}
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name != "bmc-ca-file" && f.Name != "fixture-delay" && !strings.Contains(text, "`--"+f.Name+"`") {
			t.Errorf("flag --%s is not on the page", f.Name)
		}
	})
	for _, m := range regexp.MustCompile("(?m)^\\| `--([a-z0-9-]+)` \\| `([A-Z0-9_]+)`").FindAllStringSubmatch(text, -1) {
		if want := strings.ToUpper(strings.ReplaceAll(m[1], "-", "_")); m[2] != want {
			t.Errorf("--%s has the variable %s, and not %s", m[1], want, m[2])
		}
	}
}

// The page's list of several Ironics is one that is understood.
func TestDocumentedIronics(t *testing.T) {
	dir := t.TempDir()
	for i, text := range blocks(t, "yaml") {
		file := filepath.Join(dir, "ironics.yaml")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "/etc/metalbus", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
		b := assembly.Backends{Names: []string{ironic.Name}, Ironic: ironic.Config{File: file, Settings: ironic.DefaultSettings()}}
		if err := b.Validate(); err != nil {
			t.Errorf("block %d: %v", i, err)
		}
		if _, _, err := b.Open(t.Context(), assembly.Around{Now: time.Now}); err != nil && !strings.Contains(err.Error(), "no such file") {
			t.Errorf("block %d: %v", i, err)
		}
	}
}

// The page's commands do what it says: after them nodes are not protected any more.
func TestDocumentedCommands(t *testing.T) {
	s := site.New(t, ironictest.Config{})
	s.Declare(t, "one", func(o *v1alpha1.BareMetalHost) { live("one.iso").set(&o.Spec) })
	h := s.Declare(t, "two", func(o *v1alpha1.BareMetalHost) { live("one.iso").set(&o.Spec) })
	protected := func(name string) bool {
		n, _ := s.Ironic.Node(site.Namespace + "~" + name)
		return n["protected"] == true
	}
	for _, name := range []string{"one", "two"} {
		h.Await(t, "in use, with its neighbour", func(*v1alpha1.BareMetalHost) bool { return protected(name) })
	}
	s.End()
	for _, text := range blocks(t, "sh") {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-e", "-c", text)
		cmd.Env = append(os.Environ(), "IRONIC_ENDPOINT="+s.Address)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s\n%v\n%s", text, err, out)
		}
	}
	if protected("one") || protected("two") {
		t.Error("the nodes are still protected")
	}
}
