package system_test

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/integration/internal/plant"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

// fewHosts are enough to have some in every stage at once.
const fewHosts = 40

// fleetSize is how many hosts go through their whole lives; METALBUS_FLEET sets it.
func fleetSize(t *testing.T) int {
	t.Helper()
	text, ok := os.LookupEnv("METALBUS_FLEET")
	if !ok {
		return fewHosts
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 10 {
		t.Fatalf("METALBUS_FLEET=%q: want a number of hosts, 10 at least", text)
	}
	return n
}

// Every service runs twice. While hosts are on their way to provisioned, and
// again on their way out, one replica of each is killed. Each write to a
// machine is made once all the same, also where its answer was lost with who
// asked: whoever takes over lets the claim rest and looks at the machine
// first. And the log has no gap.
func TestReplicasDieInTheMiddle(t *testing.T) {
	p := newPlant(t)
	p.Start(t, 2)
	n := fleetSize(t)
	names, machines := declareAll(t, p, n)

	p.AwaitSome(t, n/4, names, "in use", plant.InUse)
	p.KillOneOfEach(t)
	p.AwaitAll(t, names, "in use", plant.InUse)
	for _, m := range machines {
		ranImageOnce(t, m)
	}

	p.Start(t, 1)
	p.Delete(t, names...)
	p.AwaitSome(t, n/4, names, "gone", plant.Gone)
	p.KillOneOfEach(t)
	p.AwaitAll(t, names, "gone", plant.Gone)
	for _, m := range machines {
		leftOnce(t, m)
	}
	p.Audit(t, n)
}

// declareAll declares hosts with an image.
func declareAll(t *testing.T, p *plant.Plant, n int) (names []string, machines []*bmcsim.Host) {
	t.Helper()
	for range n {
		h, m := p.Declare(t, plant.WithImage)
		names, machines = append(names, h.Name), append(machines, m)
	}
	return names, machines
}

// onceInUse is what it takes to bring a machine into use.
func onceInUse() []string { return []string{"InsertMedia", "SetBoot Cd", "Reset On"} }

// ranImageOnce wants a machine that has come into use with not one write too many.
func ranImageOnce(t *testing.T, m *bmcsim.Host) {
	t.Helper()
	if diff := cmp.Diff(onceInUse(), plant.Did(m)); diff != "" {
		t.Errorf("what was done to %s until it was in use (-want +got):\n%s", m.Name(), diff)
	}
	if v := m.View(); v.Power != "On" || v.Running.Image != plant.LiveISO || v.Boots != 1 {
		t.Errorf("%s is %s, runs %q and booted %d times", m.Name(), v.Power, v.Running.Image, v.Boots)
	}
}

// leftOnce wants a machine that was in use, and was let go of with not one write
// too many.
func leftOnce(t *testing.T, m *bmcsim.Host) {
	t.Helper()
	did := plant.Did(m)
	out := did[min(len(onceInUse()), len(did)):]
	slices.Sort(out)
	if diff := cmp.Diff([]string{"EjectMedia", "Reset ForceOff"}, out); diff != "" {
		t.Errorf("what was done to %s until it was gone (-want +got):\n%s", m.Name(), diff)
	}
}
