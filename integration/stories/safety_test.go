package stories_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// enemy is a course of events that nobody asked for: drawn by a seed, it lets
// the backend of a running machine fail, lie down, lose its records or be asked
// twice, its services begin anew and their clock jump, and its Secret be wrong.
// Of the host itself nobody wants anything else than before.
type enemy struct {
	*script
	play *play
	*rand.Rand
	calls *atomic.Int64
	told  []string
}

// strokes is how many things an enemy does to a host.
const strokes = 30

// strike does something.
func (e *enemy) strike() {
	lines := []string{
		"fault lost",
		"fault power off", "fault power on",
		"fault backend-down", "fault down",
		"secret wrong", "secret right", "secret gone",
		"fault hold " + e.pick("adopt", "enroll", "on"),
		fmt.Sprintf("fault fail %s %s %s %d «no»", e.kind(), e.class(), e.pick("look", "write", ""), 1+e.IntN(3)),
		fmt.Sprintf("fault fail adopt %s %d «no»", e.class(), 1+e.IntN(5)),
		"heal", "heal", "heal", "wake", "wake", "jump", "restart",
	}
	line := lines[e.IntN(len(lines))]
	e.told = append(e.told, line)
	switch line {
	case "heal":
		e.healAll()
	case "wake":
		e.wake()
	case "jump":
		e.play.skew.Store(int64(time.Duration(e.IntN(96)-48) * time.Hour))
	case "restart":
		if e.IntN(4) == 0 { // they take a second each time, and all stories' hosts with them
			e.site.restart()
		}
	default:
		words, err := split(strings.NewReplacer("«", "'", "»", "'").Replace(line))
		if err == nil {
			err = e.do(line, words)
		}
		if err != nil {
			e.Fatalf("%s: %v", line, err)
		}
	}
}

func (e *enemy) pick(from ...string) string { return from[e.IntN(len(from))] }

func (e *enemy) kind() string { return string(event.Kinds()[e.IntN(len(event.Kinds()))]) }

func (e *enemy) class() string {
	return e.pick(string(event.ClassImage), string(event.ClassTimeout), string(event.ClassBackend), string(event.ClassCredentials), string(event.ClassPower))
}

func (e *enemy) healAll() {
	for key := range e.heals {
		if err := e.heal(key); err != nil {
			e.Fatal(err)
		}
	}
}

// wake lets every service look again, as a message does that comes twice.
func (e *enemy) wake() {
	for _, service := range bus.Services() {
		if err := e.play.bus.Wake(e.Context(), service, e.play.uid, "twice"); err != nil {
			e.Fatal(err)
		}
	}
}

// let gives the services the time to do something about it: until the backend was
// asked a few times more, or nobody wants to ask it now.
func (e *enemy) let() {
	before := e.calls.Load()
	for deadline := time.Now().Add(300 * time.Millisecond); e.calls.Load() < before+4 && time.Now().Before(deadline); {
		time.Sleep(2 * time.Millisecond)
	}
}

// asked counts how often a backend is asked.
type asked struct {
	backend.Backend
	calls *atomic.Int64
}

func (b asked) Look(ctx context.Context, k event.Kind, h lifecycle.Host) (lifecycle.Outlook, error) {
	b.calls.Add(1)
	return b.Backend.Look(ctx, k, h)
}

func (b asked) Power(ctx context.Context, h lifecycle.Host) (backend.PowerState, error) {
	b.calls.Add(1)
	return b.Backend.Power(ctx, h)
}

// askedLab is a lab whose backend is counted, or replaced.
type askedLab struct {
	lab
	wrap func(backend.Backend) backend.Backend
}

func (l askedLab) backend() backend.Backend { return l.wrap(l.lab.backend()) }

// harm is what was done to a running machine, or to its host, that nobody asked for.
func harm(before int, past []lifecycle.Host, acts, allowed []string) []string {
	var list []string
	for _, act := range acts[before:] {
		if kind, _, _ := strings.Cut(act, " "); !slices.Contains(allowed, kind) {
			list = append(list, "the machine was told to "+act)
		}
	}
	for _, h := range past {
		if !lifecycle.Used(lifecycle.Stage(h)) {
			list = append(list, fmt.Sprintf("revision %d is %s", h.Rev, describe(h)))
		}
	}
	return list
}

// besiege lets enemies loose on running machines, and says what harm was done, and how
// often a machine's firmware was changed, which the users of some want.
// What is healed in the end must be well again.
func besiege(t *testing.T, seeds []uint64, wrap func(backend.Backend) backend.Backend) (harmed []string, serviced int) {
	t.Helper()
	var calls atomic.Int64
	h := openTheatre(t, false, func(t *testing.T, s surroundings) lab {
		s.now = time.Now // a machine's own clock is nobody's to put forward
		return askedLab{newFixtureLab(t, s), func(b backend.Backend) backend.Backend { return asked{wrap(b), &calls} }}
	})
	for _, seed := range seeds {
		name := fmt.Sprintf("used-%d", seed)
		s := h.stage(t, name)
		e := &enemy{
			script: &script{T: t, site: s, story: story{ar: &txtar.Archive{}}, heals: map[string]func(){}}, play: s.user.(*play),
			Rand: rand.New(rand.NewPCG(seed, 5)), calls: &calls,
		}
		harmed = append(harmed, e.siege(seed%2 == 0, seed > 6)...)
		for _, act := range s.acts() {
			if strings.HasPrefix(act, string(event.Service)+" ") {
				serviced++
			}
		}
	}
	return harmed, serviced
}

// siege is the life of one host under attack.
func (e *enemy) siege(external, firmware bool) []string {
	e.Helper()
	e.password("right")
	args := []string{"spec.image.url=http://192.0.2.80/os.iso", "spec.image.format=live-iso"}
	if external {
		args = []string{"spec.externallyProvisioned=true"}
	}
	if err := e.create(args); err != nil {
		e.Fatal(err)
	}
	e.wait("on settled seen")
	allowed := []string{string(event.Enroll), string(event.Adopt), string(event.PowerOn)}
	if firmware { // its user wants another setting, at its next boot
		allowed = append(allowed, string(event.Service))
		for _, line := range []string{"policy firmwareSettings=onReboot", "settings ProcVirtualization=Disabled"} {
			if words, _ := split(line); e.do(line, words) != nil {
				e.Fatal(line)
			}
		}
		e.wait("in-use")
	}
	from, acts := len(e.site.history())-1, len(e.site.acts())
	for range strokes {
		e.strike()
		e.let()
	}
	e.healAll()
	e.password("right")
	e.play.skew.Store(0)
	e.wake()
	if bad := harm(acts, e.site.history()[from:], e.site.acts(), allowed); len(bad) > 0 {
		return append(bad, "after "+strings.Join(e.told, "; "))
	}
	e.wait("on settled seen opstatus=OK")
	return harm(acts, e.site.history()[from:], e.site.acts(), allowed)
}

func (e *enemy) wait(line string) {
	e.Helper()
	words, _ := split(line)
	if err := e.judge(line, "wait", words); err != nil {
		e.Fatal(err)
	}
}

// A running machine is not touched, whatever goes wrong around it.
func TestRunningMachinesAreSafe(t *testing.T) {
	t.Parallel()
	harmed, serviced := besiege(t, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, func(b backend.Backend) backend.Backend { return b })
	for _, bad := range harmed {
		t.Error(bad)
	}
	if serviced == 0 {
		t.Error("the firmware of no machine was changed under attack")
	}
}

// A backend that takes a machine out of use when it should take it over is noticed.
func TestHarmIsNoticed(t *testing.T) {
	t.Parallel()
	harmed, _ := besiege(t, []uint64{1}, func(b backend.Backend) backend.Backend { return traitor{b} })
	if !slices.Contains(harmed, "the machine was told to undeploy undeploy") {
		t.Errorf("nobody noticed; what was noticed: %q", harmed)
	}
}

type traitor struct{ backend.Backend }

func (b traitor) Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error {
	if w.Kind == event.Adopt {
		w.Kind, w.Name = event.Undeploy, "undeploy"
	}
	return b.Backend.Do(ctx, h, w)
}
