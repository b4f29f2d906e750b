package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// What others have done is told with who is suspected, as a warning where it hurts;
// what we have done ourselves is not.
func TestWhatOthersDoIsTold(t *testing.T) {
	off := false
	const who = "another client of Ironic"
	for name, c := range map[string]struct {
		fact   lifecycle.Observed
		want   []lifecycle.Announcement
		change string
		behind []string
	}{
		"the power": {
			lifecycle.Observed{What: event.PowerChanged, On: &off, Suspect: who},
			[]lifecycle.Announcement{{Reason: "PowerChanged", Message: "The host was found powered off; metalbus did not do that, suspected is another client of Ironic"}},
			"the power was changed, which metalbus did not do; suspected is another client of Ironic", nil,
		},
		"the power, by us": {lifecycle.Observed{What: event.PowerChanged, On: &off}, nil, "", nil},
		"maintenance": {
			lifecycle.Observed{What: event.MaintenanceChanged, Maintenance: "maintenance, new fans", Suspect: who},
			[]lifecycle.Announcement{{Reason: "MaintenanceSet", Message: "The backend is to leave the host alone: maintenance, new fans; metalbus did not do that, suspected is another client of Ironic", Warning: true}},
			"the backend is to leave the host alone (maintenance, new fans), which metalbus did not do; suspected is another client of Ironic",
			[]string{"the backend is to leave the host alone (maintenance, new fans)"},
		},
		"the end of maintenance": {
			lifecycle.Observed{What: event.MaintenanceChanged, Suspect: who},
			[]lifecycle.Announcement{{Reason: "MaintenanceEnded", Message: "The backend has to leave the host alone no longer; metalbus did not do that, suspected is another client of Ironic"}},
			"the backend has to leave the host alone no longer, which metalbus did not do; suspected is another client of Ironic", nil,
		},
		"a state": {
			lifecycle.Observed{What: event.StateChanged, Astray: "available", Suspect: who},
			[]lifecycle.Announcement{{Reason: "StateChangedByOthers", Warning: true, Message: `The backend has the host in state "available", though it is provisioned; metalbus did not do that, suspected is another client of Ironic. Nothing is done to the machine because of it`}},
			`the backend has the host in state "available", which metalbus did not do; suspected is another client of Ironic`,
			[]string{`the backend has the host in state "available"`},
		},
		"the state as it was": {
			lifecycle.Observed{What: event.StateChanged, Suspect: who},
			[]lifecycle.Announcement{{Reason: "StateRestoredByOthers", Message: "The backend has the host in the state of one that is provisioned again; metalbus did not do that, suspected is another client of Ironic"}},
			"the backend has the host in the state of such a host again, which metalbus did not do; suspected is another client of Ironic", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := registered(event.Deployed)
			after := lifecycle.Apply(before, c.fact, epoch)
			if diff := cmp.Diff(c.want, lifecycle.Announce(before, after, event.SectionPower, c.fact.What)); diff != "" {
				t.Errorf("announced (-want +got):\n%s", diff)
			}
			if got := lifecycle.ChangeOf(c.fact).Message; got != c.change {
				t.Errorf("the event says %q", got)
			}
			if diff := cmp.Diff(c.behind, lifecycle.Behind(after)); diff != "" {
				t.Errorf("behind our back (-want +got):\n%s", diff)
			}
			if was, is := lifecycle.Stage(before), lifecycle.Stage(after); was != is {
				t.Errorf("the host went from %s to %s", was, is)
			}
		})
	}
}
