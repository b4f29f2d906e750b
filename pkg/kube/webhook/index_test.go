package webhook

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
)

// After any changes of any hosts the index finds what a look at each host would
// find, and holds nothing else.
func TestIndexFindsWhatThereIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := newFakeHosts()
		i := newIndex(h)
		there := map[string]*v1alpha1.BareMetalHost{}
		for range rapid.IntRange(0, 30).Draw(t, "changes") {
			o := newHost(fmt.Sprint("h", rapid.IntRange(0, 4).Draw(t, "host")),
				address(rapid.SampledFrom([]string{"", "redfish://a", "redfish://A:443", "ipmi://b", "nonsense://"}).Draw(t, "address")),
				nics(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) v1alpha1.NetworkInterface {
					return v1alpha1.NetworkInterface{Name: "e", HostNetworkAttachment: v1alpha1.HostNetworkAttachmentRef{
						Name: rapid.SampledFrom([]string{"", "x", "storage"}).Draw(t, "attachment"),
					}}
				}), 0, 2).Draw(t, "nics")...),
				func(h *v1alpha1.BareMetalHost) {
					h.Spec.BootMACAddress = rapid.SampledFrom([]string{"", "00:00:5e:00:53:0a", "00:00:5E:00:53:0A"}).Draw(t, "mac")
				})
			if rapid.Bool().Draw(t, "drop") {
				h.drop(o)
				delete(there, o.Name)
				continue
			}
			h.put(o)
			there[o.Name] = o
		}
		checkIndex(t, i, there)
		for _, o := range there {
			h.drop(o)
		}
		if len(i.keys)+len(i.uids) > 0 {
			t.Errorf("of no host it still holds %v and %v", i.keys, i.uids)
		}
	})
}

func checkIndex(t *rapid.T, i *index, there map[string]*v1alpha1.BareMetalHost) {
	var all []v1alpha1.BareMetalHost
	for _, o := range there {
		all = append(all, *o)
	}
	slices.SortFunc(all, func(a, b v1alpha1.BareMetalHost) int { return slices.Compare([]string{a.Name}, []string{b.Name}) })
	for _, o := range there {
		want, got := admission.ConflictWarnings(o, all), admission.ConflictWarnings(o, i.like(o))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("conflicts of %s (-want +got)\n%s", o.Name, diff)
		}
	}
	found, err := i.users(newAttachment("access"))
	if err != nil {
		t.Fatal(err)
	}
	want, got := admission.AttachmentUsers("lab", "storage", all), admission.AttachmentUsers("lab", "storage", found)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("users (-want +got)\n%s", diff)
	}
}
