package stories_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/backend/fixture"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// fixtureLab has machines that are pretended.
type fixtureLab struct {
	world  *fixture.World
	around surroundings
}

// How long pretended operations take in a story: by a clock that jumps nothing,
// by a real one next to nothing.
const pretendedTime = 20 * time.Millisecond

func newFixtureLab(_ *testing.T, s surroundings) lab {
	return &fixtureLab{world: fixture.NewWorld(s.now, fixture.Delays{Default: pretendedTime, SoftOff: time.Second}), around: s}
}

func (l *fixtureLab) backend() backend.Backend { return fixture.New(l.world) }

func (l *fixtureLab) machine(_ *testing.T, name string) machine {
	m := &fixtureMachine{lab: l, name: "lab/" + name, secret: "right-" + name}
	wrong := problem(event.Enroll, event.ClassCredentials, "the BMC refuses the user name and password")
	l.world.Inject(fixture.Fault{If: m.refuses, Kind: event.Enroll, At: fixture.AtEnd, Problem: wrong})
	return m
}

type fixtureMachine struct {
	lab               *fixtureLab
	uid, name, secret string
}

func (m *fixtureMachine) login() (address, user, password string) {
	return "redfish://192.0.2.10/redfish/v1/Systems/1", "admin", m.secret
}

func (m *fixtureMachine) born(uid string) { m.uid = uid }

func (m *fixtureMachine) mine(h lifecycle.Host) bool { return h.Name() == m.name }

// refuses reports whether the BMC would refuse the login in the host's Secret.
func (m *fixtureMachine) refuses(h lifecycle.Host) bool {
	return m.mine(h) && m.lab.around.password(h.Intent.Credentials) != m.secret
}

func (m *fixtureMachine) fault(words []string) (heal func(), err error) {
	w := m.lab.world
	switch words[0] {
	case "down":
		return m.down(), nil
	case "unreadable": // its firmware
		return w.Inject(fixture.Fault{If: m.mine, Kind: fixture.ReadFirmware, Err: errors.New("the BMC answers 500")}), nil
	case "backend-down":
		return w.Inject(fixture.Fault{If: m.mine, Err: errors.New("the backend does not answer")}), nil
	case "lost":
		w.LoseRecords(m.uid)
		return func() {}, nil
	case "hold":
		k, err := kindOf(words[1])
		return w.Inject(fixture.Fault{If: m.mine, Kind: k, At: fixture.Held}), err
	case "fail":
		return m.fail(words[1:])
	case "cannot":
		return m.fail([]string{words[1], string(event.ClassUnsupported), "look", "this backend cannot do that"})
	case "bad-image":
		bad := func(h lifecycle.Host) bool {
			return m.mine(h) && h.Intent.Spec.Image != nil && h.Intent.Spec.Image.Checksum == words[1]
		}
		return w.Inject(fixture.Fault{If: bad, Kind: event.Deploy, At: fixture.AtEnd, Problem: problem(event.Deploy, event.ClassImage, words[2])}), nil
	case "maintenance":
		w.Change(m.uid, func(x *fixture.Machine) { x.Maintenance = "maintenance, " + words[1] })
		return func() { w.Change(m.uid, func(x *fixture.Machine) { x.Maintenance = "" }) }, nil
	case "node":
		w.Change(m.uid, func(x *fixture.Machine) { x.Astray = words[1] })
		return func() { w.Change(m.uid, func(x *fixture.Machine) { x.Astray = "" }) }, nil
	case "power":
		w.Change(m.uid, func(x *fixture.Machine) { x.On = words[1] == "on" })
		return func() {}, nil
	default:
		return m.habit(words)
	}
}

// habit is a fault of the machine itself.
func (m *fixtureMachine) habit(words []string) (heal func(), err error) {
	part := map[string]func(*fixture.Machine) *bool{
		"deaf":  func(x *fixture.Machine) *bool { return &x.Deaf },
		"blunt": func(x *fixture.Machine) *bool { return &x.Blunt },
		// stubborn takes changes of its firmware, and keeps the old one.
		"stubborn": func(x *fixture.Machine) *bool { return &x.Stubborn },
	}[words[0]]
	if part == nil {
		return nil, unknownFault(words)
	}
	m.lab.world.Change(m.uid, func(x *fixture.Machine) { *part(x) = true })
	return func() { m.lab.world.Change(m.uid, func(x *fixture.Machine) { *part(x) = false }) }, nil
}

// down: the BMC answers nothing.
func (m *fixtureMachine) down() (heal func()) {
	var lift []func()
	for _, k := range event.Kinds() {
		if k == event.Remove || k == event.Detach {
			continue // the backend's records are its own
		}
		p := problem(k, event.ClassUnreachable, "the BMC does not answer")
		lift = append(lift, m.lab.world.Inject(fixture.Fault{If: m.mine, Kind: k, Problem: p}))
	}
	return func() {
		for _, f := range lift {
			f()
		}
	}
}

// fail: <kind> <class> [look|write|end] [times] "message".
func (m *fixtureMachine) fail(words []string) (heal func(), err error) {
	if len(words) < 3 {
		return nil, fmt.Errorf("fail %q: want an operation, a class and a message", words)
	}
	k, err := kindOf(words[0])
	if err != nil {
		return nil, err
	}
	f := fixture.Fault{If: m.mine, Kind: k, At: fixture.AtEnd, Problem: problem(k, event.Class(words[1]), words[len(words)-1])}
	for _, word := range words[2 : len(words)-1] {
		switch word {
		case "look":
			f.At = fixture.AtLook
		case "write":
			f.At = fixture.AtWrite
		default:
			if f.Times, err = strconv.Atoi(word); err != nil {
				return nil, fmt.Errorf("fail %q: %w", words, err)
			}
		}
	}
	return m.lab.world.Inject(f), nil
}

func (m *fixtureMachine) acts() []string {
	var list []string
	for _, c := range m.lab.world.Commands(m.uid) {
		act, _, _ := strings.Cut(c.String(), "/") // and not of which subscription
		list = append(list, act)
	}
	return list
}

func (m *fixtureMachine) look() string {
	x := m.lab.world.Machine(m.uid)
	look := fmt.Sprintf("%s, disk %s, booted %d times, cleaned %d times", power(x.On), nothing(x.Image), x.Boots, x.Cleanings)
	if x.Media != "" {
		look += ", virtual CD " + x.Media
	}
	var receivers []string
	for _, s := range x.Subscriptions {
		receivers = append(receivers, s.Destination)
	}
	return look + eventsTo(receivers)
}

func power(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func nothing(s string) string {
	if s == "" {
		return "empty"
	}
	return s
}

func (m *fixtureMachine) tidy(text string) string {
	return strings.ReplaceAll(text, m.secret, "PASSWORD")
}
