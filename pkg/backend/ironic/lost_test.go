package ironic_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// adoptAgain does what the registrar does for a host in use whose node is gone: it
// enrolls it anew, and adopts it.
func (l *lab) adoptAgain(h lifecycle.Host) lifecycle.Host {
	l.Helper()
	h = l.record(h, lifecycle.Lost{})
	h = l.enroll(h)
	return l.does(h, event.Adopt, lifecycle.Adopted{})
}

func (l *lab) isUnregistered(h lifecycle.Host, kinds ...event.Kind) {
	l.Helper()
	for _, k := range kinds {
		if _, err := l.backend.Look(l.Context(), k, h); !errors.Is(err, lifecycle.ErrUnregistered) {
			l.Errorf("%s of a host whose node is gone: error %v, want ErrUnregistered", k, err)
		}
	}
}

// B01: Ironic loses its database while the image server is down. Whatever is tried,
// the running machine is not touched, and it is taken over as soon as that works.
func TestB01LostDatabase(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.deploy(l.available(l.host()))
	h = l.does(h, event.PowerOn, lifecycle.Switched{Kind: event.PowerOn, On: true})
	m := l.machine(h)
	before := m.View()
	l.ironic.Forget()

	l.isUnregistered(h, event.Adopt, event.Inspect, event.Prepare, event.Deploy, event.Undeploy, event.PowerOn, event.PowerOff, event.Reboot, event.Service)
	if _, err := l.backend.Power(t.Context(), h); !errors.Is(err, lifecycle.ErrUnregistered) {
		t.Errorf("power of a host whose node is gone: error %v, want ErrUnregistered", err)
	}
	old := h.Registration.Node
	h = l.record(h, lifecycle.Lost{})
	h = l.enroll(h)
	if h.Registration.Node == old || !lifecycle.Unadopted(h) {
		t.Errorf("node %s, to be adopted %v: want a new node that is to be adopted", h.Registration.Node, lifecycle.Unadopted(h))
	}
	m.SetFaults(ironictest.Faults{FailAdopt: "Validation of image href http://192.0.2.80/os.qcow2 failed, reason: Connection refused"})
	for range 20 {
		var p event.Problem
		if h, p = l.fails(h, event.Adopt); p.Type != v1alpha1.ProvisionedRegistrationError || !strings.Contains(p.Message, "http://192.0.2.80/os.qcow2") {
			t.Fatalf("problem %+v", p)
		}
		if s := lifecycle.Stage(h); s != v1alpha1.StateProvisioned {
			t.Fatalf("the host is %s", s)
		}
	}
	m.SetFaults(ironictest.Faults{})
	h = l.does(h, event.Adopt, lifecycle.Adopted{})
	if after := m.View(); after.Changes != before.Changes || !after.On || after.Boots != before.Boots {
		t.Errorf("the machine was touched: %+v, it was %+v: %v", after, before, m.Acts())
	}
	if n := l.node(h); n["provision_state"] != "active" || n["protected"] != true {
		t.Errorf("node in state %v, protected %v", n["provision_state"], n["protected"])
	}
	l.ironic.SyncPower()
	if _, done := l.look(h, event.PowerOn).(lifecycle.Finished); !done {
		t.Error("the machine is on, and is not seen to be")
	}
}

// The same for a wrong Secret at that moment: nothing is adopted, nothing touched.
func TestB01WrongSecret(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.deploy(l.available(l.host()))
	before := l.machine(h).Changes()
	l.ironic.Forget()
	l.secrets.put(h.Intent.Name, "2", map[string]string{"username": "admin", "password": "wrong"})
	h.Intent.Credentials.Version = "2"
	h = l.record(h, lifecycle.Lost{})
	for range 5 {
		var p event.Problem
		if h, p = l.fails(h, event.Enroll); p.Type != v1alpha1.RegistrationError || p.Class != event.ClassCredentials {
			t.Fatalf("problem %+v", p)
		}
	}
	l.secrets.put(h.Intent.Name, "3", map[string]string{"username": "admin", "password": "password"})
	h.Intent.Credentials.Version = "3"
	h = l.does(l.enroll(h), event.Adopt, lifecycle.Adopted{})
	if after := l.machine(h).Changes(); after != before {
		t.Errorf("the machine was changed %d times: %v", after-before, l.machine(h).Acts())
	}
}

// The same for fifty hosts at once, some of them externally provisioned.
func TestB01Fifty(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	var mu sync.Mutex
	var hosts []lifecycle.Host
	each := func(do func(lifecycle.Host) lifecycle.Host) {
		var all sync.WaitGroup
		for i := range hosts {
			all.Go(func() {
				h := do(hosts[i])
				mu.Lock()
				defer mu.Unlock()
				hosts[i] = h
			})
		}
		all.Wait()
	}
	for i := range 50 {
		h := l.host()
		if i%5 == 0 {
			h.Intent.Spec.ExternallyProvisioned, h.Intent.Spec.Image = true, nil
			l.machine(h).SetPower(true)
		}
		hosts = append(hosts, h)
	}
	each(func(h lifecycle.Host) lifecycle.Host {
		if h.Intent.Spec.ExternallyProvisioned {
			return l.record(l.enroll(h), lifecycle.EnteredExternal{})
		}
		return l.deploy(l.available(h))
	})
	before := l.ironic.Rack().Changes()
	l.ironic.Forget()
	each(l.adoptAgain)
	if after := l.ironic.Rack().Changes(); after != before {
		t.Errorf("machines were changed %d times", after-before)
	}
	if n := l.ironic.Nodes()["active"]; n != len(hosts) {
		t.Errorf("%d nodes are active, want %d: %v", n, len(hosts), l.ironic.Nodes())
	}
}

// A database lost at other times: what was going on is done again on a new node.
func TestLostDatabaseElsewhere(t *testing.T) {
	t.Run("an available host is deployed on a new node", func(t *testing.T) {
		l := newLab(t, ironictest.Config{}, nil)
		h := l.available(l.host())
		l.ironic.Forget()
		l.isUnregistered(h, event.Deploy)
		h = l.deploy(l.enroll(l.record(h, lifecycle.Lost{})))
		if v := l.machine(h).View(); v.Disk.Writes != 1 || v.Disk.Erases == 0 {
			t.Errorf("disk %+v, want it cleaned and written once", v.Disk)
		}
	})
	t.Run("an inspection begins anew", func(t *testing.T) {
		l := newLab(t, ironictest.Config{}, nil)
		h := l.enroll(l.host())
		if n, ok := l.look(h, event.Inspect).(lifecycle.Needs); !ok || n.Write != "inspect" {
			t.Fatalf("%#v", n)
		}
		h = l.record(h, lifecycle.Started{Kind: event.Inspect, Step: "inspect"})
		if err := l.backend.Do(t.Context(), h, lifecycle.Write{Kind: event.Inspect, Name: "inspect"}); err != nil {
			t.Fatal(err)
		}
		h = l.record(h, lifecycle.Accepted{Kind: event.Inspect})
		l.ironic.Forget()
		l.isUnregistered(h, event.Inspect)
		h = l.enroll(l.record(h, lifecycle.Lost{}))
		if _, r := l.must(h, event.Inspect); r.Hardware == nil {
			t.Error("no hardware was found")
		}
	})
	t.Run("RAID is set up again", func(t *testing.T) {
		l := newLab(t, ironictest.Config{}, nil)
		h := l.does(l.enroll(l.host()), event.Inspect, lifecycle.Inspected{Digest: "d"})
		size := 50
		h.Intent.Spec.RAID = &v1alpha1.RAIDConfig{HardwareRAIDVolumes: []v1alpha1.HardwareRAIDVolume{{Level: "1", SizeGibibytes: &size}}}
		h, _ = l.must(h, event.Prepare) // done, but not on record yet
		l.ironic.Forget()
		l.isUnregistered(h, event.Prepare)
		h = l.enroll(l.record(h, lifecycle.Lost{}))
		if n, ok := l.look(h, event.Prepare).(lifecycle.Needs); !ok {
			t.Errorf("%#v: want RAID to be set up on the new node", n)
		}
		l.prepare(h)
	})
	t.Run("a deprovisioning goes on with the cleaning", func(t *testing.T) {
		l := newLab(t, ironictest.Config{}, nil)
		h := l.deploy(l.available(l.host()))
		h.Intent.Spec.Image = nil
		h = l.record(h, lifecycle.Started{Kind: event.Undeploy, Step: "undeploy"})
		l.ironic.Forget()
		h = l.enroll(l.record(h, lifecycle.Lost{}))
		before := l.machine(h).View().Disk.Erases
		h = l.does(h, event.Undeploy, lifecycle.Deprovisioned{})
		if after := l.machine(h).View().Disk.Erases; after <= before {
			t.Error("the disk was not cleaned")
		}
	})
}

// An old backup of the database says that the machine is free: nothing is done to
// it.
func TestOldDatabase(t *testing.T) {
	for _, state := range []string{"available", "manageable"} {
		l := newLab(t, ironictest.Config{}, nil)
		h := l.deploy(l.available(l.host()))
		before := l.machine(h).Changes()
		name := namespace + "~" + h.Intent.Name
		if err := l.ironic.Force(name, ironictest.State{Provision: state, Power: "power on"}); err != nil {
			t.Fatal(err)
		}
		h = l.record(h, lifecycle.Lost{})
		h = l.does(h, event.Adopt, lifecycle.Adopted{})
		if after := l.machine(h).Changes(); after != before {
			t.Errorf("%s: the machine was changed: %v", state, l.machine(h).Acts())
		}
	}
}
