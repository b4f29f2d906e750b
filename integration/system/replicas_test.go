package system_test

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

// fleet is how many hosts go through their whole lives; METALBUS_FLEET sets it.
func fleet(t *testing.T) int {
	t.Helper()
	text, ok := os.LookupEnv("METALBUS_FLEET") //nolint:forbidigo // a test has no other settings
	if !ok {
		return 200
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 10 {
		t.Fatalf("METALBUS_FLEET=%q: want a number of hosts, 10 at least", text)
	}
	return n
}

// Every service runs twice. While hosts are on their way to provisioned, and
// again on their way out, one replica of each is killed. Each write to a
// machine happens once all the same, and the log has no gap.
func TestReplicasDieInTheMiddle(t *testing.T) {
	p := newPlant(t, shared.Kube(t))
	p.start(t, 2)
	n := fleet(t)
	machines := map[string]*bmcsim.Host{}
	var names []string
	for range n {
		h, m := p.declare(t, provision)
		machines[h.Name] = m
		names = append(names, h.Name)
	}

	p.await(t, names[n/4], "provisioned", state(v1alpha1.StateProvisioned))
	p.killOne(t)
	for _, name := range names {
		p.await(t, name, "provisioned and on", func(h *v1alpha1.BareMetalHost) bool {
			return state(v1alpha1.StateProvisioned)(h) && h.Status.PoweredOn
		})
	}
	for name, m := range machines {
		want := []string{"InsertMedia", "SetBoot Cd", "Reset On"}
		if diff := cmp.Diff(want, did(m)); diff != "" {
			t.Errorf("what was done to %s until it was provisioned (-want +got):\n%s", name, diff)
		}
		if v := m.View(); v.Power != "On" || v.Running.Image != liveISO || v.Boots != 1 {
			t.Errorf("%s is %s, runs %q and booted %d times", name, v.Power, v.Running.Image, v.Boots)
		}
	}

	for _, s := range services() {
		p.startOne(t, s)
	}
	p.delete(t, names...)
	p.gone(t, names[n/4])
	p.killOne(t)
	p.gone(t, names...)
	for name, m := range machines {
		out := did(m)[3:]
		slices.Sort(out)
		if diff := cmp.Diff([]string{"EjectMedia", "Reset ForceOff", "SetBoot None"}, out); diff != "" {
			t.Errorf("what was done to %s until it was gone (-want +got):\n%s", name, diff)
		}
	}
	p.audit(t, n)
}

// killOne kills one replica of each service.
func (p *plant) killOne(t *testing.T) {
	t.Helper()
	for _, s := range services() {
		i := slices.IndexFunc(p.replicas[s], alive)
		if i < 0 {
			t.Fatalf("no replica of %s is left", s)
		}
		p.replicas[s][i].Kill()
	}
}

func alive(r *lab.Process) bool {
	select {
	case <-r.Done():
		return false
	default:
		return true
	}
}

func (p *plant) delete(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		h, err := p.get(t, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.kube.Client.Delete(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
}
