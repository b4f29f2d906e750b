package assembly_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/assembly"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func TestBackendsAreChecked(t *testing.T) {
	tests := map[string]struct {
		names []string
		says  string // "" for nothing wrong
	}{
		"one":             {names: []string{"redfish"}},
		"two":             {names: []string{"fixture", "redfish"}},
		"none":            {says: "name at least one"},
		"one twice":       {names: []string{"redfish", "redfish"}, says: "twice"},
		"one of no name":  {names: []string{"floppy"}, says: `"floppy": want one of redfish, fixture`},
		"everything said": {names: []string{"a", "b"}, says: `"b"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := assembly.Backends{Names: tc.names}.Validate()
			if (err == nil) != (tc.says == "") || (err != nil && !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("got %v, want it to say %q", err, tc.says)
			}
		})
	}
}

func TestTheFirstBackendIsTheDefault(t *testing.T) {
	set, stop, err := assembly.Backends{Names: []string{assembly.Fixture, "redfish"}}.Open(nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t.Context())
	for asked, want := range map[string]string{"": "fixture", "redfish": "redfish"} {
		b, err := set.Of(lifecycle.Host{Intent: event.Intent{Backend: asked}})
		if err != nil || b.Name() != want {
			t.Errorf("a host that asks for %q gets %v (%v), want %s", asked, b, err, want)
		}
	}
}

func TestCertificatesThatAreNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{file: "holds no certificate", file + ".gone": "no such file"} {
		_, _, err := assembly.Backends{Names: []string{"redfish"}, CAFile: path}.Open(nil, time.Now)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want it to say %q", err, says)
		}
	}
}
