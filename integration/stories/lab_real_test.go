package stories_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/integration/internal/containers"
	"github.com/metalbus/metalbus/integration/ironic/rack"
	"github.com/metalbus/metalbus/integration/ironic/rig"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/backend/ironic"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	client "github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
)

var (
	// docker is for the real Ironic; the other labs need no containers.
	docker containers.Session
	onReal = flag.String("real", "^(F106_data_images|L70|S01)_", "which of the stories for a real Ironic are told there, by a pattern of their names; . for all")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(docker.RunBeside(m))
}

// Those stories that say so are told on a real Ironic too: a few of them each time,
// as each of its steps takes seconds. One that loses Ironic's database is told when
// the others are over, as it loses all of it.
func TestOnARealIronic(t *testing.T) {
	docker.Need(t)
	wanted, err := regexp.Compile(*onReal)
	if err != nil {
		t.Fatal(err)
	}
	var together, alone []story
	for _, s := range stories(t) {
		switch {
		case !s.services || !slices.Contains(slices.Concat(s.backends, s.also), realIronic) || !wanted.MatchString(s.name):
		case slices.Contains(s.lines, "fault lost"):
			alone = append(alone, s)
		default:
			together = append(together, s)
		}
	}
	if len(together)+len(alone) == 0 {
		t.Fatalf("-real=%s: no story for a real Ironic has such a name", *onReal)
	}
	h := openTheatre(t, false, func(t *testing.T, s surroundings) lab {
		t.Helper()
		return newRealLab(t, s, len(together)+len(alone), together, alone)
	})
	one := func(t *testing.T, st story) {
		t.Helper()
		s := h.stage(t, lower(st.name))
		tell(t, s, st)
		if slices.Contains(st.backends, realIronic) {
			st.compare(t, realIronic, transcript(s))
		}
	}
	t.Run("together", func(t *testing.T) {
		for _, st := range together {
			t.Run(st.name, func(t *testing.T) {
				t.Parallel()
				one(t, st)
			})
		}
	})
	for _, st := range alone {
		t.Run(st.name, func(t *testing.T) { one(t, st) })
	}
}

// realLab is a real Ironic in a container, with simulated machines in another one.
type realLab struct {
	ironicLab
	rig  *rig.Rig
	free []rack.State
	back *ironic.Backend
}

func newRealLab(t *testing.T, s surroundings, hosts int, told ...[]story) lab {
	t.Helper()
	l := &realLab{ironicLab: ironicLab{t: t, around: s}, rig: rig.Start(t, &docker, rig.Config{Release: ironictest.Ironic39, Hosts: hosts})}
	for _, name := range images(slices.Concat(told...)) {
		if err := l.rig.Rack.Upload(t.Context(), name, []byte(strings.Repeat("a live image "+name+"\n", 1000))); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if l.free, err = l.rig.Rack.Machines(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{Name: ironic.Name, Endpoint: l.rig.URL}, s.now, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	set := ironic.DefaultSettings()
	set.Ramdisk.ISO, set.RestAge, set.SoftPowerOff = l.rig.Files()+"/agent.iso", time.Second, 20*time.Second
	if l.back, err = ironic.New(c, set, ironic.Beside{Secrets: l.around.secrets, Now: s.now}); err != nil {
		t.Fatal(err)
	}
	return l
}

// images are the live images and firmware that stories ask for. The disk images are
// there.
func images(all []story) []string {
	var list []string
	for _, s := range all {
		for _, m := range regexp.MustCompile(regexp.QuoteMeta(shelf)+`/([a-z0-9.-]+\.(?:iso|bin))`).FindAllStringSubmatch(strings.Join(s.lines, "\n"), -1) {
			list = append(list, m[1])
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (l *realLab) backend() backend.Backend { return l.back }

// pace: each of a real Ironic's steps takes seconds, and it is not to be hurried.
func (*realLab) pace() pace {
	return pace{watch: 2 * time.Second, poll: 200 * time.Millisecond, patience: 8 * time.Minute}
}

func (l *realLab) machine(t *testing.T, _ string) machine {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) == 0 {
		t.Fatal("the rack is used up")
	}
	m := l.free[0]
	l.free = l.free[1:]
	return &realMachine{t: t, lab: l, is: m}
}

// realMachine is a simulated machine that a real Ironic has.
type realMachine struct {
	t   *testing.T
	lab *realLab
	is  rack.State // as it was at first
}

func (m *realMachine) login() (address, user, password string) {
	return "redfish-virtualmedia+" + m.lab.rig.BMC + m.is.SystemPath, m.is.Username, m.is.Password
}

func (m *realMachine) shelf() string { return m.lab.rig.Files() }

func (m *realMachine) mac() string { return m.is.MACs[0] }

func (*realMachine) born(string) {}

func (m *realMachine) fault(words []string) (heal func(), err error) {
	switch strings.Join(words[:min(len(words), 2)], " ") {
	case "lost":
		m.lab.rig.Lose(m.t)
		return func() {}, nil
	case "power on", "power off":
		press := map[string]string{"on": "On", "off": "ForceOff"}[words[1]]
		m.change(rack.Change{Reset: press})
		return func() {}, nil
	case "down", "fail enroll": // it is a dead BMC that keeps a host from being enrolled
		m.change(rack.Change{BMC: &bmcsim.Faults{Down: true}})
		return func() { m.change(rack.Change{BMC: &bmcsim.Faults{}}) }, nil
	default:
		return nil, unknownFault(words)
	}
}

func (m *realMachine) change(c rack.Change) {
	m.t.Helper()
	if _, err := m.lab.rig.Rack.Change(m.t.Context(), m.is.View.Name, c); err != nil {
		m.t.Fatal(err)
	}
}

// acts are none that are told: what Ironic does on its way is its own affair. What
// has come of it stands in the last line.
func (*realMachine) acts() []string { return nil }

func (m *realMachine) look() string {
	var s rack.State
	await(m.t, "the machine to have booted", func() bool {
		var err error
		if s, err = m.lab.rig.Rack.Machine(context.WithoutCancel(m.t.Context()), m.is.View.Name); err != nil {
			m.t.Fatal(err)
		}
		v := s.View
		return v.Running.Kind != bmcsim.RunsTest && v.Running.Kind != bmcsim.RunsBooting && (v.Power == "On" || v.Power == "Off")
	})
	return fmt.Sprintf("%s, running %s, disk %s, written %d times, erased %d times",
		strings.ToLower(s.View.Power), s.View.Running.Kind, nothing(s.Disk.Image), s.Disk.Writes, s.Disk.Erases)
}

func (m *realMachine) tidy(text string) string {
	text = strings.NewReplacer(m.lab.rig.Files(), shelf, m.lab.rig.BMC+m.is.SystemPath, "BMC", m.lab.rig.BMC, "BMC", m.is.Password, "PASSWORD").Replace(text)
	return nodeID.ReplaceAllString(healthSeen.ReplaceAllString(text, ""), "NODE")
}

// healthSeen is the health of a machine, which Ironic reads when it comes to it.
var healthSeen = regexp.MustCompile(`(?m)^  health\.changed .*\n`)
