package metalbus

import (
	"context"
	"io"
	"net"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// OpenDoor makes a folder look as that of a running installation, until stop.
func OpenDoor(ctx context.Context, dir string, server pipes, cfg bus.Config) (stop func() error, err error) {
	f := folder(dir)
	release, err := f.take()
	if err != nil {
		return nil, err
	}
	s, err := openSocket(ctx, f.path("nats.sock"), server)
	if err != nil {
		return nil, err
	}
	err = writeJSON(f.running(), running{Socket: s.path, Cluster: cfg.Cluster})
	return func() error {
		release()
		return s.close()
	}, err
}

// Screen is a painter on a terminal of a size.
type Screen struct{ p painter }

// NewScreen paints on out.
func NewScreen(out io.Writer, size func() (width, height int)) *Screen {
	return &Screen{painter{out: out, size: size}}
}

// Paint shows a frame.
func (s *Screen) Paint(lines ...string) { s.p.paint(lines) }

// Print puts text above the frame.
func (s *Screen) Print(text string) { s.p.print(text) }

// Natural compares names as people count.
func Natural(a, b string) int { return natural(a, b) }

// Settled reports whether a host is as asked.
func Settled(h lifecycle.Host) bool { return settled(h) }

// Frame is what a terminal shows of hosts and events.
func Frame(hosts []lifecycle.Host, events []cloudevents.Event) []string {
	return fleetOf(hosts, events).summary().frame(newStyles(io.Discard), "title")
}

// Line is the same in one line.
func Line(hosts []lifecycle.Host) string { return fleetOf(hosts, nil).summary().line() }

func fleetOf(hosts []lifecycle.Host, events []cloudevents.Event) *fleet {
	f := &fleet{now: func() time.Time { return time.Time{} }, hosts: map[string]lifecycle.Host{}, stale: map[string]bool{}, trouble: map[string]error{}}
	for _, e := range events {
		f.hear(readRecord(e))
	}
	for _, h := range hosts {
		f.hosts[h.UID] = h
	}
	return f
}

// Report sums up hosts and their events, and what they cost.
func Report(hosts []lifecycle.Host, events []cloudevents.Event, writes map[string]int, requests int) string {
	stories := map[string][]record{}
	for _, e := range events {
		r := readRecord(e)
		stories[r.UID] = append(stories[r.UID], r)
	}
	r := newReport(hosts, stories)
	r.Writes, r.Requests = writes, requests
	return r.text(newStyles(io.Discard))
}

// Take takes a data folder.
func Take(dir string) (release func(), err error) { return folder(dir).take() }

// Child is the Kubernetes API as a child process.
type Child struct{ api *kubeapi }

// StartChild starts a program in its place.
func StartChild(program, dir, log string) (*Child, error) {
	api, err := startKubeapi(program, dir, log)
	return &Child{api}, err
}

// Await waits for its kubeconfig.
func (c *Child) Await(ctx context.Context) (string, error) { return c.api.await(ctx) }

// Stop ends it.
func (c *Child) Stop() error { return c.api.stop() }

// Dial reaches a server through a socket.
func Dial(path string) (net.Conn, error) { return dial(path).InProcessConn() }

// Socket opens one at path, and says where it is.
func Socket(ctx context.Context, path string, server pipes) (at string, closeSocket func() error, err error) {
	s, err := openSocket(ctx, path, server)
	if err != nil {
		return "", nil, err
	}
	return s.path, s.close, nil
}

// Reachable is the host of an address as clients name it.
func Reachable(listen string) string { return reachable(listen) }

// Log is the bus as people look at it.
type Log = hostLog

// Present are the names of the hosts that are there, and of those that cannot be read.
func Present(ctx context.Context, log Log) (names []string, broken, err error) {
	hosts, broken, err := presentHosts(ctx, log, "")
	for _, h := range hosts {
		names = append(names, h.Name())
	}
	return names, broken, err
}

// Fleet follows hosts.
type Fleet struct{ f *fleet }

// NewFleet reads all hosts.
func NewFleet(ctx context.Context, log Log, now func() time.Time) (*Fleet, error) {
	f, err := newFleet(ctx, log, now)
	return &Fleet{f}, err
}

// Follow hears events until ctx ends.
func (f *Fleet) Follow(ctx context.Context) { f.f.follow(ctx, time.Time{}) }

// Frame reads the hosts that have a newer event, and shows them all.
func (f *Fleet) Frame(ctx context.Context) string {
	f.f.refresh(ctx)
	return strings.Join(f.f.summary().frame(newStyles(io.Discard), "title"), "\n")
}

// Unblocks are the ways to get a host going.
func Unblocks(h lifecycle.Host) []string { return unblocks(h) }
