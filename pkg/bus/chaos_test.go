package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// The whole protocol under faults: replicas of a provisioner as processes of
// their own, which are killed, frozen and held up between a claim and its
// write, against a backend that keeps a log of what it was told to do.

func TestMain(m *testing.M) {
	if config := os.Getenv("METALBUS_TEST_PROVISIONER"); config != "" {
		if err := runProvisioner(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestNoHarmUnderFaults(t *testing.T) {
	c := newChaos(t, 40, 6, provisioner{Fenced: true, HeldUp: 10})
	c.run(t)
	for _, harm := range c.harm() {
		t.Errorf("harm: %s", harm)
	}
	bustest.Clean(t, c.b)
	t.Logf("%d commands accepted, %d refused; %d processes killed, %d frozen, the consumer lost %d times", c.accepted, c.refused, c.kills, c.stops, c.losses)
}

// The control: without the window the same faults must do harm, or the test
// above proves nothing.
func TestTheWindowIsWhatPreventsHarm(t *testing.T) {
	for range 4 {
		c := newChaos(t, 30, 4, provisioner{Fenced: false, HeldUp: 25})
		c.run(t)
		if harm := c.harm(); len(harm) > 0 {
			t.Logf("as it must be: %d times, such as %s", len(harm), harm[0])
			return
		}
	}
	t.Error("no harm was found without the window")
}

// chaosTiming leaves room for a process to be frozen and to come back, and for a busy
// computer on which a request that was sent in time takes a second to arrive.
func chaosTiming() bus.Timing {
	t := bustest.Timing()
	t.Window, t.Quarantine, t.AckWait, t.Handling = 300*time.Millisecond, 1500*time.Millisecond, 1700*time.Millisecond, 600*time.Millisecond
	t.Resume, t.Forgotten = 2*time.Second, 3*time.Second
	return t
}

// provisioner is one replica, as told by the test.
type provisioner struct {
	NATS, Backend string
	// Fenced keeps to the window of a claim.
	Fenced bool
	// HeldUp is how many in a hundred writes are held up till they do harm.
	HeldUp int
}

func runProvisioner(config string) error {
	var p provisioner
	if err := json.Unmarshal([]byte(config), &p); err != nil {
		return err
	}
	b, err := bus.Connect(context.Background(), bus.Config{URLs: []string{p.NATS}, Cluster: bustest.Cluster, Name: "provisioner", Timing: chaosTiming()})
	if err != nil {
		return err
	}
	return b.Serve(context.Background(), p)
}

func (provisioner) Section() event.Section { return event.SectionProvisioning }

func (provisioner) Cares(t bus.Trigger) bool {
	switch t.Stage {
	case v1alpha1.StateAvailable, v1alpha1.StateProvisioning, v1alpha1.StateProvisioned, v1alpha1.StateDeprovisioning:
		return true
	default:
		return false
	}
}

func (p provisioner) Step(ctx context.Context, h lifecycle.Host) (lifecycle.Step, error) {
	op := h.Provisioning.Op
	switch {
	case op == nil && lifecycle.Stage(h) == v1alpha1.StateAvailable && lifecycle.WantsImage(h):
		return lifecycle.Write{Kind: event.Deploy, Name: "deploy"}, nil
	case op == nil && lifecycle.Stage(h) == v1alpha1.StateProvisioned && lifecycle.Unwanted(h):
		return lifecycle.Write{Kind: event.Undeploy, Name: "undeploy"}, nil
	case op == nil:
		return lifecycle.Nothing{}, nil
	}
	state, err := p.call(ctx, http.MethodGet, "/"+h.UID)
	if err != nil {
		return nil, err
	}
	want, from, done := "active", "available", lifecycle.Fact(lifecycle.Provisioned{})
	if op.Kind == event.Undeploy {
		want, from, done = "available", "active", lifecycle.Deprovisioned{}
	}
	switch state {
	case want:
		return lifecycle.Record{Fact: done}, nil
	case from:
		return lifecycle.Write{Kind: op.Kind, Name: string(op.Kind)}, nil
	default:
		return lifecycle.Wait{For: "the backend", Every: 100 * time.Millisecond}, nil
	}
}

func (p provisioner) Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error {
	if rand.IntN(100) < p.HeldUp {
		p.holdUp(ctx, h)
	}
	if !p.Fenced {
		ctx = context.WithoutCancel(ctx)
	}
	_, err := p.call(ctx, http.MethodPut, "/"+h.UID+"/"+w.Name+"?op="+h.Provisioning.Op.ID)
	return err
}

// holdUp keeps a write back until it would do the most harm: another replica has made
// it, the machine was elsewhere, and is again where the write would be accepted.
func (p provisioner) holdUp(ctx context.Context, h lifecycle.Host) {
	ctx = context.WithoutCancel(ctx)
	from, err := p.call(ctx, http.MethodGet, "/"+h.UID)
	if err != nil {
		return
	}
	time.Sleep(chaosTiming().Quarantine)
	for away, end := false, time.Now().Add(3*time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		switch state, err := p.call(ctx, http.MethodGet, "/"+h.UID); {
		case err != nil || state != from:
			away = true
		case away:
			return
		}
	}
}

func (p provisioner) call(ctx context.Context, method, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, p.Backend+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode == http.StatusConflict {
		return "", lifecycle.ErrBusy
	}
	return string(body), err
}

// chaos is one run.
type chaos struct {
	b     *bus.Bus
	js    jetstream.JetStream
	p     provisioner
	hosts int
	turns int

	mu                sync.Mutex
	nodes             map[string]*node
	accepted, refused int

	kills, stops, losses int
}

// node is a machine at the backend.
type node struct {
	state string
	until time.Time
	next  string
	log   []string
}

func newChaos(t *testing.T, hosts, turns int, p provisioner) *chaos {
	t.Helper()
	s := listening(t)
	c := &chaos{hosts: hosts, turns: turns, p: p, nodes: map[string]*node{}}
	backend := httptest.NewServer(http.HandlerFunc(c.backend))
	t.Cleanup(backend.Close)
	c.p.NATS, c.p.Backend = s.URL(), backend.URL
	c.b = bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "projector", Timing: chaosTiming()}, bus.WithServer(s))
	if _, err := c.b.Init(t.Context(), chaosInit()); err != nil {
		t.Fatal(err)
	}
	_, c.js = raw(t, s)
	return c
}

func (c *chaos) backend(w http.ResponseWriter, r *http.Request) {
	uid, command, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[uid]
	if n == nil {
		n = &node{state: "available"}
		c.nodes[uid] = n
	}
	if n.next != "" && time.Now().After(n.until) {
		n.state, n.next = n.next, ""
	}
	if r.Method == http.MethodGet {
		fmt.Fprint(w, n.state)
		return
	}
	from, during, to := "available", "deploying", "active"
	if command == "undeploy" {
		from, during, to = "active", "cleaning", "available"
	}
	if n.state != from {
		c.refused++
		w.WriteHeader(http.StatusConflict)
		return
	}
	c.accepted++
	n.log = append(n.log, r.URL.Query().Get("op"))
	n.state, n.next, n.until = during, to, time.Now().Add(time.Duration(20+rand.IntN(100))*time.Millisecond)
}

// run takes each host through its turns, while replicas die and freeze.
func (c *chaos) run(t *testing.T) {
	t.Helper()
	replicas := make([]*exec.Cmd, 3)
	for i := range replicas {
		replicas[i] = c.start(t)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { c.disturb(ctx, t, replicas) })
	defer func() {
		cancel()
		wg.Wait()
		for _, r := range replicas {
			end(r)
		}
	}()
	for i := range c.hosts {
		c.bring(t, fmt.Sprintf("h%d", i))
	}
	turn := map[string]int{}
	deadline := time.Now().Add(2 * time.Minute)
	for left := c.hosts; left > 0; left = c.advanceAll(t, turn) {
		if time.Now().After(deadline) {
			t.Fatalf("%d hosts were left behind", left)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// advanceAll says how many hosts have turns before them.
func (c *chaos) advanceAll(t *testing.T, turn map[string]int) (left int) {
	t.Helper()
	for i := range c.hosts {
		uid := fmt.Sprintf("h%d", i)
		if turn[uid] > c.turns {
			continue
		}
		left++
		if c.advance(t, uid, turn[uid]) {
			turn[uid]++
		}
	}
	return left
}

// bring makes a host available.
func (c *chaos) bring(t *testing.T, uid string) {
	t.Helper()
	bustest.Append(t, c.b, uid, bustest.The(created(uid)), bustest.The(enrolled().Fact), bustest.The(lifecycle.Skipped{}), bustest.The(lifecycle.ReadyForImage{}))
}

// advance asks for an image, or for none, once the turn before is over; the
// last turn is over with that alone.
func (c *chaos) advance(t *testing.T, uid string, turn int) bool {
	t.Helper()
	h, err := c.b.Load(t.Context(), uid)
	if err != nil {
		return false
	}
	settled, want := v1alpha1.StateAvailable, &v1alpha1.Image{URL: fmt.Sprintf("http://images.example/%d", turn)}
	if turn%2 == 1 {
		settled, want = v1alpha1.StateProvisioned, nil
	}
	if lifecycle.Stage(h) != settled || h.Provisioning.Op != nil {
		return false
	}
	if turn == c.turns {
		return true
	}
	w := changed(h, fmt.Sprint(turn))
	w.Intent.Spec.Image = want
	_, err = c.b.Append(t.Context(), h, w)
	return err == nil
}

func (c *chaos) start(t *testing.T) *exec.Cmd {
	t.Helper()
	config, err := json.Marshal(c.p)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "METALBUS_TEST_PROVISIONER="+string(config))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func (c *chaos) disturb(ctx context.Context, t *testing.T, replicas []*exec.Cmd) {
	t.Helper()
	wait := func(least, spread int) bool {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Duration(least+rand.IntN(spread)) * time.Millisecond):
			return true
		}
	}
	for wait(100, 200) {
		i := rand.IntN(len(replicas))
		switch rand.IntN(5) {
		case 0, 1:
			c.kills++
			end(replicas[i])
			replicas[i] = c.start(t)
		case 2, 3:
			c.stops++
			_ = replicas[i].Process.Signal(syscall.SIGSTOP)
			wait(100, 1400)
			_ = replicas[i].Process.Signal(syscall.SIGCONT)
		default:
			c.losses++
			c.loseConsumer(ctx, t)
		}
	}
}

// loseConsumer deletes the service's consumer with all that was in hand, and
// makes it anew, so that everything comes once more.
func (c *chaos) loseConsumer(ctx context.Context, t *testing.T) {
	t.Helper()
	if err := c.js.DeleteConsumer(ctx, bus.StreamHost, "provisioner-"+bustest.Cluster); err != nil && ctx.Err() == nil {
		t.Errorf("delete the consumer: %v", err)
	}
	if _, err := c.b.Init(context.WithoutCancel(ctx), chaosInit()); err != nil {
		t.Errorf("initialize: %v", err)
	}
}

func chaosInit() bus.InitOptions {
	return bus.InitOptions{Replicas: 1, MaxBytes: 1 << 30, Memory: true}
}

func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, err)
	}
}

// harm is what the backend was told to do and should not have been: each
// operation once, and deployments and their ends in turn.
func (c *chaos) harm() (found []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, n := range c.nodes {
		last := event.Undeploy
		seen := map[string]bool{}
		for _, op := range n.log {
			kind, _, _ := strings.Cut(op, "-")
			if seen[op] || kind == string(last) {
				found = append(found, fmt.Sprintf("host %s was told %v", uid, n.log))
				break
			}
			seen[op], last = true, event.Kind(kind)
		}
		if len(n.log) != c.turns {
			found = append(found, fmt.Sprintf("host %s was told %d times, want %d: %v", uid, len(n.log), c.turns, n.log))
		}
	}
	return found
}
