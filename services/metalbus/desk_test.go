package metalbus_test

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
	"github.com/metalbus/metalbus/pkg/service"
	"github.com/metalbus/metalbus/services/metalbus"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file in testdata.
func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got, go test -update writes it anew):\n%s", path, diff)
	}
}

// noon is when the stories of the tests begin.
func noon() time.Time { return time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC) }

// clock goes on by a second at each look.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Second)
	return c.now
}

// desk is an installation that can be asked, and the tool to do so.
type desk struct {
	t    *testing.T
	data string
	now  time.Time
	bus  *bus.Bus
}

// newDesk has two hosts on its bus: one that is provisioned, and one whose BMC
// refuses its credentials.
func newDesk(t *testing.T) *desk {
	t.Helper()
	server := bustest.Server(t)
	c := &clock{now: noon()}
	b := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "test"}, bus.WithClock(c.Now), bus.WithServer(server))
	if _, err := b.Init(t.Context(), bus.InitOptions{MaxBytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	good := bustest.Append(t, b, "uid-1", wish("sim-1", "1"))
	good = straightPath(t, b, good)
	bustest.Append(t, b, "uid-2", wish("sim-2", "2"), fact(lifecycle.Failed{Kind: event.Enroll, Problem: event.Problem{
		Type: v1alpha1.RegistrationError, Class: event.ClassCredentials, Message: "the BMC refused the user name or the password",
		Next: "Correct them in the Secret metal/sim-2-bmc",
	}}))
	awaitHistory(t, b, good.Rev+2)
	data := t.TempDir()
	stop, err := metalbus.OpenDoor(t.Context(), data, server, bus.Config{Cluster: bustest.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stop() })
	return &desk{t: t, data: data, now: noon().Add(time.Hour), bus: b}
}

func fact(f lifecycle.Fact) func(lifecycle.Host) lifecycle.Fact {
	return func(lifecycle.Host) lifecycle.Fact { return f }
}

func wish(name, uid string) func(lifecycle.Host) lifecycle.Fact {
	format := "live-iso"
	return fact(lifecycle.Wish{Fact: event.Created, Intent: event.Intent{
		Namespace: "metal", Name: name, UID: "uid-" + uid, Hash: "1", CreatedAt: noon(),
		Credentials: event.SecretRef{Namespace: "metal", Name: name + "-bmc", Version: "7"},
		Spec: v1alpha1.BareMetalHostSpec{
			Online: true, Image: &v1alpha1.Image{URL: "http://192.0.2.9/live.iso", DiskFormat: &format},
			BMC: v1alpha1.BMCDetails{Address: "redfish-virtualmedia+http://192.0.2.1/redfish/v1/Systems/" + uid, CredentialsName: name + "-bmc"},
		},
	}})
}

func straightPath(t *testing.T, b *bus.Bus, h lifecycle.Host) lifecycle.Host {
	t.Helper()
	on := true
	return bustest.Append(t, b, h.UID,
		fact(lifecycle.Enrolled{Backend: "redfish", Node: "node-1", Address: h.Intent.Spec.BMC.Address, Credentials: lifecycle.Credentials(h.Intent)}),
		fact(lifecycle.Inspected{Digest: "d", Source: "redfish", Arch: "x86_64"}),
		fact(lifecycle.ReadyForImage{}),
		fact(lifecycle.Started{Kind: event.Deploy, Step: "insert", Reason: "an image is wanted"}),
		fact(lifecycle.Accepted{Kind: event.Deploy}),
		fact(lifecycle.Claimed{Kind: event.Deploy, Step: "boot"}),
		fact(lifecycle.Accepted{Kind: event.Deploy}),
		fact(lifecycle.Provisioned{}),
		fact(lifecycle.Observed{What: event.PowerChanged, On: &on, Health: "OK"}),
	)
}

// awaitHistory waits until the long copy of the log has all events.
func awaitHistory(t *testing.T, b *bus.Bus, events uint64) {
	t.Helper()
	bustest.Await(t, "the history", func() bool {
		var n uint64
		for _, err := range b.History(t.Context(), bus.HistoryFilter{}, false) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n >= events
	})
}

// run runs the tool, and returns its exit code, output and complaints.
func (d *desk) run(args ...string) (code int, out, complaint string) {
	d.t.Helper()
	return run(d.t, map[string]string{"METALBUS_DATA": d.data}, func() time.Time { return d.now }, args...)
}

func run(t *testing.T, env map[string]string, now func() time.Time, args ...string) (code int, out, complaint string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = metalbus.Tool{Program: "metalbus", Env: service.Environment{
		Args: args, Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		Now: now, Out: &stdout, Err: &stderr,
	}}.Execute(t.Context())
	return code, stdout.String(), stderr.String()
}

// follow runs `metalbus events -f` until ctx ends.
func (d *desk) follow(ctx context.Context, out io.Writer) (code int) {
	return metalbus.Tool{Program: "metalbus", Env: service.Environment{
		Args: []string{"events", "-f", "--since", "0", "--data", d.data}, Lookup: func(string) (string, bool) { return "", false },
		Now: func() time.Time { return d.now }, Out: out, Err: io.Discard,
	}}.Execute(ctx)
}

// append adds a fact to a host.
func (d *desk) append(uid string, f lifecycle.Fact) {
	d.t.Helper()
	bustest.Append(d.t, d.bus, uid, fact(f))
}
