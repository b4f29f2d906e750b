// Package system_test runs whole installations: the five services as processes
// of their own, two replicas of each, against a NATS server, a Kubernetes API
// and simulated BMCs.
package system_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bus"
)

var shared lab.Lab

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// patience is how long hosts may take to come where they are asked to, while
// other work goes on.
const patience = 6 * time.Minute

// liveISO is what hosts are asked to boot. Simulated BMCs take it on trust.
const liveISO = "http://images.example/live.iso"

// services in the order in which a host meets them.
func services() []string {
	return []string{"projector", "registrar", "inspector", "provisioner", "powermonitor"}
}

// plant is an installation.
type plant struct {
	kube      *lab.Kube
	nats      *lab.NATS
	cluster   string
	namespace string
	sim       *bmcsim.Sim
	simURL    string
	replicas  map[string][]*lab.Process
}

// newPlant has everything but services: see start.
func newPlant(t *testing.T, kube *lab.Kube) *plant {
	t.Helper()
	p := &plant{kube: kube, nats: shared.StartNATS(t), cluster: "plant", replicas: map[string][]*lab.Process{}}
	p.namespace = kube.Namespace(t)
	p.startSim(t)
	p.run(t, "metalbus", "bus", "init", "--replicas=1")
	return p
}

func (p *plant) startSim(t *testing.T) {
	t.Helper()
	var err error
	if p.sim, err = bmcsim.New(bmcsim.Config{Now: time.Now, Seed: t.Name(), Delays: shortDelays()}); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.simURL = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.sim.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("simulator: %v", err)
		}
		p.sim.Close()
	})
}

// shortDelays still have "accepted" and "done" apart.
func shortDelays() bmcsim.Delays {
	return bmcsim.Delays{
		PowerOn: 100 * time.Millisecond, PowerOff: 100 * time.Millisecond, Shutdown: 100 * time.Millisecond,
		SelfTest: 100 * time.Millisecond, Boot: 100 * time.Millisecond, Task: 100 * time.Millisecond,
	}
}

func (p *plant) env() []string {
	return []string{"NATS_URL=" + p.nats.URL, "CLUSTER=" + p.cluster, "KUBECONFIG=" + p.kube.Kubeconfig, "LOG_LEVEL=DEBUG", "HEALTH_ADDRESS="}
}

// run runs a command of ours to its end.
func (p *plant) run(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(shared.Program(program), args...)
	cmd.Env = append(os.Environ(), p.env()...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// start runs replicas of every service.
func (p *plant) start(t *testing.T, replicas int) {
	t.Helper()
	for _, s := range services() {
		for range replicas {
			p.startOne(t, s)
		}
	}
}

func (p *plant) startOne(t *testing.T, service string) {
	t.Helper()
	env := append(p.env(), "STATE_DIR="+t.TempDir())
	if service == "projector" {
		env = append(env, fmt.Sprintf("POD_NAME=%s-%d", service, len(p.replicas[service])), "WATCH_NAMESPACE="+p.namespace)
	}
	p.replicas[service] = append(p.replicas[service], shared.Start(t, service, env))
}

// stop ends every service.
func (p *plant) stop(t *testing.T) {
	t.Helper()
	for _, list := range p.replicas {
		for _, r := range list {
			r.Stop(t)
		}
	}
	clear(p.replicas)
}

// declare makes a machine, its Secret and its host.
func (p *plant) declare(t *testing.T, change func(*v1alpha1.BareMetalHost, *corev1.Secret)) (*v1alpha1.BareMetalHost, *bmcsim.Host) {
	t.Helper()
	machine, err := p.sim.Add(bmcsim.HostSpec{})
	if err != nil {
		t.Fatal(err)
	}
	user, password := machine.Credentials()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: machine.Name() + "-bmc", Namespace: p.namespace},
		StringData: map[string]string{"username": user, "password": password},
	}
	host := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: machine.Name(), Namespace: p.namespace}}
	host.Spec.Online = true
	host.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish-virtualmedia+" + p.simURL + machine.SystemPath(), CredentialsName: secret.Name}
	if change != nil {
		change(host, secret)
	}
	if secret.Name != "" {
		p.create(t, secret)
	}
	p.create(t, host)
	return host, machine
}

func (p *plant) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := p.kube.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// provision asks for the live ISO.
func provision(h *v1alpha1.BareMetalHost, _ *corev1.Secret) {
	format := v1alpha1.DiskFormatLiveISO
	h.Spec.Image = &v1alpha1.Image{URL: liveISO, DiskFormat: &format}
}

func (p *plant) get(t *testing.T, name string) (*v1alpha1.BareMetalHost, error) {
	t.Helper()
	var h v1alpha1.BareMetalHost
	err := p.kube.Client.Get(t.Context(), client.ObjectKey{Namespace: p.namespace, Name: name}, &h)
	return &h, err
}

// await waits until a host is as it should be, and returns it.
func (p *plant) await(t *testing.T, name, what string, is func(*v1alpha1.BareMetalHost) bool) *v1alpha1.BareMetalHost {
	t.Helper()
	var last *v1alpha1.BareMetalHost
	lab.Eventually(t, patience, name+" to be "+what, func() error {
		h, err := p.get(t, name)
		if err != nil {
			return err
		}
		if last = h; !is(h) {
			return fmt.Errorf("it is %q, %q: %s", h.Status.Provisioning.State, h.Status.OperationalStatus, h.Status.ErrorMessage)
		}
		return nil
	})
	return last
}

func state(s v1alpha1.ProvisioningState) func(*v1alpha1.BareMetalHost) bool {
	return func(h *v1alpha1.BareMetalHost) bool { return h.Status.Provisioning.State == s }
}

// gone waits until hosts have been deleted.
func (p *plant) gone(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		lab.Eventually(t, patience, name+" to be gone", func() error {
			h, err := p.get(t, name)
			switch {
			case apierrors.IsNotFound(err):
				return nil
			case err != nil:
				return err
			default:
				return fmt.Errorf("it is %q: %s", h.Status.Provisioning.State, h.Status.ErrorMessage)
			}
		})
	}
}

// bus is a connection to the plant's bus, as the projector's.
func (p *plant) bus(t *testing.T) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Config{URLs: []string{p.nats.URL}, Cluster: p.cluster, Name: "auditor"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// audit proves that the log of the plant keeps what the bus promises.
func (p *plant) audit(t *testing.T, hosts int) {
	t.Helper()
	report, err := p.bus(t).Audit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if report.Hosts != hosts {
		t.Errorf("the log has %d hosts, want %d", report.Hosts, hosts)
	}
	for _, f := range report.Findings {
		t.Error(f)
	}
}

// logs are the texts of all logs of the plant's services.
func (p *plant) logs(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, list := range p.replicas {
		for _, r := range list {
			text, err := os.ReadFile(r.Log)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			texts[filepath.Base(r.Log)] = string(text)
		}
	}
	return texts
}

// did lists what a BMC was told to do and did, in short.
func did(machine *bmcsim.Host) []string {
	var list []string
	for _, c := range machine.Commands() {
		if c.Status >= 400 || c.Action == "Login" || c.Action == "Logout" {
			continue
		}
		list = append(list, strings.TrimSpace(c.Action+" "+c.Args["ResetType"]+c.Args["Target"]))
	}
	return list
}
