package stories_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/backend/ironic"
	client "github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// ironicLab has a fake Ironic for each machine, so that the stories of a theatre,
// which are told at the same time, can each lose a database or an Ironic.
type ironicLab struct {
	t      *testing.T
	around surroundings

	mu       sync.Mutex
	machines map[string]*ironicMachine // by the name of the host
}

func newIronicLab(t *testing.T, s surroundings) lab {
	t.Helper()
	return &ironicLab{t: t, around: s, machines: map[string]*ironicMachine{}}
}

func (l *ironicLab) backend() backend.Backend { return l }

// Name implements backend.Backend.
func (*ironicLab) Name() string { return ironic.Name }

// Look implements backend.Backend.
func (l *ironicLab) Look(ctx context.Context, k event.Kind, h lifecycle.Host) (lifecycle.Outlook, error) {
	return l.of(h).Look(ctx, k, h)
}

// Do implements backend.Backend.
func (l *ironicLab) Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error {
	return l.of(h).Do(ctx, h, w)
}

// Power implements backend.Backend.
func (l *ironicLab) Power(ctx context.Context, h lifecycle.Host) (backend.PowerState, error) {
	return l.of(h).Power(ctx, h)
}

// Firmware implements backend.Backend.
func (l *ironicLab) Firmware(ctx context.Context, h lifecycle.Host) (*event.Firmware, error) {
	return l.of(h).Firmware(ctx, h)
}

func (l *ironicLab) of(h lifecycle.Host) *ironic.Backend {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.machines[h.Name()].back
}

// machine makes one with an Ironic of its own.
func (l *ironicLab) machine(t *testing.T, name string) machine {
	t.Helper()
	m := &ironicMachine{t: t, bad: map[string]string{}}
	const phase = 5 * time.Millisecond
	i, address, stop, err := ironictest.Start(ironictest.Config{
		Now: l.around.now, Images: m.image,
		Delays: ironictest.Delays{BMC: time.Millisecond, Power: phase, Boot: phase, Inspect: phase, Step: phase, Write: phase, Heartbeat: phase, PowerSync: 100 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.t.Cleanup(stop) // after the theatre, whose services ask it
	m.ironic = i
	if m.machine, err = i.Rack().Add(ironictest.Spec{Name: name, SystemID: "/redfish/v1/Systems/1", Password: "right-" + name, MACs: []string{"00:00:5e:00:53:01"}}); err != nil {
		t.Fatal(err)
	}
	m.machine.SetHealth("") // or when it is seen would be a matter of moments
	c, err := client.New(client.Config{Name: ironic.Name, Endpoint: address}, l.around.now, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.t.Cleanup(c.Close)
	set := ironic.DefaultSettings()
	set.Ramdisk.ISO, set.RestAge, set.SoftPowerOff = "http://192.0.2.80/agent.iso", 10*time.Millisecond, time.Second
	if m.back, err = ironic.New(c, set, ironic.Beside{Secrets: l.around.secrets, Now: l.around.now}); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.machines[namespace+"/"+name] = m
	return m
}

type ironicMachine struct {
	t       *testing.T
	ironic  *ironictest.Ironic
	machine *ironictest.Machine
	back    *ironic.Backend

	mu  sync.Mutex
	bad map[string]string // what is wrong with images, by the checksum that is wanted
}

func (m *ironicMachine) login() (address, user, password string) {
	s := m.machine.Spec()
	return "redfish-virtualmedia+" + s.Address + s.SystemID, s.Username, s.Password
}

func (*ironicMachine) born(string) {}

// image tells what is wrong with an image.
func (m *ironicMachine) image(_, checksum string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if text, ok := m.bad[checksum]; ok && checksum != "" {
		return errors.New(text)
	}
	return nil
}

func (m *ironicMachine) fault(words []string) (heal func(), err error) {
	switch words[0] {
	case "backend-down":
		return m.ironic.Inject(-1, ironictest.Fault{Status: http.StatusServiceUnavailable, Text: "the backend does not answer"},
			func(string, string, []byte) bool { return true }), nil
	case "lost":
		m.ironic.Forget()
		return func() {}, nil
	case "maintenance":
		return m.force(func(s *ironictest.State) { s.Maintenance, s.MaintenanceReason = true, words[1] })
	case "node":
		return m.force(func(s *ironictest.State) { s.Provision = words[1] })
	case "power":
		m.machine.SetPower(words[1] == "on")
		return func() {}, nil
	case "bad-image":
		m.mu.Lock()
		defer m.mu.Unlock()
		m.bad[words[1]] = words[2]
		return func() { m.mu.Lock(); defer m.mu.Unlock(); delete(m.bad, words[1]) }, nil
	case "fail":
		return m.fail(words[1:])
	}
	f := m.machine.Faults()
	was := f
	switch words[0] {
	case "down":
		f.Down = true
	case "hold":
		f.Hold = map[string]string{"inspect": "inspect wait", "prepare": "clean wait", "undeploy": "clean wait", "service": "service wait", "deploy": "wait call-back", "on": "power", "off": "power"}[words[1]]
	case "deaf":
		f.IgnoreShutdown = true
	case "blunt":
		f.RefuseShutdown = true
	default:
		return nil, unknownFault(words)
	}
	m.machine.SetFaults(f)
	return func() { m.machine.SetFaults(was) }, nil
}

// force is somebody else's hand in Ironic's records.
func (m *ironicMachine) force(change func(*ironictest.State)) (heal func(), err error) {
	name := namespace + "~" + m.machine.Spec().Name
	n, ok := m.ironic.Node(name)
	if !ok {
		return nil, fmt.Errorf("there is no node %s", name)
	}
	was := ironictest.State{Provision: fmt.Sprint(n["provision_state"]), Power: fmt.Sprint(n["power_state"])}
	s := was
	change(&s)
	return func() {
		if err := m.ironic.Force(name, was); err != nil {
			m.t.Error(err)
		}
	}, m.ironic.Force(name, s)
}

// fail: <kind> <class> [times] "message". Ironic itself says what kind of failure
// it is.
func (m *ironicMachine) fail(words []string) (heal func(), err error) {
	k, err := kindOf(words[0])
	if err != nil {
		return nil, err
	}
	f := m.machine.Faults()
	was := f
	f.Text = words[len(words)-1]
	switch k {
	case event.Enroll:
		f.Down = true // it is a dead BMC that keeps a host from being enrolled
	case event.Adopt:
		f.FailAdopt = f.Text
	case event.Inspect:
		f.FailInspect = f.Text
	case event.Prepare, event.Undeploy:
		f.FailClean = "erase_devices_metadata"
	case event.Deploy:
		f.FailDeploy = "write_image"
	case event.Service:
		f.FailService, f.FailUpdate = "apply_configuration", true
	case event.Media:
		f.FailMedia = true
	default:
		return nil, unknownFault(append([]string{"fail"}, words...))
	}
	if len(words) > 3 {
		if f.Times, err = strconv.Atoi(words[2]); err != nil {
			return nil, err
		}
	}
	m.machine.SetFaults(f)
	return func() { m.machine.SetFaults(was) }, nil
}

// acts are the things done to the machine, each kind that comes several times in a
// row once.
func (m *ironicMachine) acts() []string {
	var list []string
	for _, a := range m.machine.Acts() {
		list = append(list, strings.TrimSpace(a.What+" "+a.Arg))
	}
	return list
}

func (m *ironicMachine) look() string {
	v := m.machine.View()
	look := fmt.Sprintf("%s, running %s, disk %s, booted %d times", power(v.On), nothing(v.Runs), nothing(v.Disk.Image), v.Boots)
	if v.CD != "" && v.Runs == ironictest.RunsDisk {
		look += ", virtual CD " + v.CD
	}
	var receivers []string
	for _, s := range m.machine.Subscriptions() {
		receivers = append(receivers, s.Destination)
	}
	return look + eventsTo(receivers)
}

func (m *ironicMachine) tidy(text string) string {
	s := m.machine.Spec()
	replace := map[string]string{s.Address + s.SystemID: "BMC", s.Address: "BMC", s.Password: "PASSWORD"}
	keys := slices.SortedFunc(maps.Keys(replace), func(a, b string) int { return len(b) - len(a) })
	for _, k := range keys {
		text = strings.ReplaceAll(text, k, replace[k])
	}
	return nodeID.ReplaceAllString(text, "NODE")
}

// nodeID is the UUID of a node, also of one that was lost before anybody noted it.
var nodeID = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)
