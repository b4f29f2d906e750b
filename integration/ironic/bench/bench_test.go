// Package bench_test measures what a fleet of hosts on an Ironic costs: the time, the
// processor, and the requests to Ironic and to the Kubernetes API, of each part of
// its life and at rest. Ironic is the fake one, which has no limit of its own.
package bench_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/integration/internal/plant"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

var (
	shared lab.Lab
	hosts  = flag.Int("hosts", 1000, "how many hosts there are")
	quiet  = flag.Duration("rest", 2*time.Minute, "how long the fleet is watched at rest")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(shared.Run(m))
}

// delays are those of the machines and their Ironic: short, so that what is measured
// is what is between them.
func delays() ironictest.Delays {
	return ironictest.Delays{
		BMC: 20 * time.Millisecond, Power: 500 * time.Millisecond, Boot: 3 * time.Second, Inspect: time.Second, Step: 2 * time.Second, Write: 5 * time.Second,
		PowerSync: time.Minute, Spread: 0.25,
	}
}

const (
	// patience is how long a phase may take.
	patience = 30 * time.Minute
	image    = "http://images.test/disk.raw"
)

// fleet is the hosts and what they run on.
type fleet struct {
	*testing.B
	site      *site
	namespace string
	hosts     *plant.Hosts // by a watch: a list of all each second would be a load of its own
}

// BenchmarkFleet is one run, whatever b.N says: it takes its time as it is.
func BenchmarkFleet(b *testing.B) {
	f := &fleet{B: b, site: newSite(b)}
	f.namespace = f.site.kube.Namespace(b)
	f.hosts = plant.Follow(b, f.site.kube, f.namespace)
	f.phase("available", func() { f.create(); f.await(v1alpha1.StateAvailable) })
	f.phase("provisioned", func() {
		f.edit(func(h *v1alpha1.BareMetalHost) {
			h.Spec.Image = &v1alpha1.Image{URL: image, Checksum: strings.Repeat("0", 64), ChecksumType: v1alpha1.SHA256}
		})
		f.await(v1alpha1.StateProvisioned)
	})
	f.phase("settled", f.settle)
	f.phase("at rest", func() { f.pass(*quiet) })
	f.phase("deprovisioned", func() {
		f.edit(func(h *v1alpha1.BareMetalHost) { h.Spec.Image = nil })
		f.await(v1alpha1.StateAvailable)
	})
	f.phase("deleted", f.remove)
	for name, n := range f.site.ironic.Nodes() {
		b.Errorf("%d nodes are left, %s", n, name)
	}
}

// phase measures a part of the fleet's life.
func (f *fleet) phase(name string, live func()) {
	f.Helper()
	before := f.site.measure(f.B)
	live()
	cost := f.site.measure(f.B).since(before)
	unit := strings.ReplaceAll(name, " ", "-")
	n := float64(*hosts)
	f.ReportMetric(cost.wall.Seconds(), unit+"-s")
	f.ReportMetric(float64(cost.ironic)/n, unit+"-ironic/host")
	f.ReportMetric(float64(cost.api)/n, unit+"-api/host")
	fmt.Printf("%s: %s\n", name, cost) // the log of a benchmark is cut short
}

func (f *fleet) create() {
	f.Helper()
	f.each(func(i int) error {
		m, err := f.site.ironic.Rack().Add(ironictest.Spec{SystemID: "/redfish/v1/Systems/1"})
		if err != nil {
			return err
		}
		s := m.Spec()
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name(i)},
			StringData: map[string]string{"username": s.Username, "password": s.Password},
		}
		if err := f.site.user.Create(f.Context(), secret); err != nil {
			return err
		}
		return f.site.user.Create(f.Context(), &v1alpha1.BareMetalHost{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name(i)},
			Spec: v1alpha1.BareMetalHostSpec{
				Online: true, BootMACAddress: s.MACs[0],
				BMC: v1alpha1.BMCDetails{Address: "redfish-virtualmedia+" + s.Address + s.SystemID, CredentialsName: name(i)},
			},
		})
	})
}

func name(i int) string { return fmt.Sprintf("host-%d", i) }

// edit changes the image of all hosts, whatever they have.
func (f *fleet) edit(change func(*v1alpha1.BareMetalHost)) {
	f.Helper()
	f.each(func(i int) error {
		var h v1alpha1.BareMetalHost
		h.Namespace, h.Name = f.namespace, name(i)
		old := h.DeepCopy()
		old.Spec.Image = &v1alpha1.Image{} // so that the patch says something of it
		change(&h)
		return f.site.user.Patch(f.Context(), &h, client.MergeFrom(old))
	})
}

func (f *fleet) remove() {
	f.Helper()
	f.each(func(i int) error {
		return f.site.user.Delete(f.Context(), &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name(i)}})
	})
	f.watch("be gone", func(left map[v1alpha1.ProvisioningState]int) bool { return len(left) == 0 })
}

// each does something for every host, several at a time.
func (f *fleet) each(do func(i int) error) {
	f.Helper()
	const atOnce = 16
	errs := make(chan error, atOnce)
	for w := range atOnce {
		go func() {
			for i := w; i < *hosts; i += atOnce {
				if err := do(i); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range atOnce {
		if err := <-errs; err != nil {
			f.Fatal(err)
		}
	}
}

// await waits until all hosts are in a state.
func (f *fleet) await(state v1alpha1.ProvisioningState) {
	f.Helper()
	f.watch("be "+string(state), func(count map[v1alpha1.ProvisioningState]int) bool { return count[state] == *hosts })
}

// watch looks at all hosts each second, until they are as they should be.
func (f *fleet) watch(what string, are func(map[v1alpha1.ProvisioningState]int) bool) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), patience)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		count := f.hosts.Count()
		if are(count) {
			return
		}
		select {
		case <-ctx.Done():
			f.Fatalf("the hosts did not %s in %s: %v; their nodes are %v", what, patience, count, f.site.ironic.Nodes())
		case <-tick.C:
			if text := f.site.ended(); text != "" {
				f.Fatal(text)
			}
		}
	}
}

// settle waits until all machines are on and nothing has been written to Kubernetes
// for a while, but for leases: Kubernetes Events are made some time after what they
// tell of.
func (f *fleet) settle() {
	f.Helper()
	const still = 15 * time.Second
	deadline := time.Now().Add(patience)
	for before := -1; ; {
		now := f.site.written(f.B)
		if now == before {
			return
		}
		if time.Now().After(deadline) {
			f.Fatalf("it is still written to Kubernetes after %s", patience)
		}
		before = now
		f.pass(still)
	}
}

func (f *fleet) pass(d time.Duration) {
	f.Helper()
	select {
	case <-f.Context().Done():
		f.Fatal(f.Context().Err())
	case <-time.After(d):
	}
}
