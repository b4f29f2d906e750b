package system_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/plant"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

// A whole fleet in use is taken out of a cluster as clusterctl does it, each host
// by three calls within milliseconds. No machine is told anything.
func TestAFleetThatIsMovedAwayIsLeftAlone(t *testing.T) {
	p := newPlant(t)
	p.Start(t, 2)
	machines, before := map[string]*bmcsim.Host{}, map[string][]string{}
	var names []string
	for range fleetSize(t) {
		h, m := p.Declare(t, plant.WithImage)
		machines[h.Name] = m
		names = append(names, h.Name)
	}
	p.AwaitAll(t, names, "in use", plant.InUse)
	for name, m := range machines {
		before[name] = plant.Did(m)
	}
	for _, name := range names {
		takeOut(t, p, name)
	}
	p.AwaitAll(t, names, "gone", plant.Gone)
	onceMore(t, p)
	for name, m := range machines {
		if diff := cmp.Diff(before[name], plant.Did(m)); diff != "" {
			t.Errorf("what was done to %s meanwhile (-before +after):\n%s", name, diff)
		}
		if v := m.View(); v.Power != "On" || v.Running.Image != plant.LiveISO {
			t.Errorf("%s is %s and runs %q", name, v.Power, v.Running.Image)
		}
	}
}

// takeOut is clusterctl's end of a move for a host that may go before its last call.
func takeOut(t *testing.T, p *plant.Plant, name string) {
	t.Helper()
	h := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name}}
	mark := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/metadata/annotations","value":{"`+v1alpha1.DeleteForMoveAnnotation+`":""}}]`))
	if err := p.Kube.Client.Patch(t.Context(), h, mark); err != nil {
		t.Fatal(err)
	}
	p.Delete(t, name)
	free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":[]}}`))
	if err := client.IgnoreNotFound(p.Kube.Client.Patch(t.Context(), h, free)); err != nil {
		t.Fatal(err)
	}
}
