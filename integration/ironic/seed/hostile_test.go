package seed_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/ironic/site"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

var (
	seeds  = flag.Int("seeds", 2, "how many hostile Ironics there are")
	first  = flag.Uint64("seed", 1, "the seed of the first one")
	rounds = flag.Int("rounds", 15, "how often each does something unheard of")
)

// between is how many requests are made of a hostile Ironic before it turns to
// something else.
const between = 30

// Machines in use are never touched by an Ironic that answers at random: errors,
// nothing at all, half answers, old ones, answers that get lost, nodes that are in
// states where they were never brought, and databases that are emptied, again and
// again, while services come and go. When it comes to its senses, so do the hosts.
func TestHostileIronic(t *testing.T) {
	for n := range *seeds {
		seed := *first + uint64(n)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := site.New(t, ironictest.Config{Seed: seed, Delays: delays()})
			f := board(t, s, all(t, s)...)
			x := &hostile{flight: f, dice: rand.New(rand.NewPCG(seed, 2))}
			for range *rounds {
				x.turn()
			}
			s.Ironic.SetChaos(ironictest.Chaos{})
			f.fault(ironictest.Faults{})
			f.lose() // whatever states its nodes were left in
			f.recovered()
			f.untouched()
			t.Logf("it was asked %v", s.Ironic.Counts())
		})
	}
}

// hostile is the mood of an Ironic.
type hostile struct {
	*flight
	dice *rand.Rand
}

// turn is another mood, for some requests.
func (x *hostile) turn() {
	x.Helper()
	i := x.site.Ironic
	share := func() float64 { return x.dice.Float64() / 5 }
	i.SetChaos(ironictest.Chaos{Error: share(), Unavailable: share(), Busy: share(), Empty: share(), Garbage: share(), Drop: share(), Lost: share(), Stale: share()})
	switch x.dice.IntN(6) {
	case 0:
		i.Forget()
	case 1, 2, 3:
		x.confuse()
	case 4:
		x.fault(ironictest.Faults{FailAdopt: down, Down: x.dice.IntN(2) == 0})
	default:
		x.fault(ironictest.Faults{})
	}
	if x.dice.IntN(15) == 0 {
		x.site.Restart()
	}
	seen := x.requests()
	x.hosts[0].Await(x.T, "looked at", func(*v1alpha1.BareMetalHost) bool { return x.requests() >= seen+between })
}

// requests counts what was asked so far.
func (x *hostile) requests() int {
	sum := 0
	for _, n := range x.site.Ironic.Counts() {
		sum += n
	}
	return sum
}

// confuse brings one node to a state that it never came to by itself.
func (x *hostile) confuse() {
	h := x.hosts[x.dice.IntN(len(x.hosts))]
	states := []string{
		"enroll", "verifying", "manageable", "available", "active", "adopting", "adopt failed", "inspecting", "inspect wait", "inspect failed", "cleaning", "clean wait", "clean failed",
		"deploying", "wait call-back", "deploy failed", "deleting", "error", "servicing", "service wait", "service failed", "rescue",
	}
	powers := []string{"power on", "power off", ""}
	st := ironictest.State{Provision: states[x.dice.IntN(len(states))], Power: powers[x.dice.IntN(len(powers))], Maintenance: x.dice.IntN(4) == 0}
	if x.dice.IntN(3) == 0 {
		st.LastError = "Something went wrong"
	}
	_ = x.site.Ironic.Force(site.Namespace+"~"+h.Name, st) // there may be no node just now
}
