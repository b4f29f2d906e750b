package metalbus_test

import (
	"slices"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/lifecycle"
	"github.com/metalbus/metalbus/services/metalbus"
)

func TestNamesAreSortedAsPeopleCount(t *testing.T) {
	want := []string{"a", "sim-1", "sim-2", "sim-2b", "sim-10", "sim-10/x2", "sim-10/x10", "tim"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, metalbus.Natural)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhenAHostIsAsAsked(t *testing.T) {
	on, off := true, false
	image := &v1alpha1.Image{URL: "http://192.0.2.9/a.iso"}
	known := func(change func(*lifecycle.Host)) lifecycle.Host {
		h := lifecycle.Host{UID: "u", Rev: 5, Intent: event.Intent{Spec: v1alpha1.BareMetalHostSpec{
			Online: true, Image: image, BMC: v1alpha1.BMCDetails{Address: "redfish://192.0.2.1/", CredentialsName: "x"},
		}}}
		h.Registration.Registered, h.Inspection.Done = true, true
		h.Provisioning.Phase, h.Provisioning.Image, h.Power.On = event.Deployed, *image, &on
		change(&h)
		return h
	}
	tests := map[string]struct {
		host lifecycle.Host
		want bool
	}{
		"provisioned and on":          {known(func(*lifecycle.Host) {}), true},
		"provisioned, to be off":      {known(func(h *lifecycle.Host) { h.Intent.Spec.Online = false }), false},
		"provisioned, power unknown":  {known(func(h *lifecycle.Host) { h.Power.On = nil }), false},
		"another image is wanted":     {known(func(h *lifecycle.Host) { h.Provisioning.Image.URL = "http://192.0.2.9/b.iso" }), false},
		"an operation is under way":   {known(func(h *lifecycle.Host) { h.Power.Op = &event.Op{Kind: event.Reboot} }), false},
		"a problem":                   {known(func(h *lifecycle.Host) { h.Power.Problem = &event.Problem{} }), false},
		"being deleted":               {known(func(h *lifecycle.Host) { h.Intent.DeletedAt = noon() }), false},
		"paused in the middle":        {known(func(h *lifecycle.Host) { h.Intent.Paused, h.Provisioning.Phase = true, event.Deploying }), true},
		"detached":                    {known(func(h *lifecycle.Host) { h.Registration.Detached = true }), true},
		"available, an image to come": {known(func(h *lifecycle.Host) { h.Provisioning = event.Provisioning{Phase: event.Prepared} }), false},
		"available": {known(func(h *lifecycle.Host) {
			h.Intent.Spec.Image, h.Provisioning = nil, event.Provisioning{Phase: event.Prepared}
		}), true},
		"available, off as asked": {known(func(h *lifecycle.Host) {
			h.Intent.Spec.Online, h.Power.On, h.Provisioning = false, &off, event.Provisioning{Phase: event.Prepared}
		}), true},
		"externally provisioned": {known(func(h *lifecycle.Host) {
			h.Intent.Spec.Image, h.Provisioning = nil, event.Provisioning{Phase: event.External}
		}), true},
		"registering":   {known(func(h *lifecycle.Host) { *h = lifecycle.Host{Rev: 1, Intent: h.Intent} }), false},
		"without a BMC": {lifecycle.Host{UID: "u", Rev: 1}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := metalbus.Settled(tc.host); got != tc.want {
				t.Errorf("got %v, in state %s", got, lifecycle.Stage(tc.host))
			}
		})
	}
}

// known are the hosts and the events of a desk.
func (d *desk) known() (hosts []lifecycle.Host, events []cloudevents.Event) {
	d.t.Helper()
	for h, err := range d.bus.Hosts(d.t.Context()) {
		if err != nil {
			d.t.Fatal(err)
		}
		hosts = append(hosts, h)
	}
	for e, err := range d.bus.History(d.t.Context(), bus.HistoryFilter{}, false) {
		if err != nil {
			d.t.Fatal(err)
		}
		events = append(events, e)
	}
	return hosts, events
}

func TestWhatIsShownOfHosts(t *testing.T) {
	hosts, events := newDesk(t).known()
	frame := strings.Join(metalbus.Frame(hosts, events), "\n")
	golden(t, "frame.txt", localTimes(frame)+"\n")
	golden(t, "line.txt", metalbus.Line(hosts)+"\n"+metalbus.Line(nil)+"\n")
	golden(t, "report.txt", metalbus.Report(hosts[:1], events, map[string]int{"status": 6, "event": 9}, 40))
}

// localTimes hides the time zone of whoever runs the test.
func localTimes(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if len(l) > 10 && l[4] == ':' && l[7] == ':' {
			lines[i] = "  ??" + l[4:]
		}
	}
	return strings.Join(lines, "\n")
}
