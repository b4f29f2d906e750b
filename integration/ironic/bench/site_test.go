package bench_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"regexp"
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
	verbs  map[string]int           // of all of them, by verb and resource
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
	c.verbs = s.requests(b)
	for _, n := range c.verbs {
		c.api += n
	}
	c.api -= int(s.asked.Load())
	return c
}

var label = regexp.MustCompile(`(resource|subresource|verb|code)="([^"]*)"`)

// requests reads how many requests the Kubernetes API has answered, by verb and
// resource, and by code where that is not one of success.
func (s *site) requests(b *testing.B) map[string]int {
	b.Helper()
	text, err := s.metrics.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	all := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "apiserver_request_total{") {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
		if err != nil {
			b.Fatal(err)
		}
		is := map[string]string{}
		for _, m := range label.FindAllStringSubmatch(line, -1) {
			is[m[1]] = m[2]
		}
		what := strings.TrimSuffix(is["verb"]+" "+is["resource"]+"/"+is["subresource"], "/")
		if !strings.HasPrefix(is["code"], "2") && is["code"] != "0" {
			what += " (" + is["code"] + ")"
		}
		all[what] += int(n)
	}
	return all
}

// written is how many writes the Kubernetes API has answered, but for leases.
func (s *site) written(b *testing.B) int {
	b.Helper()
	n := 0
	for what, count := range s.requests(b) {
		verb, resource, _ := strings.Cut(what, " ")
		if slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE"}, verb) && !strings.HasPrefix(resource, "leases") {
			n += count
		}
	}
	return n
}

func (c cost) since(before cost) cost {
	d := cost{
		wall: c.at.Sub(before.at), cpu: map[string]time.Duration{}, ironic: c.ironic - before.ironic, api: c.api - before.api,
		kinds: less(c.kinds, before.kinds), verbs: less(c.verbs, before.verbs),
	}
	for name, t := range c.cpu {
		d.cpu[name] = t - before.cpu[name]
	}
	return d
}

// less is what was added.
func less(now, before map[string]int) map[string]int {
	d := map[string]int{}
	for kind, n := range now {
		if n -= before[kind]; n > 0 {
			d[kind] = n
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
	text.WriteString("\n\tIronic: " + ranked(c.kinds))
	text.WriteString("\n\tKubernetes, with what the bench asks: " + ranked(c.verbs))
	return text.String()
}

// ranked lists what was asked, the most frequent first.
func ranked(counts map[string]int) string {
	var list []string
	for _, kind := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return counts[b] - counts[a] }) {
		list = append(list, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(list, ", ")
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
