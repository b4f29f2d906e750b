package bench_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

// site is everything that a fleet needs, each part a process of its own, and Ironic in
// this one.
type site struct {
	ironic  *ironictest.Ironic
	kube    *lab.Kube
	user    client.Client // whose requests are not counted
	asked   atomic.Int64  // by user
	metrics kubernetes.Interface
	parts   map[string]*lab.Process
}

// services are what is measured as ours.
func services() []string {
	return []string{"projector", "registrar", "inspector", "provisioner", "powermonitor"}
}

func newSite(b *testing.B) *site {
	b.Helper()
	i, address, stop, err := ironictest.Start(ironictest.Config{Now: time.Now, Delays: delays()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(stop)
	s := &site{ironic: i, kube: shared.StartKube(b, b.TempDir()), parts: map[string]*lab.Process{}}
	nats := shared.StartNATS(b)
	s.parts["kubeapi"], s.parts["nats-server"] = s.kube.Process(), nats.Process()
	init := exec.CommandContext(b.Context(), shared.Program("metalbus"), "bus", "init", "--nats-url", nats.URL)
	if out, err := init.CombinedOutput(); err != nil {
		b.Fatalf("metalbus bus init: %v\n%s", err, out)
	}
	for _, name := range services() {
		args := []string{"--nats-url", nats.URL, "--kubeconfig", s.kube.Kubeconfig, "--health-address", ""}
		if name != "projector" {
			args = append(args, "--backend", "ironic", "--ironic-endpoint", address)
		}
		s.parts[name] = shared.Start(b, name, []string{"POD_NAME=" + name + "-0", "STATE_DIR=" + b.TempDir()}, args...)
	}
	s.connect(b)
	return s
}

// connect makes the clients of the bench: one that counts what it asks, and one for
// the API's own counters.
func (s *site) connect(b *testing.B) {
	b.Helper()
	cfg := rest.CopyConfig(s.kube.Config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			s.asked.Add(1)
			return next.RoundTrip(r)
		})
	})
	var err error
	if s.user, err = client.New(cfg, client.Options{Scheme: lab.Scheme()}); err != nil {
		b.Fatal(err)
	}
	if s.metrics, err = kubernetes.NewForConfig(cfg); err != nil {
		b.Fatal(err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// ended names a part that has ended by itself, "" if there is none.
func (s *site) ended() string {
	for name, p := range s.parts {
		select {
		case <-p.Done():
			return fmt.Sprintf("%s ended with exit code %d", name, p.ExitCode())
		default:
		}
	}
	return ""
}

// cost is what was used so far, or between two looks.
type cost struct {
	at     time.Time
	wall   time.Duration
	cpu    map[string]time.Duration // by process
	ironic int                      // requests
	kinds  map[string]int           // of them, by kind
	api    int                      // requests, without those of the bench
}

func (s *site) measure(b *testing.B) cost {
	b.Helper()
	c := cost{at: time.Now(), cpu: map[string]time.Duration{}, kinds: s.ironic.Counts()}
	for name, p := range s.parts {
		c.cpu[name] = cpu(b, p.PID())
	}
	for _, n := range c.kinds {
		c.ironic += n
	}
	c.api = s.requests(b) - int(s.asked.Load())
	return c
}

// requests reads how many requests the Kubernetes API has answered.
func (s *site) requests(b *testing.B) int {
	b.Helper()
	text, err := s.metrics.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	sum := 0.0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "apiserver_request_total{") {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += n
	}
	return int(sum)
}

func (c cost) since(before cost) cost {
	d := cost{wall: c.at.Sub(before.at), cpu: map[string]time.Duration{}, kinds: map[string]int{}, ironic: c.ironic - before.ironic, api: c.api - before.api}
	for name, t := range c.cpu {
		d.cpu[name] = t - before.cpu[name]
	}
	for kind, n := range c.kinds {
		if n -= before.kinds[kind]; n > 0 {
			d.kinds[kind] = n
		}
	}
	return d
}

// String is a few lines for people.
func (c cost) String() string {
	n := float64(*hosts)
	var ours time.Duration
	for _, name := range services() {
		ours += c.cpu[name]
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%.0f s; a host: %.1f Ironic requests, %.1f API requests; CPU: services %.1f s, kubeapi %.1f s, NATS %.1f s",
		c.wall.Seconds(), float64(c.ironic)/n, float64(c.api)/n, ours.Seconds(), c.cpu["kubeapi"].Seconds(), c.cpu["nats-server"].Seconds())
	kinds := make([]string, 0, len(c.kinds))
	for kind := range c.kinds {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b string) int { return c.kinds[b] - c.kinds[a] })
	for _, kind := range kinds {
		fmt.Fprintf(&text, "\n\t%8d %s", c.kinds[kind], kind)
	}
	return text.String()
}

// tick is the unit in which Linux counts a process's CPU time.
const tick = 10 * time.Millisecond

// cpu is the CPU time that a process has used so far.
func cpu(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatalf("CPU time is measured on Linux, of processes that live: %v", err)
	}
	// The name, in parentheses, may hold anything; user and system time are the
	// twelfth and thirteenth field after it.
	_, after, _ := strings.Cut(string(text), ") ")
	var sum time.Duration
	for _, field := range strings.Fields(after)[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(n) * tick
	}
	return sum
}
