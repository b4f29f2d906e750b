package compat_test

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	upstream "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// newer are the fields that we have and the module of v0.13.2 has not: they
// came after it. A program that is built with it does not see them, and drops
// them if it writes whole objects.
func newer() []string {
	return []string{
		"BareMetalHost spec.networkInterfaces",
		"BareMetalHost spec.raid.softwareRAIDVolumes.rootVolume",
		"BareMetalHost status.lastAttemptedImage",
		"BareMetalHost status.provisioning.raid.softwareRAIDVolumes.rootVolume",
		"BareMetalHost status.provisioningFailCount",
	}
}

// always are the fields that we write whatever they are, and it does not know.
func always() []string { return []string{"BareMetalHost status.provisioningFailCount"} }

// rounds is how many objects of each kind are sent each way.
const rounds = 200

func schemes(t *testing.T) (theirs, ours *runtime.Scheme) {
	t.Helper()
	theirs, ours = runtime.NewScheme(), runtime.NewScheme()
	if err := upstream.AddToScheme(theirs); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(ours); err != nil {
		t.Fatal(err)
	}
	return theirs, ours
}

// kindsOf are the kinds of ours in a scheme.
func kindsOf(s *runtime.Scheme) []string {
	var kinds []string
	for kind, t := range s.KnownTypes(v1alpha1.GroupVersion) {
		if strings.HasSuffix(t.PkgPath(), "metal3.io/v1alpha1") || strings.HasSuffix(t.PkgPath(), "/api/v1alpha1") {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// Randomly filled objects of every kind go to the other types by way of JSON,
// and nothing is lost but what is known to be newer.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	theirs, ours := schemes(t)
	kinds := kindsOf(theirs)
	if len(kinds) != 22 { // eleven kinds and their lists
		t.Errorf("the module has %d kinds: %v", len(kinds), kinds)
	}
	var lost, added []string
	for _, kind := range kinds {
		for seed := range int64(rounds) {
			away := convert(t, filled(t, ours, kind, seed), empty(t, theirs, kind), kind, seed)
			here := convert(t, filled(t, theirs, kind, seed), empty(t, ours, kind), kind, seed)
			lost = append(lost, away.lost...)
			added = append(added, here.added...)
			if wrong := slices.Concat(away.changed, away.added, here.lost, here.changed); len(wrong) > 0 {
				t.Fatalf("%s of seed %d: other values, or more or fewer of them: %v", kind, seed, wrong)
			}
		}
	}
	if diff := cmp.Diff(newer(), sorted(lost)); diff != "" {
		t.Errorf("fields that the module does not know (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(always(), sorted(added)); diff != "" {
		t.Errorf("fields that we add (-want +got)\n%s", diff)
	}
}

func sorted(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}

func empty(t *testing.T, s *runtime.Scheme, kind string) runtime.Object {
	t.Helper()
	o, err := s.New(v1alpha1.GroupVersion.WithKind(kind))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func filled(t *testing.T, s *runtime.Scheme, kind string, seed int64) runtime.Object {
	t.Helper()
	o := empty(t, s, kind)
	filler(s, seed).Fill(o)
	return o
}

func filler(s *runtime.Scheme, seed int64) *randfill.Filler {
	return fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), serializer.NewCodecFactory(s)).NilChance(0.3).NumElements(0, 3)
}

// convert is what is different after an object was read as another type.
func convert(t *testing.T, o, other runtime.Object, kind string, seed int64) differences {
	t.Helper()
	sent := encode(t, o)
	if err := json.Unmarshal(sent, other); err != nil {
		t.Fatalf("%s of seed %d: %v\n%s", kind, seed, err, sent)
	}
	var d differences
	if list, ok := strings.CutSuffix(kind, "List"); ok {
		d.compare(list, tree(t, sent)["items"], tree(t, encode(t, other))["items"])
		return d
	}
	d.compare(kind, tree(t, sent), tree(t, encode(t, other)))
	return d
}

// differences are the places of JSON values that are not the same.
type differences struct{ lost, added, changed []string }

func (d *differences) compare(place string, from, to any) {
	switch from := from.(type) {
	case map[string]any:
		if to, ok := to.(map[string]any); ok {
			d.fields(place, from, to)
			return
		}
	case []any:
		if to, ok := to.([]any); ok && len(from) == len(to) {
			for i := range from {
				d.compare(place, from[i], to[i])
			}
			return
		}
	}
	if !cmp.Equal(from, to) {
		d.changed = append(d.changed, place)
	}
}

func (d *differences) fields(place string, from, to map[string]any) {
	within := func(name string) string {
		if strings.Contains(place, " ") {
			return place + "." + name
		}
		return place + " " + name
	}
	for name, value := range from {
		if other, kept := to[name]; kept {
			d.compare(within(name), value, other)
		} else {
			d.lost = append(d.lost, within(name))
		}
	}
	for name := range to {
		if _, sent := from[name]; !sent {
			d.added = append(d.added, within(name))
		}
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func tree(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var v map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
