package stories_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/backend/redfish"
	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bmc/bmctest"
)

// redfishLab has simulated machines, which their BMCs are asked about over HTTP.
type redfishLab struct {
	sim  *bmcsim.Sim
	pool *bmc.Pool
	back *redfish.Backend
}

func newRedfishLab(t *testing.T, s surroundings) lab {
	t.Helper()
	// A system hears a shutdown once it runs: a machine boots faster than a story goes on.
	const phase, boot = 15 * time.Millisecond, time.Millisecond
	sim := bmctest.Rack(t, bmcsim.Config{
		Seed: "stories", Profiles: []string{bmcsim.Profiles()[0]},
		Delays: bmcsim.Delays{PowerOn: phase, PowerOff: phase, Shutdown: phase, SelfTest: boot, Boot: boot, Task: phase},
	})
	l := &redfishLab{sim: sim, pool: bmctest.Pool(t, bmc.Config{FirstPause: 10 * time.Millisecond, LongestPause: 50 * time.Millisecond})}
	limits := redfish.Limits{Power: time.Second, SoftOff: 300 * time.Millisecond, Boot: 5 * time.Second}
	l.back = redfish.New(l.pool, s.secrets, limits, s.now)
	return l
}

func (l *redfishLab) backend() backend.Backend { return l.back }

// machine makes one with a BMC at an address of its own.
func (l *redfishLab) machine(t *testing.T, name string) machine {
	t.Helper()
	host, err := l.sim.Add(bmcsim.HostSpec{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return &redfishMachine{t: t, lab: l, host: host, url: bmctest.ServeAlone(t, host), ours: map[int]bool{}}
}

type redfishMachine struct {
	t    *testing.T
	lab  *redfishLab
	host *bmcsim.Host
	url  string
	ours map[int]bool // commands that the story itself gave
}

func (m *redfishMachine) login() (address, user, password string) {
	user, password = m.host.Credentials()
	return "redfish-virtualmedia+" + m.url + m.host.OwnSystemPath(), user, password
}

func (*redfishMachine) born(string) {}

func (m *redfishMachine) fault(words []string) (heal func(), err error) {
	f := m.host.Faults()
	was := f
	switch words[0] {
	case "down":
		f.Down = true
	case "deaf":
		f.IgnoreShutdown = true
	case "blunt":
		f.RefuseShutdown = true
	case "no-power":
		f.RefusePower = true
	case "no-media":
		f.RefuseMedia = true
	case "power":
		m.press(words[1] == "on")
		return func() {}, nil
	case "lost", "cannot": // it keeps no records that could be lost, and cannot do it anyway
		return func() {}, nil
	default:
		return nil, unknownFault(words)
	}
	m.host.SetFaults(f)
	return func() { m.host.SetFaults(was) }, nil
}

// press switches the machine behind everybody's back.
func (m *redfishMachine) press(on bool) {
	before := len(m.host.Commands())
	action, want := bmc.TurnOff, "Off"
	if on {
		action, want = bmc.TurnOn, "On"
	}
	b := bmctest.Open(m.t, m.lab.pool, bmctest.TargetAlone(m.url, m.host))
	if err := b.SetPower(m.t.Context(), action); err != nil {
		m.t.Fatal(err)
	}
	for i := before; i < len(m.host.Commands()); i++ {
		m.ours[i] = true
	}
	await(m.t, "the machine to be "+want, func() bool { return m.host.View().Power == want })
}

// acts are the commands that the BMC took, but for sessions.
func (m *redfishMachine) acts() []string {
	var list []string
	for i, c := range m.host.Commands() {
		if m.ours[i] || c.Status >= 400 || strings.Contains(c.Path, "/Sessions") {
			continue
		}
		words := []string{c.Action}
		for _, k := range slices.Sorted(maps.Keys(c.Args)) {
			words = append(words, k+"="+c.Args[k])
		}
		list = append(list, strings.Join(words, " "))
	}
	return list
}

func (m *redfishMachine) look() string {
	var v bmcsim.View
	await(m.t, "the machine to have booted", func() bool {
		v = m.host.View()
		return v.Running.Kind != bmcsim.RunsTest && v.Running.Kind != bmcsim.RunsBooting && (v.Power == "On" || v.Power == "Off")
	})
	media := "no media"
	for _, image := range v.Media {
		media = "media " + image
	}
	look := fmt.Sprintf("%s, running %s, %s, booted %d times", strings.ToLower(v.Power), v.Running.Kind, media, v.Boots)
	return look + eventsTo(m.host.Subscriptions())
}

// breathers tell how often a BMC was asked in vain already, which is a matter of time.
var breathers = regexp.MustCompile(` \(\d+ times in a row; not tried again for [^)]*\)`)

func (m *redfishMachine) tidy(text string) string {
	_, password := m.host.Credentials()
	text = breathers.ReplaceAllString(text, "")
	return strings.NewReplacer(m.url+m.host.OwnSystemPath(), "BMC", m.url, "BMC", strings.TrimPrefix(m.url, "http://"), "BMC", password, "PASSWORD").Replace(text)
}
