package powermonitor

import (
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// newest sets the newest fact of a section.
func newest(s event.Section, rev uint64, fact string, at time.Time) change {
	return func(h *lifecycle.Host) { *h = h.WithNewest(s, lifecycle.Meta{Seq: rev, Rev: rev, Fact: fact, At: at}) }
}

// What our operations may have changed is not blamed on others.
func TestWhoseDoing(t *testing.T) {
	const power, disk, hardware = event.SectionPower, event.SectionProvisioning, event.SectionInspection
	long := now.Add(-time.Hour)
	for name, c := range map[string]struct {
		host lifecycle.Host
		seen bool // as it is known, since that
		ours bool
	}{
		"seen by us last":                        {host(event.Deployed, newest(disk, 5, "deploy.succeeded", now), newest(power, 6, event.PowerChanged, now)), false, false},
		"switched by us last, to a good end":     {host(event.Deployed, newest(power, 6, "on.succeeded", now)), false, false},
		"switched by us in vain":                 {host(event.Deployed, newest(power, 6, "off.failed", long)), true, true},
		"switched by us until it was not wanted": {host(event.Deployed, newest(power, 6, "off.aborted", long)), true, true},
		"deployed by us last":                    {host(event.Deployed, newest(power, 5, event.PowerChanged, now), newest(disk, 6, "deploy.succeeded", now)), false, true},
		"deployed, and seen since":               {host(event.Deployed, newest(power, 5, event.PowerChanged, now), newest(disk, 6, "deploy.succeeded", now)), true, false},
		"deployed long ago":                      {host(event.Deployed, newest(power, 5, event.PowerChanged, long), newest(disk, 6, "deploy.succeeded", long)), false, false},
		"inspected by us last":                   {host(event.Prepared, newest(power, 5, "on.succeeded", now), newest(hardware, 6, "inspect.succeeded", now)), false, true},
		"not seen for want of an answer":         {host(event.Deployed, newest(disk, 5, "deploy.succeeded", now), newest(power, 6, event.Stalled, now)), false, true},
		"known from its status":                  {host(event.Deployed), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newCalm()
			if c.seen {
				m.note(c.host, now)
			}
			if got := m.broken(c.host, now); got != c.ours {
				t.Errorf("it may be our doing: %v", got)
			}
		})
	}
}

// What others have done is told one thing at a time, with who is suspected.
func TestWhatOthersDo(t *testing.T) {
	on, off := true, false
	const ironic, somebody = "another client of Ironic", "another client of its backend"
	theirs := func(maintenance, astray string) change {
		return func(h *lifecycle.Host) { h.Power.Maintenance, h.Power.Astray = maintenance, astray }
	}
	observed := func(what string, on *bool, maintenance, astray, suspect string) lifecycle.Observed {
		return lifecycle.Observed{What: what, On: on, Maintenance: maintenance, Astray: astray, Suspect: suspect}
	}
	for name, c := range map[string]struct {
		host lifecycle.Host
		now  found
		want lifecycle.Observed // none for nothing new
	}{
		"found off": {
			host(event.Deployed, known(true)),
			found{PowerState: backend.PowerState{On: &off, Others: ironic}},
			observed(event.PowerChanged, &off, "", "", "its own system, somebody at the machine or its BMC, or another client of Ironic"),
		},
		"found on": {
			host(event.Deployed, known(false)),
			found{PowerState: backend.PowerState{On: &on}},
			observed(event.PowerChanged, &on, "", "", "somebody at the machine or its BMC"),
		},
		"found off after an operation":   {host(event.Deployed, known(true)), found{PowerState: backend.PowerState{On: &off}, ours: true}, observed(event.PowerChanged, &off, "", "", "")},
		"found off for the first time":   {host(event.Deployed), found{PowerState: backend.PowerState{On: &off}}, observed(event.PowerChanged, &off, "", "", "")},
		"maintenance":                    {host(event.Deployed, known(true)), found{PowerState: backend.PowerState{On: &on, Maintenance: "x", Others: ironic}, ours: true}, observed(event.MaintenanceChanged, &on, "x", "", ironic)},
		"its end":                        {host(event.Deployed, known(true), theirs("x", "")), found{PowerState: backend.PowerState{On: &on}}, observed(event.MaintenanceChanged, &on, "", "", somebody)},
		"its end by us":                  {host(event.Deployed, known(true), theirs("x", "")), found{PowerState: backend.PowerState{On: &on}, ours: true}, observed(event.MaintenanceChanged, &on, "", "", "")},
		"its end with its node":          {host(event.Deployed, known(true), theirs("x", "")), found{PowerState: backend.PowerState{On: &on}, anew: true}, observed(event.MaintenanceChanged, &on, "", "", "")},
		"a state":                        {host(event.Deployed, known(true)), found{PowerState: backend.PowerState{On: &on, Astray: "deleting", Passing: true, Others: ironic}}, observed(event.StateChanged, &on, "", "deleting", ironic)},
		"a state on its way":             {host(event.Deployed, known(true), theirs("", "deleting")), found{PowerState: backend.PowerState{On: &on, Astray: "cleaning", Passing: true}}, lifecycle.Observed{}},
		"a state that it came to":        {host(event.Deployed, known(true), theirs("", "deleting")), found{PowerState: backend.PowerState{On: &on, Astray: "available", Others: ironic}}, observed(event.StateChanged, &on, "", "available", ironic)},
		"the state of such a host again": {host(event.Deployed, known(true), theirs("", "available")), found{PowerState: backend.PowerState{On: &on, Others: ironic}}, observed(event.StateChanged, &on, "", "", ironic)},
		"what is known":                  {host(event.Deployed, known(true), theirs("x", "available")), found{PowerState: backend.PowerState{On: &on, Maintenance: "x", Astray: "available"}}, lifecycle.Observed{}},
		"power and maintenance at once": {
			host(event.Deployed, known(true)),
			found{PowerState: backend.PowerState{On: &off, Maintenance: "x", Others: ironic}},
			observed(event.PowerChanged, &off, "", "", "its own system, somebody at the machine or its BMC, or another client of Ironic"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, step := compare(c.host, c.now)
			var got lifecycle.Observed
			if r, ok := step.(lifecycle.Record); ok {
				got = r.Fact.(lifecycle.Observed)
			}
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
