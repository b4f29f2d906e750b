package integration_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

var shared lab.Lab

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

const (
	tool  = "metalbus"
	image = "http://images.example/live.iso"
	// upHosts is how many hosts an installation of these tests has.
	upHosts = 4
	// upPatience is how long one may take to be ready, or to stop, while other
	// work goes on.
	upPatience = 3 * time.Minute
)

// site is a `metalbus up` in a folder of its own.
type site struct {
	t       *testing.T
	data    string
	process *lab.Process
}

func newSite(t *testing.T) *site { return &site{t: t, data: t.TempDir()} }

// up begins to run it.
func (s *site) up(args ...string) {
	s.t.Helper()
	s.process = shared.Start(s.t, tool, []string{"METALBUS_DATA=" + s.data}, append([]string{"up", "--delay", "0.2"}, args...)...)
}

func (s *site) said() string {
	s.t.Helper()
	text, err := os.ReadFile(s.process.Log)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// await waits until it has said something.
func (s *site) await(text string) {
	s.t.Helper()
	lab.Eventually(s.t, upPatience, "hear "+text, func() error {
		select {
		case <-s.process.Done():
			s.t.Fatalf("it ended before it said %q:\n%s", text, s.said())
		default:
		}
		if !strings.Contains(s.said(), text) {
			return fmt.Errorf("so far it said:\n%s", s.said())
		}
		return nil
	})
}

// stopped waits until it has ended.
func (s *site) stopped() {
	s.t.Helper()
	select {
	case <-s.process.Done():
	case <-time.After(upPatience):
		s.t.Fatalf("it does not end:\n%s", s.said())
	}
}

// ask runs another command of the tool on the same folder.
func (s *site) ask(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), shared.Program(tool), args...)
	cmd.Env = append(os.Environ(), "METALBUS_DATA="+s.data)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("metalbus %s: %v:\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// hosts are the hosts as Kubernetes shows them, by name.
func (s *site) hosts() map[string]v1alpha1.BareMetalHost {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.data, "kube", "kubeconfig"))
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: lab.Scheme()})
	if err != nil {
		s.t.Fatal(err)
	}
	var list v1alpha1.BareMetalHostList
	if err := c.List(s.t.Context(), &list); err != nil {
		s.t.Fatal(err)
	}
	all := map[string]v1alpha1.BareMetalHost{}
	for _, h := range list.Items {
		all[h.Name] = h
	}
	return all
}

// machines is what was done to the simulated machines, by host: the commands
// that their BMCs were given, and how often they booted.
func (s *site) machines() map[string][]string {
	s.t.Helper()
	var running struct{ Simulator, Kubeconfig string }
	text, err := os.ReadFile(filepath.Join(s.data, "running.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(text, &running); err != nil {
		s.t.Fatal(err)
	}
	var views []bmcsim.View
	s.get(running.Simulator+"/sim/hosts", &views)
	done := map[string][]string{}
	for _, v := range views {
		var commands []bmcsim.Command
		s.get(running.Simulator+"/sim/hosts/"+v.Name+"/commands", &commands)
		done[v.Name] = []string{fmt.Sprintf("%s, runs %s, %d boots", v.Power, v.Running.Kind, v.Boots)}
		for _, c := range commands {
			done[v.Name] = append(done[v.Name], fmt.Sprint(c.Time, c.Action, c.Args, c.Status))
		}
	}
	return done
}

func (s *site) get(url string, into any) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		s.t.Fatal(err)
	}
}

// provisioned fails the test unless all hosts are, and there are so many.
func (s *site) provisioned(want int) {
	s.t.Helper()
	hosts := s.hosts()
	for name, h := range hosts {
		if h.Status.Provisioning.State != v1alpha1.StateProvisioned || !h.Status.PoweredOn {
			s.t.Errorf("host %s is %q, on: %t", name, h.Status.Provisioning.State, h.Status.PoweredOn)
		}
	}
	if len(hosts) != want {
		s.t.Errorf("%d hosts, want %d", len(hosts), want)
	}
}

func TestAnInstallationGoesOnWhereItEnded(t *testing.T) {
	s := newSite(t)
	s.up("--hosts", fmt.Sprint(upHosts), "--image", image)
	s.await("Ready after")
	s.provisioned(upHosts)
	before := s.machines()
	for name, done := range before {
		if !strings.Contains(done[0], "runs live-iso, 1 boots") {
			t.Errorf("machine of %s: %s", name, strings.Join(done, "\n"))
		}
	}
	s.looked()

	s.process.Stop(t) // as Ctrl-C does
	if code := s.process.ExitCode(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, s.said())
	}
	for _, text := range []string{"services stopped", "bus stopped", "Kubernetes API stopped", "simulator stopped"} {
		if !strings.Contains(s.said(), text) {
			t.Errorf("it did not say %q:\n%s", text, s.said())
		}
	}

	s.up()
	s.await("Ready after")
	s.provisioned(upHosts)
	if diff := cmp.Diff(before, s.machines()); diff != "" {
		t.Errorf("machines were touched by a restart:\n%s", diff)
	}
	s.killed(before)
}

// looked tries what the tool shows while an installation runs.
func (s *site) looked() {
	s.t.Helper()
	var lines []struct{ Name, State string }
	if err := json.Unmarshal([]byte(s.ask("host", "list", "-o", "json")), &lines); err != nil {
		s.t.Fatal(err)
	}
	for _, l := range lines {
		if l.State != string(v1alpha1.StateProvisioned) {
			s.t.Errorf("host list: %s is %s", l.Name, l.State)
		}
	}
	if len(lines) != upHosts {
		s.t.Errorf("host list: %d hosts", len(lines))
	}
	for _, want := range []string{"shows provisioned, OK, as the bus has it", "intent.created", "provisioning.deploy.succeeded"} {
		if page := s.ask("host", "show", "default/sim-1"); !strings.Contains(page, want) {
			s.t.Errorf("host show: no %q in\n%s", want, page)
		}
	}
	if n := strings.Count(s.ask("events", "--type", "provisioning.deploy.succeeded"), "\n"); n != upHosts {
		s.t.Errorf("events: %d deployments, want %d", n, upHosts)
	}
	if audit := s.ask("bus", "audit"); !strings.Contains(audit, "0 findings") {
		s.t.Errorf("bus audit: %s", audit)
	}
}

// killed kills it without a warning, and runs it again with one host more.
func (s *site) killed(before map[string][]string) {
	s.t.Helper()
	api := s.apiAddress()
	s.process.Kill()
	lab.Eventually(s.t, upPatience, "see the Kubernetes API end with its parent", func() error {
		if c, err := net.Dial("tcp", api); err == nil {
			_ = c.Close()
			return fmt.Errorf("%s still answers", api)
		}
		return nil
	})
	s.up("--hosts", fmt.Sprint(upHosts+1), "--image", image)
	s.await("Ready after")
	s.provisioned(upHosts + 1)
	after := s.machines()
	delete(after, fmt.Sprintf("sim-%d", upHosts+1))
	if diff := cmp.Diff(before, after); diff != "" {
		s.t.Errorf("machines were touched by a kill:\n%s", diff)
	}
	if err := syscall.Kill(s.process.PID(), syscall.SIGINT); err != nil {
		s.t.Fatal(err)
	}
	s.stopped()
}

func TestDemo(t *testing.T) {
	data := filepath.Join(t.TempDir(), "demo")
	run := func(args ...string) (said string, code int) {
		p := shared.Start(t, tool, nil, append([]string{"demo", "--data", data, "--hosts", "3", "--delay", "0.1"}, args...)...)
		s := &site{t: t, process: p}
		s.stopped()
		return s.said(), p.ExitCode()
	}
	said, code := run()
	if code != 0 {
		t.Fatalf("exit code %d:\n%s", code, said)
	}
	for _, want := range []string{"all 3 hosts are provisioned", "P99", "requests to its BMC", "The time line of default/sim-", "up --data " + data} {
		if !strings.Contains(said, want) {
			t.Errorf("it did not say %q:\n%s", want, said)
		}
	}
	said, code = run("--limit", "1ms") // begins anew, and cannot make it
	if code != 1 || !strings.Contains(said, "are not as asked within 1ms") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
}

func (s *site) apiAddress() string {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.data, "kube", "kubeconfig"))
	if err != nil {
		s.t.Fatal(err)
	}
	u, err := url.Parse(config.Host)
	if err != nil {
		s.t.Fatal(err)
	}
	return u.Host
}
