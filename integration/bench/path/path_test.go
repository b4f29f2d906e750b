// Package path_test measures what the way of a host costs on the Redfish backend:
// the time that is ours, the events, the writes to the Kubernetes API and the
// requests to BMCs, for one host, a hundred and a thousand. It needs no
// container engine.
package path_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/integration/internal/plant"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bus"
)

var (
	shared lab.Lab
	sizes  = flag.String("hosts", "1,100@2,100,1000", "comma-separated `numbers` of hosts; with @N no more than N of them are created a second")
	rows   []string
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := shared.Run(m)
	for _, row := range rows {
		fmt.Println(row)
	}
	os.Exit(code)
}

// users is how many hosts are created at once.
const users = 8

// A goal is how far hosts go, and what of their time is the machines' own.
type goal struct {
	name     string
	change   plant.Change
	state    v1alpha1.ProvisioningState
	is       func(plant.Life) bool
	hardware time.Duration
}

// goals are the ends of the two ways. A machine that boots an image takes its
// time until the power is on and its boot device is chosen.
func goals() []goal {
	d := bmcsim.DefaultDelays()
	return []goal{
		{"available", stayOff, v1alpha1.StateAvailable, plant.Shows(v1alpha1.StateAvailable), 0},
		{"provisioned", plant.WithImage, v1alpha1.StateProvisioned, plant.InUse, d.PowerOn + d.SelfTest},
	}
}

// stayOff keeps a machine off, or it would be switched on once it is available.
func stayOff(h *v1alpha1.BareMetalHost, _ *corev1.Secret) { h.Spec.Online = false }

// BenchmarkPath is one run, whatever b.N says: it takes its time as it is.
func BenchmarkPath(b *testing.B) {
	rows = append(rows, "| hosts | created | to | all there after | overhead p50 | p99 | events | status writes | API writes | BMC requests | CPU of services | of API and NATS |", "| --: | --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |")
	for text := range strings.SplitSeq(*sizes, ",") {
		f, err := parse(text)
		if err != nil {
			b.Fatal(err)
		}
		for _, g := range goals() {
			b.Run(g.name+"/"+text, func(b *testing.B) { run(b, g, f) })
		}
	}
}

// A fleet is how many hosts there are, and how many of them are created a
// second; 0 for all at once.
type fleet struct{ hosts, rate int }

func parse(text string) (f fleet, err error) {
	hosts, rate, paced := strings.Cut(text, "@")
	f.hosts, err = strconv.Atoi(hosts)
	if paced && err == nil {
		f.rate, err = strconv.Atoi(rate)
	}
	if err != nil || f.hosts < 1 || f.rate < 0 || (paced && f.rate == 0) {
		return f, fmt.Errorf("-hosts %q: want numbers, such as 100 or 100@2", text)
	}
	return f, nil
}

func (f fleet) pace() string {
	if f.rate == 0 {
		return "at once"
	}
	return fmt.Sprintf("%d a second", f.rate)
}

// run brings up hosts.
func run(b *testing.B, g goal, f fleet) {
	b.Helper()
	p := plant.New(b, &shared, shared.StartKube(b, b.TempDir()), plant.StartRack(b, bmcsim.DefaultDelays()))
	p.Env = []string{"LOG_LEVEL=INFO"}
	p.Start(b, 1)
	warmUp(b, p)
	hosts := prepare(b, p, g, f.hosts)

	before := count(b, p)
	created := create(b, p, hosts, f.rate)
	overheads := make([]time.Duration, 0, f.hosts)
	last := time.Time{}
	first := slices.MinFunc(created, time.Time.Compare)
	for i, h := range hosts {
		life := p.Await(b, h.Name, g.name, g.is)
		at, _ := life.Reached(g.state)
		overheads = append(overheads, at.Sub(created[i])-g.hardware)
		if at.After(last) {
			last = at
		}
	}
	after := count(b, p)
	report(b, g, f, overheads, last.Sub(first), after.since(before))
}

// warmUp is one host's way, after which every service is ready.
func warmUp(b *testing.B, p *plant.Plant) {
	b.Helper()
	h, _ := p.Declare(b, plant.WithImage)
	p.Await(b, h.Name, "in use", plant.InUse)
}

// prepare makes machines, and their hosts' Secrets.
func prepare(b *testing.B, p *plant.Plant, g goal, n int) []*v1alpha1.BareMetalHost {
	b.Helper()
	var hosts []*v1alpha1.BareMetalHost
	for range n {
		m, err := p.Rack.Add(bmcsim.HostSpec{})
		if err != nil {
			b.Fatal(err)
		}
		h, secret := p.Manifests(m)
		g.change(h, secret)
		p.Create(b, secret)
		hosts = append(hosts, h)
	}
	return hosts
}

// create makes the hosts, several at once, and tells when each was asked for.
func create(b *testing.B, p *plant.Plant, hosts []*v1alpha1.BareMetalHost, rate int) []time.Time {
	b.Helper()
	created := make([]time.Time, len(hosts))
	limit := atMost(rate)
	var all sync.WaitGroup
	for u := range users {
		all.Go(func() {
			for i := u; i < len(hosts); i += users {
				if err := limit.Wait(b.Context()); err != nil {
					b.Error(err)
				}
				created[i] = time.Now()
				if err := p.Kube.Client.Create(b.Context(), hosts[i]); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	if b.Failed() {
		b.FailNow()
	}
	return created
}

// atMost lets so many through a second, all if it is 0.
func atMost(rate int) flowcontrol.RateLimiter {
	if rate == 0 {
		return flowcontrol.NewFakeAlwaysRateLimiter()
	}
	return flowcontrol.NewTokenBucketRateLimiter(float32(rate), 1)
}

// report puts the figures of a run into the table, all but the times for each host.
func report(b *testing.B, g goal, f fleet, overheads []time.Duration, wall time.Duration, c counts) {
	b.Helper()
	slices.Sort(overheads)
	n := len(overheads)
	p50, p99 := overheads[(n-1)/2], overheads[(99*n+99)/100-1]
	each := func(total int) string { return strconv.FormatFloat(float64(total)/float64(n), 'f', 1, 64) }
	rows = append(rows, fmt.Sprintf("| %d | %s | %s | %.1f s | %.2f s | %.2f s | %s | %s | %s | %s | %s ms | %s ms |",
		n, f.pace(), g.name, wall.Seconds(), p50.Seconds(), p99.Seconds(), each(c.events), each(c.status), each(c.writes), each(c.bmc),
		each(int(c.services.Milliseconds())), each(int(c.around.Milliseconds()))))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(wall.Seconds(), "wall-s")
	b.ReportMetric(p50.Seconds(), "p50-s")
	b.ReportMetric(p99.Seconds(), "p99-s")
}

// counts are what has been spent so far. The processor's time does not depend
// on what else the computer has to do, as all other times do.
type counts struct {
	events, status, writes, bmc int
	services, around            time.Duration // CPU of the services, of the API and NATS
}

func (c counts) since(before counts) counts {
	return counts{
		c.events - before.events, c.status - before.status, c.writes - before.writes, c.bmc - before.bmc,
		c.services - before.services, c.around - before.around,
	}
}

func count(b *testing.B, p *plant.Plant) (c counts) {
	b.Helper()
	c.events = events(b, p.NATS.URL)
	c.status, c.writes = kubeWrites(b, p.Kube)
	for _, n := range p.Rack.Requests() {
		c.bmc += n
	}
	for _, s := range plant.Services() {
		for _, r := range p.Running(s) {
			c.services += cpu(b, r.PID())
		}
	}
	c.around = cpu(b, p.Kube.Process().PID()) + cpu(b, p.NATS.Process().PID())
	return c
}

// tick is the unit of times in /proc.
const tick = 10 * time.Millisecond

// cpu is what a process has used of the processors.
func cpu(b *testing.B, pid int) (sum time.Duration) {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatalf("CPU time is measured on Linux: %v", err)
	}
	// The name in parentheses may hold anything; the time in user and in system
	// mode are the twelfth and thirteenth field after it.
	_, after, _ := strings.Cut(string(text), ") ")
	for _, field := range strings.Fields(after)[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(n) * tick
	}
	return sum
}

// events is how many were ever appended to the log.
func events(b *testing.B, url string) int {
	b.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	s, err := js.Stream(b.Context(), bus.StreamHost)
	if err != nil {
		b.Fatal(err)
	}
	return int(s.CachedInfo().State.LastSeq)
}

// kubeWrites is how many writes of the services the API has answered: of the
// status of hosts, and all but creating hosts and Secrets, and leader election.
func kubeWrites(b *testing.B, kube *lab.Kube) (status, all int) {
	b.Helper()
	c, err := kubernetes.NewForConfig(kube.Config)
	if err != nil {
		b.Fatal(err)
	}
	text, err := c.RESTClient().Get().AbsPath("/metrics").DoRaw(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		n, ours, ofStatus := write(line)
		if ours {
			all += n
		}
		if ofStatus {
			status += n
		}
	}
	return status, all
}

// write reads a line of the API's metrics.
func write(line string) (n int, ours, status bool) {
	labels, value, ok := strings.Cut(line, "} ")
	if !ok || !strings.HasPrefix(labels, "apiserver_request_total{") {
		return 0, false, false
	}
	has := func(name string, values ...string) bool {
		return slices.ContainsFunc(values, func(v string) bool { return strings.Contains(labels, name+`="`+v+`"`) })
	}
	count, err := strconv.ParseFloat(value, 64)
	users := has("verb", "POST") && has("resource", "baremetalhosts", "secrets", "namespaces")
	ours = err == nil && has("verb", "POST", "PUT", "PATCH", "APPLY", "DELETE") && has("group", "", "metal3.io") && has("resource", "baremetalhosts", "hardwaredata", "events", "secrets", "hostfirmwaresettings", "hostfirmwarecomponents", "firmwareschemas") && !users
	return int(count), ours, ours && has("resource", "baremetalhosts") && has("subresource", "status")
}
