package assembly_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/assembly"
	"github.com/metalbus/metalbus/pkg/backend/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
	"github.com/metalbus/metalbus/pkg/slots"
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
		"one of no name":  {names: []string{"floppy"}, says: `"floppy": want one of redfish, ironic, fixture`},
		"no Ironic to go": {names: []string{"ironic"}, says: "ironic-endpoint"},
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
	set, stop, err := assembly.Backends{Names: []string{assembly.Fixture, "redfish"}}.Open(t.Context(), assembly.Around{Now: time.Now})
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

func TestSlotsOfABackendThatIsNone(t *testing.T) {
	set, stop, err := assembly.Backends{Names: []string{assembly.Fixture}}.Open(t.Context(), assembly.Around{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t.Context())
	if err := assembly.CheckSlots(slots.Limits{"fixture": 1}, set); err != nil {
		t.Error(err)
	}
	if err := assembly.CheckSlots(slots.Limits{"ironic": 1}, set); err == nil || !strings.Contains(err.Error(), "there are fixture") {
		t.Errorf("got %v", err)
	}
}

func TestCertificatesThatAreNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{file: "holds no certificate", file + ".gone": "no such file"} {
		_, _, err := assembly.Backends{Names: []string{"redfish"}, CAFile: path}.Open(t.Context(), assembly.Around{Now: time.Now})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want it to say %q", err, says)
		}
	}
}

const twoIronics = `
ironics:
- {name: south, endpoint: http://192.0.2.5:6385}
- {name: north, endpoint: http://192.0.2.6:6385, selector: site=north}
`

// A host goes where it was registered, else where it asks to go, else to who claims
// it, else to the first. Once it is detached it may go elsewhere.
func TestHostsGoToTheirIronic(t *testing.T) {
	file := write(t, twoIronics)
	set, stop, err := assembly.Backends{Names: []string{"redfish", "ironic"}, Ironic: ironic.Config{File: file, Settings: ironic.DefaultSettings()}}.Open(t.Context(), assembly.Around{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t.Context())
	north := map[string]string{"site": "north"}
	for name, c := range map[string]struct {
		host lifecycle.Host
		want string // "" for a problem of the host
	}{
		"one that says nothing":               {lifecycle.Host{}, "redfish"},
		"one that is claimed by its labels":   {lifecycle.Host{Intent: event.Intent{Labels: north}}, "north"},
		"one that asks for another":           {lifecycle.Host{Intent: event.Intent{Labels: north, Backend: "south"}}, "south"},
		"one that asks for what there is not": {lifecycle.Host{Intent: event.Intent{Backend: "east"}}, ""},
		"one that is registered":              {lifecycle.Host{Intent: event.Intent{Labels: north, Backend: "redfish"}, Registration: event.Registration{Backend: "south"}}, "south"},
		"one that is detached":                {lifecycle.Host{Intent: event.Intent{Labels: north}, Registration: event.Registration{Backend: "south", Detached: true}}, "north"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := set.Of(c.host)
			if problem, is := errors.AsType[*lifecycle.ProblemError](err); is && c.want == "" {
				if !strings.Contains(problem.Error(), "there are: redfish, south, north") {
					t.Errorf("it says %q", problem)
				}
				return
			}
			if err != nil || b.Name() != c.want {
				t.Errorf("got %v (%v), want %s", b, err, c.want)
			}
		})
	}
}

func TestIronicsMustNotBeCalledLikeOtherBackends(t *testing.T) {
	file := write(t, "ironics: [{name: redfish, endpoint: http://192.0.2.5:6385}]")
	_, _, err := assembly.Backends{Names: []string{"ironic"}, Ironic: ironic.Config{File: file, Settings: ironic.DefaultSettings()}}.Open(t.Context(), assembly.Around{Now: time.Now})
	if err == nil || !strings.Contains(err.Error(), "must not be called redfish") {
		t.Errorf("got %v", err)
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
