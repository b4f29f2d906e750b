package system_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/integration/internal/plant"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bus"
)

// A pair is a host that is in use and one that is available, both at rest.
type pair struct {
	used, idle string
	machines   []*bmcsim.Host // in the order of names
	commands   []int          // that each was given until then
}

// settledPair brings up two hosts whose objects carry all that is known of them.
func settledPair(t *testing.T, p *plant.Plant) pair {
	t.Helper()
	used, one := p.Declare(t, plant.WithImage)
	idle, other := p.Declare(t)
	p.Await(t, used.Name, "in use, with a copy of its status", func(l plant.Life) bool { return plant.InUse(l) && copied(l) })
	p.Await(t, idle.Name, "available, with a copy of its status", func(l plant.Life) bool {
		return plant.Shows(v1alpha1.StateAvailable)(l) && l.Now.Status.PoweredOn && copied(l)
	})
	pr := pair{used: used.Name, idle: idle.Name, machines: []*bmcsim.Host{one, other}}
	for _, m := range pr.machines {
		pr.commands = append(pr.commands, len(m.Commands()))
	}
	return pr
}

// names are the hosts, each in the place of its machine.
func (pr pair) names() []string { return []string{pr.used, pr.idle} }

// untouched wants machines to which nothing was done since the pair was settled.
func (pr pair) untouched(t *testing.T) {
	t.Helper()
	for i, m := range pr.machines {
		if more := m.Commands()[pr.commands[i]:]; len(more) > 0 {
			t.Errorf("%s was told: %+v", m.Name(), more)
		}
		if v := m.View(); v.Power != "On" || v.Boots != 1 {
			t.Errorf("%s is %s and booted %d times", m.Name(), v.Power, v.Boots)
		}
	}
}

// copied reports whether the status annotation is the whole status.
func copied(l plant.Life) bool { return l.Now != nil && copyDiff(l.Now) == "" }

func copyDiff(h *v1alpha1.BareMetalHost) string {
	var was v1alpha1.BareMetalHostStatus
	if err := json.Unmarshal([]byte(h.Annotations[v1alpha1.StatusAnnotation]), &was); err != nil {
		return err.Error()
	}
	return cmp.Diff(h.Status, was, cmpopts.EquateEmpty())
}

// At each settled change of a host its annotation is its whole status.
func TestTheAnnotationIsTheWholeStatus(t *testing.T) {
	p := newPlant(t)
	p.Start(t, 1)
	h, _ := p.Declare(t)
	steps := []struct {
		what   string
		change func(*v1alpha1.BareMetalHost)
		is     func(plant.Life) bool
	}{
		{"available", func(*v1alpha1.BareMetalHost) {}, plant.Shows(v1alpha1.StateAvailable)},
		{"in use", func(h *v1alpha1.BareMetalHost) { plant.WithImage(h, nil) }, plant.InUse},
		{"in use, and off", func(h *v1alpha1.BareMetalHost) { h.Spec.Online = false }, func(l plant.Life) bool {
			return plant.Shows(v1alpha1.StateProvisioned)(l) && !l.Now.Status.PoweredOn
		}},
		{"available again", func(h *v1alpha1.BareMetalHost) { h.Spec.Image = nil }, plant.Shows(v1alpha1.StateAvailable)},
	}
	for _, s := range steps {
		p.Update(t, h.Name, s.change)
		life := p.Await(t, h.Name, s.what+", with a copy of its status", func(l plant.Life) bool { return s.is(l) && copied(l) })
		if life.Now.Status.HardwareDetails == nil || life.Now.Status.GoodCredentials.Reference == nil {
			t.Errorf("%s: the status is not whole: %+v", s.what, life.Now.Status)
		}
	}
}

// A status that somebody deletes is there again, from the bus.
func TestADeletedStatusComesBack(t *testing.T) {
	p := newPlant(t)
	p.Start(t, 1)
	pr := settledPair(t, p)
	before := pr.revisions(t, p)
	eraseStatus(t, p, pr.used, v1alpha1.StateProvisioned)
	eraseStatus(t, p, pr.idle, v1alpha1.StateAvailable)
	onceMore(t, p)
	if diff := cmp.Diff(before, pr.revisions(t, p)); diff != "" {
		t.Errorf("something was begun on the bus (-before +after):\n%s", diff)
	}
	pr.untouched(t)
}

// revisions are how far the hosts have come on the bus.
func (pr pair) revisions(t *testing.T, p *plant.Plant) map[string]uint64 {
	t.Helper()
	b, revs := p.Bus(t), map[string]uint64{}
	for _, name := range pr.names() {
		h, err := b.Load(t.Context(), string(p.Hosts.Life(name).Now.UID))
		if err != nil {
			t.Fatal(err)
		}
		revs[name] = h.Rev
	}
	return revs
}

// eraseStatus takes the status off a host, and waits until the host shows the
// state that it was in, and none between.
func eraseStatus(t *testing.T, p *plant.Plant, name string, state v1alpha1.ProvisioningState) {
	t.Helper()
	seen := len(p.Hosts.Life(name).Moments)
	h := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name}}
	erase := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/status"}]`))
	if err := p.Kube.Client.Status().Patch(t.Context(), h, erase); err != nil {
		t.Fatal(err)
	}
	life := p.Await(t, name, "as it was", func(l plant.Life) bool { return len(l.Moments) > seen+1 && copied(l) })
	want := []v1alpha1.ProvisioningState{v1alpha1.StateNone, state}
	if diff := cmp.Diff(want, life.States()[seen:]); diff != "" {
		t.Errorf("%s showed (-want +got):\n%s", name, diff)
	}
}

// onceMore brings another host into use. By then every service has had its turn
// at what came before.
func onceMore(t *testing.T, p *plant.Plant) {
	t.Helper()
	h, _ := p.Declare(t, plant.WithImage)
	p.Await(t, h.Name, "in use", plant.InUse)
}

// When all services and the NATS server are stopped and started again, machines
// are asked how they are, and told nothing.
func TestARestartTouchesNothing(t *testing.T) {
	p := newPlant(t)
	p.Env = []string{"POWER_INTERVAL=2s"} // so that machines are asked soon
	p.Start(t, 1)
	pr := settledPair(t, p)
	p.Stop(t)
	p.NATS.Process().Stop(t)
	p.NATS.Restart(t)
	asked, shown := pr.requests(), pr.states(p)
	p.Start(t, 1)
	onceMore(t, p)
	lab.Eventually(t, plant.Patience, "have every machine asked again", func() error {
		for i, n := range pr.requests() {
			if n <= asked[i] {
				return fmt.Errorf("%s was asked %d times, as before", pr.machines[i].Name(), n)
			}
		}
		return nil
	})
	pr.untouched(t)
	if diff := cmp.Diff(shown, pr.states(p)); diff != "" {
		t.Errorf("states were shown once more (-before +after):\n%s", diff)
	}
}

// states are those that the hosts have shown.
func (pr pair) states(p *plant.Plant) map[string][]v1alpha1.ProvisioningState {
	return map[string][]v1alpha1.ProvisioningState{pr.used: p.Hosts.Life(pr.used).States(), pr.idle: p.Hosts.Life(pr.idle).States()}
}

// requests are how many requests each BMC was sent.
func (pr pair) requests() []int {
	counts := make([]int, len(pr.machines))
	for i, m := range pr.machines {
		for _, n := range m.Requests() {
			counts[i] += n
		}
	}
	return counts
}

// Hosts that are moved to another cluster as clusterctl moves them, to a bus
// that has never heard of them, go on from what their annotation says: they
// show no state but their own, nothing is inspected, and no machine is told
// anything, neither where they come from nor where they go to.
func TestMovedHostsResume(t *testing.T) {
	from := newPlant(t)
	from.Start(t, 1)
	pr := settledPair(t, from)
	to := plant.New(t, &shared, shared.StartKube(t, t.TempDir()), from.Rack)
	to.Start(t, 1)

	from.Update(t, pr.used, pause) // its consumer does so; the other has none
	for _, name := range pr.names() {
		moveHost(t, from, to, name)
	}
	for _, m := range pr.machines {
		_, secret := to.Manifests(m)
		to.Create(t, secret)
	}
	for _, name := range pr.names() {
		dropMoved(t, from, name)
	}
	to.Update(t, pr.used, func(h *v1alpha1.BareMetalHost) { delete(h.Annotations, v1alpha1.PausedAnnotation) })

	pr.resumed(t, to, pr.used, v1alpha1.StateProvisioned)
	pr.resumed(t, to, pr.idle, v1alpha1.StateAvailable)
	onceMore(t, to)
	onceMore(t, from)
	pr.untouched(t)
}

func pause(h *v1alpha1.BareMetalHost) {
	metav1.SetMetaDataAnnotation(&h.ObjectMeta, v1alpha1.PausedAnnotation, "metal3.io/capm3")
}

// moveHost makes the host in another cluster, before its Secret is there.
func moveHost(t *testing.T, from, to *plant.Plant, name string) {
	t.Helper()
	old := from.Hosts.Life(name).Now
	h := &v1alpha1.BareMetalHost{
		ObjectMeta: metav1.ObjectMeta{Namespace: to.Namespace, Name: name, Labels: old.Labels, Annotations: old.Annotations, Finalizers: old.Finalizers},
		Spec:       old.Spec,
	}
	to.Create(t, h)
}

// dropMoved removes a host from where it was, in clusterctl's three calls.
func dropMoved(t *testing.T, p *plant.Plant, name string) {
	t.Helper()
	p.Update(t, name, func(h *v1alpha1.BareMetalHost) {
		h.Annotations = map[string]string{v1alpha1.DeleteForMoveAnnotation: ""}
	})
	p.Delete(t, name)
	h := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name}}
	free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":[]}}`))
	if err := client.IgnoreNotFound(p.Kube.Client.Patch(t.Context(), h, free)); err != nil {
		t.Fatal(err)
	}
	p.Await(t, name, "gone", plant.Gone)
}

// resumed wants a host that has gone on in a state, and whose new log knows of
// no inspection and of no power that was changed.
func (pr pair) resumed(t *testing.T, p *plant.Plant, name string, state v1alpha1.ProvisioningState) {
	t.Helper()
	life := p.Await(t, name, "resumed", func(l plant.Life) bool { return plant.Shows(state)(l) && l.Now.Status.PoweredOn && copied(l) })
	if diff := cmp.Diff([]v1alpha1.ProvisioningState{v1alpha1.StateNone, state}, life.States()); diff != "" {
		t.Errorf("%s showed (-want +got):\n%s", name, diff)
	}
	for _, e := range history(t, p.Bus(t), bus.HistoryFilter{UID: string(life.Now.UID)}) {
		section, fact, err := event.ParseType(e.Type())
		if err != nil {
			t.Fatal(err)
		}
		if fact == event.FirmwareSeen { // nobody here has read it, and it is none of this BMC's
			continue
		}
		if section == event.SectionInspection || section == event.SectionProvisioning || event.UnderWay(fact) {
			t.Errorf("%s has an event %s", name, e.ID())
		}
	}
}
