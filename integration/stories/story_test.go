// Package stories_test tells the lives of hosts, each a text file: what their
// user does and what goes wrong, and what comes of it. Each story is told by the
// table alone, and by the real services over JetStream.
package stories_test

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden sections of the stories")

// story is a file of testdata.
type story struct {
	name string
	path string
	// lines are its script; the first one names its backends.
	lines []string
	// backends can tell it.
	backends []string
	// also can tell it too, each time a little differently: its script judges that.
	also []string
	// table and services say who can tell it.
	table, services bool
	// images: each host has an image of its own to boot, which the story builds.
	images bool
	ar     *txtar.Archive
}

func stories(t *testing.T) []story {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var list []story
	for _, path := range paths {
		list = append(list, read(t, path))
	}
	return list
}

// read reads a story. Its script has a line «backends NAME…», and may have a line
// «also NAME…» for those that do not always take the same way to its end, and a line
// «by table», if what it is about needs a clock that can be put forward, or «by
// services», if that is what lies between the services and their users. One with a
// line «images own» is told by the services where each host boots an image of its
// own, which is nothing to the fixture.
func read(t *testing.T, path string) story {
	t.Helper()
	ar, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := story{name: strings.TrimSuffix(filepath.Base(path), ".txtar"), path: path, ar: ar, table: true, services: true}
	for line := range strings.Lines(string(ar.Comment)) {
		line = strings.TrimSpace(line)
		if s.heading(line) {
			line = ""
		}
		s.lines = append(s.lines, line)
	}
	for _, b := range slices.Concat(s.backends, s.also) {
		if labs()[b] == nil && b != realIronic {
			t.Fatalf("%s: there is no backend %q", path, b)
		}
	}
	if len(s.backends) == 0 || (s.backends[0] != "fixture" && !s.images) {
		t.Fatalf("%s: want a line «backends fixture …»: that backend can tell every story", path)
	}
	return s
}

// heading reads a line that says who can tell the story.
func (s *story) heading(line string) bool {
	words, _ := split(line)
	if len(words) < 2 {
		return false
	}
	switch words[0] {
	case "backends":
		s.backends = words[1:]
	case "also":
		s.also = words[1:]
	case "by":
		s.table, s.services = words[1] == "table", words[1] == "services"
	case "images":
		s.images, s.table = words[1] == "own", false
	default:
		return false
	}
	return true
}

func (s story) file(name string) (string, bool) {
	for _, f := range s.ar.Files {
		if f.Name == name {
			return string(f.Data), true
		}
	}
	return "", false
}

// golden is a section as a backend is to tell it: what it tells in its own way is
// in a section of its own.
func (s story) golden(section, backend string) string {
	if text, ok := s.file(section + "." + backend); ok && section != "states" {
		return text
	}
	text, _ := s.file(section)
	return text
}

// compare holds what came of a story against its golden sections, or rewrites them.
func (s story) compare(t *testing.T, backend string, got map[string]string) {
	t.Helper()
	if *update && backend == s.backends[0] {
		for _, name := range sectionNames() {
			s.put(name, got[name])
		}
		s.write(t)
		return
	}
	for _, name := range sectionNames() {
		want := s.golden(name, backend)
		if *update && name != "states" {
			s.putOwn(t, name, backend, got[name])
			continue
		}
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got[name], "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// put sets a section.
func (s story) put(name, text string) {
	i := slices.IndexFunc(s.ar.Files, func(f txtar.File) bool { return f.Name == name })
	if i < 0 {
		s.ar.Files = append(s.ar.Files, txtar.File{Name: name})
		i = len(s.ar.Files) - 1
	}
	s.ar.Files[i].Data = []byte(text)
}

// putOwn sets a backend's own section, if it differs from everybody's.
func (s story) putOwn(t *testing.T, name, backend, text string) {
	own := name + "." + backend
	s.ar.Files = slices.DeleteFunc(s.ar.Files, func(f txtar.File) bool { return f.Name == own })
	if common, _ := s.file(name); common != text {
		s.put(own, text)
	}
	s.write(t)
}

func (s story) write(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(s.path, txtar.Format(s.ar), 0o644); err != nil {
		t.Fatal(err)
	}
}

// By the table alone: the services' decisions, no bus, and a clock that jumps.
func TestByTheTable(t *testing.T) {
	for _, st := range stories(t) {
		if !st.table {
			continue
		}
		t.Run(st.name, func(t *testing.T) {
			s := inMemory(t, lower(st.name), labs()["fixture"])
			tell(t, s, st)
			st.compare(t, "fixture", transcript(s))
		})
	}
}

// By the real services over JetStream, between a Kubernetes API and each backend.
func TestByTheServices(t *testing.T) {
	all := stories(t)
	for _, backend := range slices.Sorted(maps.Keys(labs())) {
		t.Run(backend, func(t *testing.T) { perform(t, backend, false, all) })
	}
}

// The same where each host has an image of its own to boot.
func TestWithOwnImages(t *testing.T) { perform(t, "ironic", true, stories(t)) }

// perform tells the stories of a backend in one theatre.
func perform(t *testing.T, backend string, images bool, all []story) {
	h := openTheatre(t, images, labs()[backend])
	for _, st := range all {
		compared := slices.Contains(st.backends, backend)
		if !st.services || st.images != images || !compared && !slices.Contains(st.also, backend) {
			continue
		}
		t.Run(st.name, func(t *testing.T) {
			t.Parallel()
			s := h.stage(t, lower(st.name))
			tell(t, s, st)
			if !compared || (*update && st.table && backend == "fixture") {
				return // its script has judged it, or the table has told it
			}
			st.compare(t, backend, transcript(s))
		})
	}
}

// lower is a name that Kubernetes takes.
func lower(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "-")) }
