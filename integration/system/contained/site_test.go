package contained_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/containers"
	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/integration/internal/plant"
	"github.com/metalbus/metalbus/integration/internal/programs"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

const (
	namespace = "default"
	cluster   = "site"
	// kubePort is where the API listens in its container.
	kubePort = "6443"
	// rackPort is where the BMCs answer, and the images are.
	rackPort = "8000"
	// patience is for whatever a container needs to be ready.
	patience = 3 * time.Minute
)

// docker is this run's session; its images are those of everything that a site has.
var docker = containers.Session{Programs: append([]string{programs.NATSServer, programs.Kubeapi, "metalbus"}, plant.Services()...)}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // or the Kubernetes client complains that there is none
	os.Exit(docker.Run(m))
}

// A site is an installation of which every part is a container.
type site struct {
	inside *containers.Network
	nats   *containers.Cluster
	kube   client.Client
	rack   string // URL, on the test's machine
	// services are by name.
	services map[string]*containers.Container
}

// newSite runs everything with so many machines, which are not declared yet.
func newSite(t *testing.T, machines int) *site {
	t.Helper()
	s := &site{inside: docker.Network(t), services: map[string]*containers.Container{}}
	s.nats = docker.StartCluster(t, s.inside)
	initialized := s.run(t, "metalbus", "bus-init", testcontainers.WithCmd("bus", "init", "--replicas=3"),
		testcontainers.WithWaitStrategyAndDeadline(patience, wait.ForExit().WithExitTimeout(patience)))
	if state, err := initialized.State(t.Context()); err != nil || state.ExitCode != 0 {
		t.Fatalf("metalbus bus init ended with %+v (%v)", state, err)
	}
	kube := s.startKube(t)
	s.startRack(t, machines)
	for _, name := range plant.Services() {
		s.services[name] = s.run(t, name, name, volumesOf(kube))
	}
	return s
}

// run runs a program of ours inside, under its name.
func (s *site) run(t *testing.T, program, name string, options ...testcontainers.ContainerCustomizer) *containers.Container {
	t.Helper()
	env := testcontainers.WithEnv(map[string]string{
		"NATS_URL": s.nats.InsideURLs, "CLUSTER": cluster, "KUBECONFIG": "/data/kubeconfig", "WATCH_NAMESPACE": namespace,
		"POD_NAME": name, "STATE_DIR": "/tmp",
	})
	return docker.Start(t, program, name, map[*containers.Network]string{s.inside: name}, append([]testcontainers.ContainerCustomizer{env}, options...)...)
}

// startKube runs the API, with its state and the kubeconfig in a volume.
func (s *site) startKube(t *testing.T) *containers.Container {
	t.Helper()
	root, err := programs.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	port := lab.FreePort(t)
	kube := s.run(t, programs.Kubeapi, "kube", containers.Publish(kubePort+"/tcp", port),
		mounted(mount.Mount{Type: mount.TypeVolume, Target: "/data"}),
		mounted(mount.Mount{Type: mount.TypeBind, Source: filepath.Join(root, "deploy", "crds"), Target: "/crds", ReadOnly: true}),
		testcontainers.WithCmd("-dir=/data", "-bind=0.0.0.0", "-host=kube", "-port="+kubePort, "-apply=/crds"),
		testcontainers.WithWaitStrategyAndDeadline(patience, wait.ForLog("ready KUBECONFIG=")))
	s.kube = connect(t, kube, port)
	return kube
}

// connect makes a client for the test's machine, from the API's own kubeconfig.
func connect(t *testing.T, kube *containers.Container, port int) client.Client {
	t.Helper()
	file, err := kube.CopyFileFromContainer(t.Context(), "/data/kubeconfig.local")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	config.Host = fmt.Sprintf("https://127.0.0.1:%d", port)
	c, err := client.New(config, client.Options{Scheme: lab.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// startRack runs the machines.
func (s *site) startRack(t *testing.T, machines int) {
	t.Helper()
	port := lab.FreePort(t)
	s.run(t, "metalbus", "rack", containers.Publish(rackPort+"/tcp", port),
		testcontainers.WithCmd("sim", fmt.Sprintf("--hosts=%d", machines), "--listen=rack:"+rackPort, "--delay=0.2"),
		testcontainers.WithWaitStrategyAndDeadline(patience, wait.ForHTTP("/redfish/v1").WithPort(rackPort+"/tcp")))
	s.rack = fmt.Sprintf("http://127.0.0.1:%d", port)
}

// mounted adds a mount.
func mounted(m mount.Mount) testcontainers.CustomizeRequestOption {
	return testcontainers.WithHostConfigModifier(func(h *container.HostConfig) { h.Mounts = append(h.Mounts, m) })
}

// volumesOf shows another container's volumes, to read.
func volumesOf(c *containers.Container) testcontainers.CustomizeRequestOption {
	return testcontainers.WithHostConfigModifier(func(h *container.HostConfig) { h.VolumesFrom = []string{c.GetContainerID() + ":ro"} })
}

// ask reads a page of the rack.
func (s *site) ask(t *testing.T, path string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.rack+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v\n%s", path, answer.Status, err, text)
	}
	return text
}

// commands are what a machine's BMC was told to do.
func (s *site) commands(t *testing.T, name string) (list []bmcsim.Command) {
	t.Helper()
	if err := json.Unmarshal(s.ask(t, "/sim/hosts/"+name+"/commands"), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// manifests are the objects that belong to the machines, in order: for each its
// Secret and its host.
func (s *site) manifests(t *testing.T) (list []*unstructured.Unstructured) {
	t.Helper()
	text := s.ask(t, "/sim/manifests?namespace="+namespace+"&image=http://rack:"+rackPort+"/images/live.iso")
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
	for {
		o := &unstructured.Unstructured{}
		err := d.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, o)
	}
}

// declare makes objects, and names the hosts among them.
func (s *site) declare(t *testing.T, objects []*unstructured.Unstructured) (hosts []string) {
	t.Helper()
	for _, o := range objects {
		if err := s.kube.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if o.GetKind() == "BareMetalHost" {
			hosts = append(hosts, o.GetName())
		}
	}
	return hosts
}

// await waits until so many of the hosts show a state.
func (s *site) await(t *testing.T, n int, hosts []string, state v1alpha1.ProvisioningState) {
	t.Helper()
	lab.Eventually(t, plant.Patience, fmt.Sprintf("have %d of %d hosts %s", n, len(hosts), state), func() error {
		var list v1alpha1.BareMetalHostList
		if err := s.kube.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		states := map[string]v1alpha1.ProvisioningState{}
		for _, h := range list.Items {
			states[h.Name] = h.Status.Provisioning.State
		}
		reached, counts := 0, map[v1alpha1.ProvisioningState]int{}
		for _, name := range hosts {
			counts[states[name]]++
			if states[name] == state {
				reached++
			}
		}
		if reached < n {
			return fmt.Errorf("they are %v", counts)
		}
		return nil
	})
}
