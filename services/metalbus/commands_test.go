package metalbus_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/metalbus/metalbus/pkg/service"
)

func TestWhatCommandsShow(t *testing.T) {
	d := newDesk(t)
	tests := map[string]struct {
		args []string
		file string
	}{
		"hosts":                {[]string{"host", "list"}, "host-list.txt"},
		"hosts, wide":          {[]string{"host", "list", "-o", "wide"}, "host-list-wide.txt"},
		"hosts, for programs":  {[]string{"host", "list", "-o", "json"}, "host-list.json"},
		"a host":               {[]string{"host", "show", "metal/sim-1"}, "host-show.txt"},
		"a host in trouble":    {[]string{"host", "show", "metal/sim-2"}, "host-show-trouble.txt"},
		"a host, explained":    {[]string{"explain", "host", "metal/sim-1"}, "explain-host.txt"},
		"trouble, explained":   {[]string{"explain", "host", "sim-2"}, "explain-host-trouble.txt"},
		"events of a host":     {[]string{"events", "--host", "metal/sim-2", "--since", "0"}, "events-host.txt"},
		"events of some types": {[]string{"events", "--type", "provisioning.deploy.*,power.changed", "--since", "0"}, "events-types.txt"},
		"waking a host":        {[]string{"host", "wake", "metal/sim-2"}, "host-wake.txt"},
		"no dead letters":      {[]string{"dlq", "list"}, "dlq-list.txt"},
		"an audit":             {[]string{"bus", "audit"}, "bus-audit.txt"},
		"a bus that is there":  {[]string{"bus", "init", "--max-bytes", "1073741824"}, "bus-init.txt"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			code, out, complaint := d.run(tc.args...)
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, complaint)
			}
			golden(t, tc.file, out)
		})
	}
}

func TestEventsAreCloudEvents(t *testing.T) {
	d := newDesk(t)
	code, out, complaint := d.run("events", "-o", "json", "--since", "0")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, complaint)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines {
		var e cloudevents.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v:\n%s", err, line)
		}
		if err := e.Validate(); err != nil {
			t.Errorf("%v:\n%s", err, line)
		}
	}
	if len(lines) != 12 {
		t.Errorf("%d events, want 12", len(lines))
	}
}

func TestMistakesSayWhatToDo(t *testing.T) {
	d := newDesk(t)
	nobody := t.TempDir()
	tests := map[string]struct {
		args []string
		code int
		says string
	}{
		"an unknown command":              {[]string{"fly"}, 1, `"fly"`},
		"an unknown part of a command":    {[]string{"host", "fly"}, 2, `unknown command "fly"`},
		"an unknown flag":                 {[]string{"up", "--colour"}, 2, "metalbus up --help"},
		"an argument too many":            {[]string{"host", "list", "x"}, 2, "want no argument"},
		"a host without namespace":        {[]string{"host", "show", "sim-1"}, 2, "<namespace>/<name>"},
		"a host that is not there":        {[]string{"host", "show", "metal/sim-9"}, 1, "metalbus host list"},
		"a host that cannot be explained": {[]string{"explain", "host", "sim-9"}, 1, "metalbus host list"},
		"a service that is none":          {[]string{"host", "wake", "metal/sim-1", "janitor"}, 2, "registrar"},
		"a format that is none":           {[]string{"events", "-o", "xml"}, 2, `"xml"`},
		"a dead letter that is none":      {[]string{"dlq", "show", "x"}, 2, "metalbus dlq list"},
		"a dead letter that is gone":      {[]string{"dlq", "show", "99"}, 1, "no such dead letter"},
		"an installation that is not":     {[]string{"host", "list", "--data", nobody}, 1, "metalbus up"},
		"a profile that is none":          {[]string{"sim", "--profile", "toaster"}, 2, "mix"},
		"hosts below none":                {[]string{"up", "--hosts", "-1"}, 2, "hosts -1"},
		"a backend that is none":          {[]string{"up", "--backend", "floppy"}, 2, `"floppy"`},
		"images for hosts that boot none": {[]string{"up", "--build-preprov-image"}, 2, "--backend ironic"},
		"an image that lies nowhere": {
			[]string{"up", "--backend", "ironic", "--ironic-endpoint", "http://127.0.0.1:1", "--build-preprov-image", "--deploy-iso-url", "x"},
			2, "deploy-iso-url: want a URL",
		},
		"a backend without a slot":      {[]string{"up", "--slots", "redfish=0"}, 2, "slots redfish=0"},
		"a bus that is open to others":  {[]string{"up", "--nats-listen", "0.0.0.0:4222"}, 2, "loopback"},
		"a program that is not there":   {[]string{"up", "--data", nobody, "--kubeapi", "/no/such/program"}, 1, "--kubeapi"},
		"a demo in somebody's folder":   {[]string{"demo", "--data", "testdata"}, 2, "empty it"},
		"a bus of another installation": {[]string{"host", "list", "--cluster", "UPPER", "--nats-url", "nats://127.0.0.1:1"}, 2, "cluster"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			code, out, complaint := d.run(tc.args...)
			if code != tc.code || !strings.Contains(complaint, tc.says) {
				t.Errorf("exit code %d and %q, want %d and %q\n%s", code, complaint, tc.code, tc.says, out)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	code, out, _ := run(t, nil, time.Now, "version")
	if code != 0 || strings.TrimSpace(out) != service.ReadBuild().String() {
		t.Errorf("exit code %d: %q", code, out)
	}
}

func TestFlagsComeFromTheEnvironment(t *testing.T) {
	tests := map[string]struct {
		env  map[string]string
		says string
	}{
		"the tool's own":                {map[string]string{"METALBUS_NATS_USER_FILE": "u"}, "user file and password file go together"},
		"the services' words for NATS":  {map[string]string{"NATS_USER_FILE": "u"}, "user file and password file go together"},
		"the services' words for it":    {map[string]string{"CLUSTER": "UPPER"}, `cluster "UPPER"`},
		"a value that is none":          {map[string]string{"METALBUS_WORKERS": "many"}, "METALBUS_WORKERS"},
		"an installation by its server": {map[string]string{}, "NATS address"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.env["METALBUS_NATS_URL"] = "http://127.0.0.1:4222"
			code, _, complaint := run(t, tc.env, time.Now, "host", "list")
			if code == 0 || !strings.Contains(complaint, tc.says) {
				t.Errorf("exit code %d: %q, want %q", code, complaint, tc.says)
			}
		})
	}
}

// What is set for other programs must not make up leave the laptop.
func TestUpListensToItsOwnVariablesOnly(t *testing.T) {
	env := map[string]string{
		"METALBUS_DATA": t.TempDir(), "METALBUS_KUBEAPI": "/no/such/program",
		"NATS_URL": "http://x", "CLUSTER": "UPPER", "KUBECONFIG": "/of/production", "HOSTS": "x", "DATA": "/x",
	}
	code, _, complaint := run(t, env, time.Now, "up")
	if code != 1 || !strings.Contains(complaint, "--kubeapi") {
		t.Errorf("exit code %d: %s", code, complaint)
	}
}
