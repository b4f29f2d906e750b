package ironic_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// begin starts an operation and makes its first write, as the bus does.
func (l *lab) begin(h lifecycle.Host, k event.Kind) lifecycle.Host {
	l.Helper()
	n, ok := l.look(h, k).(lifecycle.Needs)
	if !ok {
		l.Fatalf("%s needs no write", k)
	}
	return l.write(l.record(h, lifecycle.Started{Kind: k, Step: n.Write, Mode: lifecycle.OffMode(h)}), k, n.Write)
}

// through takes an operation to a write of its own, and makes that.
func (l *lab) through(h lifecycle.Host, k event.Kind, write string) lifecycle.Host {
	l.Helper()
	h = l.begin(h, k)
	for range 1000 {
		if h.Work(k.Section()).Op.Step == write {
			return h
		}
		if n, ok := l.look(h, k).(lifecycle.Needs); ok {
			h = l.write(l.record(h, lifecycle.Claimed{Kind: k, Step: n.Write}), k, n.Write)
		}
	}
	l.Fatalf("%s did not come to %s", k, write)
	return h
}

// write makes a claimed write.
func (l *lab) write(h lifecycle.Host, k event.Kind, name string) lifecycle.Host {
	l.Helper()
	err := l.backend.Do(l.Context(), h, lifecycle.Write{Kind: k, Name: name})
	if err != nil && !errors.Is(err, lifecycle.ErrBusy) {
		l.Fatalf("%s of %s: %v", name, k, err)
	}
	return l.record(h, lifecycle.Accepted{Kind: k, Busy: err != nil})
}

// until waits for the host's node to come to a state.
func (l *lab) until(h lifecycle.Host, state string) {
	l.Helper()
	for range 5000 {
		if n, ok := l.ironic.Node(namespace + "~" + h.Intent.Name); ok && n["provision_state"] == state && n["reservation"] == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
	l.Fatalf("the node did not come to %q: it is %v", state, l.node(h)["provision_state"])
}

// B06: a host that is deleted while an agent is awaited goes at once.
func TestB06DeleteWhileWaiting(t *testing.T) {
	for _, release := range []ironictest.Release{ironictest.Ironic29, ironictest.Ironic39} {
		t.Run(fmt.Sprint("inspecting, ironic ", release), func(t *testing.T) {
			l := newLab(t, ironictest.Config{Release: release, Delays: ironictest.Delays{Boot: time.Hour}}, nil)
			h := l.begin(l.enroll(l.host()), event.Inspect)
			l.until(h, "inspect wait")
			l.goes(l.record(h, lifecycle.Aborted{Kind: event.Inspect, Reason: "deleted"}))
		})
		t.Run(fmt.Sprint("cleaning, ironic ", release), func(t *testing.T) {
			l := newLab(t, ironictest.Config{Release: release}, nil)
			h := l.does(l.enroll(l.host()), event.Inspect, lifecycle.Inspected{Digest: "d"})
			h.Intent.Spec.RAID = &v1alpha1.RAIDConfig{SoftwareRAIDVolumes: []v1alpha1.SoftwareRAIDVolume{{Level: "1"}}}
			l.machine(h).SetFaults(ironictest.Faults{NoBoot: true})
			h = l.through(h, event.Prepare, "clean")
			l.until(h, "clean wait")
			l.goes(l.record(h, lifecycle.Aborted{Kind: event.Prepare, Reason: "deleted"}))
		})
		t.Run(fmt.Sprint("deploying, ironic ", release), func(t *testing.T) {
			l := newLab(t, ironictest.Config{Release: release}, nil)
			h := l.available(l.host())
			h.Intent.Spec.AutomatedCleaningMode = v1alpha1.CleaningModeDisabled
			image := l.bench().Image
			h.Intent.Spec.Image, h.Intent.Spec.Online = &image, true
			l.machine(h).SetFaults(ironictest.Faults{NoBoot: true})
			h = l.through(h, event.Deploy, "deploy")
			l.until(h, "wait call-back")
			h.Intent.DeletedAt = l.now()
			h = l.record(h, lifecycle.Aborted{Kind: event.Deploy, Reason: "deleted"})
			h = l.does(h, event.Undeploy, lifecycle.Deprovisioned{})
			l.goes(h)
		})
	}
}

// goes powers a host off and removes it, and is gone then.
func (l *lab) goes(h lifecycle.Host) {
	l.Helper()
	h.Intent.DeletedAt = l.now()
	h = l.does(h, event.PowerOff, lifecycle.Switched{Kind: event.PowerOff})
	if l.machine(h).View().On {
		l.Error("the machine is still on")
	}
	l.does(h, event.Remove, lifecycle.Removed{})
	if n := len(l.ironic.Nodes()); n != 0 {
		l.Errorf("%d nodes are left", n)
	}
}

// B07: a node is removed by its own UUID, be its id unknown to the host, or its BMC
// never verified.
func TestB07RemoveWithoutID(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.enroll(l.host())
	h.Registration.Node = ""
	h.Intent.DeletedAt = l.now()
	l.does(h, event.Remove, lifecycle.Removed{})

	wrong := l.host()
	l.secrets.put(wrong.Intent.Name, "1", map[string]string{"username": "admin", "password": "wrong"})
	wrong, _ = l.fails(wrong, event.Enroll)
	wrong.Intent.DeletedAt = l.now()
	l.does(wrong, event.Remove, lifecycle.Removed{})
	if n := len(l.ironic.Nodes()); n != 0 {
		t.Errorf("%d nodes are left", n)
	}
}

// A machine in use is detached, and attached again, without being touched.
func TestDetachAndAttach(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.deploy(l.available(l.host()))
	before := l.machine(h).Changes()
	h.Intent.Detached = &event.DetachRequest{}
	h = l.does(h, event.Detach, lifecycle.Detached{})
	if n := len(l.ironic.Nodes()); n != 0 {
		t.Fatalf("%d nodes are left", n)
	}
	h.Intent.Detached = nil
	h = l.enroll(h)
	if !lifecycle.Unadopted(h) {
		t.Error("an attached host in use is not to be adopted")
	}
	h = l.does(h, event.Adopt, lifecycle.Adopted{})
	if after := l.machine(h).Changes(); after != before {
		t.Errorf("the machine was changed: %v", l.machine(h).Acts())
	}
}

// B16: hosts of one name in two namespaces are two nodes, named after both from
// their first request on.
func TestB16Names(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	a, b := l.host(), l.host()
	l.secrets.kept["other/host-1"] = l.secrets.kept[namespace+"/"+b.Intent.Name]
	b.Intent.Namespace, b.Intent.Name = "other", "host-1"
	b.Intent.Credentials = event.SecretRef{Namespace: "other", Name: "host-1", Version: "1"}
	a, b = l.enroll(a), l.enroll(b)
	if a.Registration.Node == b.Registration.Node {
		t.Error("two hosts have one node")
	}
	for _, r := range l.ironic.Requests() {
		if r.Path == "/v1/nodes/host-1" && r.Method != "GET" {
			t.Errorf("%s %s writes to the bare name", r.Method, r.Path)
		}
	}
	if _, ok := l.ironic.Node("other~host-1"); !ok {
		t.Error("there is no node other~host-1")
	}
}

// Two hosts claim one MAC address: the second is told which node has it.
func TestConflictOfMAC(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	a, b := l.enroll(l.host()), l.host()
	b.Intent.Spec.BootMACAddress = a.Intent.Spec.BootMACAddress
	_, p := l.fails(b, event.Enroll)
	if p.Class != event.ClassConflict {
		t.Errorf("problem %+v", p)
	}
	if n := l.ironic.Nodes()["enroll"]; n != 0 {
		t.Error("a node was made all the same")
	}
}

// After a move the object in the old cluster has nothing more to say about the
// machine: whatever it does comes to nothing.
func TestTwoObjectsOfOneName(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	old := l.deploy(l.available(l.host()))
	before := l.machine(old).Changes()
	moved := old
	moved.UID = uuid.NewString()
	moved.Intent.UID = moved.UID
	l.hosts.Store(moved.UID, l.machine(old))
	l.secrets.put(moved.Intent.Name, "77", map[string]string{"username": "admin", "password": "password"})
	moved.Intent.Credentials.Version = "77"
	moved = l.enroll(moved)
	if moved.Registration.Node != old.Registration.Node {
		t.Fatal("the moved host has another node")
	}

	old.Intent.DeletedAt = l.now()
	_, p := l.fails(old, event.Undeploy)
	if p.Class != event.ClassConflict {
		t.Errorf("problem %+v", p)
	}
	old = l.record(old, lifecycle.Started{Kind: event.Undeploy, Step: "undeploy"})
	if err := l.backend.Do(t.Context(), old, lifecycle.Write{Kind: event.Undeploy, Name: "undeploy"}); !errors.Is(err, lifecycle.ErrBusy) {
		t.Errorf("a late write: error %v, want that nothing was done", err)
	}
	old = l.record(old, lifecycle.Aborted{Kind: event.Undeploy})
	l.does(old, event.Remove, lifecycle.Removed{})
	if after := l.machine(moved).Changes(); after != before {
		t.Errorf("the machine was changed: %v", l.machine(moved).Acts())
	}
	if s := l.node(moved)["provision_state"]; s != "active" {
		t.Errorf("the node is in state %v", s)
	}
}

// A process that slept through the end of its operation finds out before it writes.
func TestStaleUndeploy(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.deploy(l.available(l.host()))
	stale := l.record(h, lifecycle.Started{Kind: event.Undeploy, Step: "undeploy"})
	h = l.does(h, event.Undeploy, lifecycle.Deprovisioned{})
	h.Intent.Spec.Image.URL = "http://192.0.2.80/newer.qcow2"
	h = l.deploy(h)
	before := l.machine(h).Changes()
	if err := l.backend.Do(t.Context(), stale, lifecycle.Write{Kind: event.Undeploy, Name: "undeploy"}); !errors.Is(err, lifecycle.ErrBusy) {
		t.Errorf("error %v, want that nothing was done", err)
	}
	if after := l.machine(h).Changes(); after != before || l.node(h)["provision_state"] != "active" {
		t.Errorf("a stale undeploy removed the newer deployment: %v", l.machine(h).Acts())
	}
}

// What somebody else protects is not undeployed.
func TestForeignProtection(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.deploy(l.available(l.host()))
	if n := l.node(h); n["protected"] != true {
		t.Fatal("a machine in use is not protected")
	}
	h.Intent.Spec.Image = nil
	h = l.does(h, event.Undeploy, lifecycle.Deprovisioned{})
	if n := l.node(h); n["protected"] != false || n["provision_state"] != "available" {
		t.Errorf("protected %v in state %v", n["protected"], n["provision_state"])
	}
}

// A node in whose state nothing happens any more is made anew, and the deployment
// goes on there.
func TestStuckNode(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.available(l.host())
	image := l.bench().Image
	h.Intent.Spec.Image, h.Intent.Spec.Online, h.Intent.Spec.AutomatedCleaningMode = &image, true, v1alpha1.CleaningModeDisabled
	name := namespace + "~" + h.Intent.Name
	h = l.through(h, event.Deploy, "provide")
	l.until(h, "available")
	if err := l.ironic.Strand(name); err != nil {
		t.Fatal(err)
	}
	for h.Provisioning.Op.Step != "deploy" {
		h = l.next(h, event.Deploy)
	}
	l.until(h, "deploying")
	if _, ok := l.look(h, event.Deploy).(lifecycle.Underway); !ok {
		t.Fatal("a node that is deployed is not waited for")
	}
	l.pass(2 * time.Hour)
	h = l.next(h, event.Deploy)
	if h.Provisioning.Op.Step != "recover" {
		t.Fatalf("after two hours in which nothing happened: %s", h.Provisioning.Op.Step)
	}
	l.isUnregistered(h, event.Deploy)
	h = l.deploy(l.enroll(l.record(h, lifecycle.Lost{})))
	if v := l.machine(h).View(); v.Disk.Image != image.URL {
		t.Errorf("disk %+v", v.Disk)
	}
}

// next makes the next write of an operation under way.
func (l *lab) next(h lifecycle.Host, k event.Kind) lifecycle.Host {
	l.Helper()
	n, ok := l.look(h, k).(lifecycle.Needs)
	if !ok {
		l.Fatalf("%s needs no write: %#v", k, l.look(h, k))
	}
	return l.write(l.record(h, lifecycle.Claimed{Kind: k, Step: n.Write}), k, n.Write)
}

// A machine in use whose node is stuck is told about, and left alone.
func TestStuckNodeInUse(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	h := l.deploy(l.available(l.host()))
	before := l.machine(h).Changes()
	l.ironic.Forget()
	h = l.enroll(l.record(h, lifecycle.Lost{}))
	name := namespace + "~" + h.Intent.Name
	if err := l.ironic.Strand(name); err != nil {
		t.Fatal(err)
	}
	h = l.begin(h, event.Adopt)
	l.until(h, "adopting")
	l.pass(time.Hour)
	h, p := l.fails(h, event.Adopt)
	if p.Class != event.ClassTimeout || p.Type != v1alpha1.ProvisionedRegistrationError {
		t.Errorf("problem %+v", p)
	}
	if after := l.machine(h).Changes(); after != before {
		t.Errorf("the machine was changed: %v", l.machine(h).Acts())
	}
	if _, ok := l.ironic.Node(name); !ok {
		t.Error("the node of a machine in use was deleted")
	}
}
