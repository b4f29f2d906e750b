package powermonitor

import (
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type change = func(*lifecycle.Host)

func host(p event.PhaseOfDisk, changes ...change) lifecycle.Host {
	h := lifecycle.Host{UID: "u"}.WithNewest(event.SectionIntent, lifecycle.Meta{Seq: 1, Rev: 1})
	h.Intent.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish://192.0.2.1", CredentialsName: "s"}
	h.Intent.Spec.Online = true
	h.Intent.Credentials = event.SecretRef{Namespace: "lab", Name: "s", Version: "7"}
	h.Registration = event.Registration{Registered: true, Address: h.Intent.Spec.BMC.Address, Good: lifecycle.Credentials(h.Intent)}
	h.Inspection.Done, h.Provisioning.Phase = true, p
	h.Intent.Spec.Image, h.Provisioning.Image = &v1alpha1.Image{URL: "a"}, v1alpha1.Image{URL: "a"}
	for _, c := range changes {
		c(&h)
	}
	return h
}

func known(on bool) change   { return func(h *lifecycle.Host) { h.Power.On = &on } }
func disc(h *lifecycle.Host) { h.Provisioning.Media.URL = "d" }
func wantsDisc(h *lifecycle.Host) {
	h.Intent.Spec.Image, h.Intent.DataImage = &v1alpha1.Image{URL: "a"}, &event.DataImageWish{URL: "d"}
}

func discTried(h *lifecycle.Host) {
	h.Provisioning.Media = event.VirtualCD{Tried: "d", TriedAt: now, Failures: 1}
}
func subscribed(h *lifecycle.Host)       { h.Power.Subscriptions = []event.Subscription{{UID: "s", ID: "1"}} }
func subscriptionLeft(h *lifecycle.Host) { h.Power.Subscriptions[0].GivenUp = true }
func offline(h *lifecycle.Host)          { h.Intent.Spec.Online = false }
func leaving(h *lifecycle.Host)          { h.Intent.DeletedAt = now }
func forced(h *lifecycle.Host)           { h.Intent.ForceDelete = true }
func before(h *lifecycle.Host)           { h.Power.Problem.At = now.Add(-time.Minute) }
func late(h *lifecycle.Host)             { h.Intent.DeletedAt = now.Add(-time.Hour) }
func noOff(h *lifecycle.Host)            { h.Intent.Spec.DisablePowerOff = true }

func reboot(force bool) change {
	return func(h *lifecycle.Host) { h.Intent.Reboots = []event.RebootRequest{{ID: "1", Force: force}} }
}

// firmware is a wish that may be carried out on a host in use.
func firmware(h *lifecycle.Host) {
	h.Power.SeenAt = now
	h.Intent.Firmware = &event.FirmwareWish{ID: "r1", Settings: []event.SettingChange{{Name: "Turbo", To: "Disabled"}}, SettingsInUse: true}
}

func op(k event.Kind) change { return func(h *lifecycle.Host) { h.Power.Op = &event.Op{Kind: k} } }

func failed(times int) change {
	return func(h *lifecycle.Host) {
		h.Power.Problem, h.Power.Failures = &event.Problem{Message: "no", At: now}, times
	}
}

func TestTurn(t *testing.T) {
	for name, c := range map[string]struct {
		host lifecycle.Host
		want string
	}{
		"a provisioned host":                                {host(event.Deployed), "look at power"},
		"an available host":                                 {host(event.Prepared), "look at power"},
		"a host of somebody else's":                         {host(event.External), "look at power"},
		"a host that is being deployed":                     {host(event.Deploying), "nothing"},
		"a paused host":                                     {host(event.Deployed, func(h *lifecycle.Host) { h.Intent.Paused = true }), "nothing"},
		"a detached host":                                   {host(event.Deployed, func(h *lifecycle.Host) { h.Intent.Detached = &event.DetachRequest{} }), "nothing"},
		"a host that the backend lost":                      {host(event.Deployed, func(h *lifecycle.Host) { h.Registration.Lost = true }), "nothing"},
		"a host that is about to be used":                   {host(event.Prepared, func(h *lifecycle.Host) { h.Provisioning.Image = v1alpha1.Image{} }), "nothing"},
		"an operation of a host that is no longer at rest":  {host(event.Undeploying, op(event.PowerOn)), "record on.aborted"},
		"a host that is being deleted":                      {host(event.Prepared, leaving), "look at off"},
		"one whose drive is to be emptied first":            {host(event.Prepared, leaving, disc), "nothing"},
		"one that is being emptied, and takes too long":     {host(event.Prepared, late, forced, disc), "record off.abandoned"},
		"one whose subscription is to be ended first":       {host(event.Prepared, leaving, subscribed), "look at subscription"},
		"one whose subscription could not be ended":         {host(event.Prepared, leaving, subscribed, subscriptionLeft), "look at off"},
		"one with a subscription, and it takes too long":    {host(event.Prepared, late, forced, subscribed), "record off.abandoned"},
		"a subscription that is being made":                 {host(event.Deployed, op(event.Subscribe)), "look at subscription"},
		"a subscription that is being made when it is lost": {host(event.Deployed, op(event.Subscribe), func(h *lifecycle.Host) { h.Registration.Lost = true }), "record subscribe.aborted"},
		"one that must not be switched off":                 {host(event.Prepared, leaving, noOff), "record off.abandoned"},
		"one that cannot be switched off":                   {host(event.Prepared, leaving, failed(4)), "record off.abandoned"},
		"one that could not be switched off yet":            {host(event.Prepared, leaving, failed(3)), "look at off"},
		"one whose power was lost before it was deleted":    {host(event.Prepared, leaving, failed(9), before), "look at off"},
		"one that cannot be switched off and is forced":     {host(event.Prepared, leaving, forced, failed(1)), "record off.abandoned"},
		"one that is forced, and takes too long":            {host(event.Prepared, late, forced, op(event.PowerOff)), "record off.abandoned"},
		"one whose Secret is gone":                          {host(event.Prepared, leaving, func(h *lifecycle.Host) { h.Intent.Credentials.Version = "" }), "look at off"},
		"an operation of a host that the backend lost":      {host(event.Deployed, op(event.PowerOff), func(h *lifecycle.Host) { h.Registration.Lost = true }), "record off.aborted"},
		"one that is being switched on":                     {host(event.Prepared, leaving, op(event.PowerOn)), "record on.aborted"},
		"a host whose image is to go":                       {host(event.Deployed, func(h *lifecycle.Host) { h.Intent.Spec.Image = nil }), "nothing"},
		"a host whose firmware is being changed":            {host(event.Deployed, func(h *lifecycle.Host) { h.Provisioning.Op = &event.Op{Kind: event.Service} }), "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			where, step := turn(c.host, now)
			got := "look at " + string(where)
			if where == lookNowhere {
				got = text(lifecycle.Task{}, step)
			}
			if got != c.want {
				t.Errorf("turn %q, want %q", got, c.want)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	on, off := true, false
	for name, c := range map[string]struct {
		host lifecycle.Host
		now  backend.PowerState
		want string
	}{
		"on and to be on":                              {host(event.Deployed, known(true)), backend.PowerState{On: &on}, "nothing"},
		"found off for the first time":                 {host(event.Deployed), backend.PowerState{On: &off}, "record changed"},
		"found off behind our back":                    {host(event.Deployed, known(true)), backend.PowerState{On: &off}, "record changed"},
		"off and to be on":                             {host(event.Deployed, known(false)), backend.PowerState{On: &off}, "on"},
		"off, and a data image is due before it boots": {host(event.Deployed, known(false), wantsDisc), backend.PowerState{On: &off}, "nothing"},
		"off, and that failed":                         {host(event.Deployed, known(false), wantsDisc, discTried), backend.PowerState{On: &off}, "on"},
		"on and to be off":                             {host(event.Deployed, known(true), offline), backend.PowerState{On: &on}, "off soft"},
		"a soft power-off failed":                      {host(event.Deployed, known(true), offline, failed(1)), backend.PowerState{On: &on}, "off hard"},
		"a reboot":                                     {host(event.Deployed, known(true), reboot(false)), backend.PowerState{On: &on}, "off soft"},
		"a reboot of a host that is off":               {host(event.Deployed, known(false), reboot(false)), backend.PowerState{On: &off}, "record reboot.served"},
		"offline where power-off is disabled":          {host(event.Deployed, known(true), offline, noOff), backend.PowerState{On: &on}, "nothing"},
		"offline and off where power-off is disabled":  {host(event.Deployed, known(false), offline, noOff), backend.PowerState{On: &off}, "nothing"},
		"a reboot of an available host":                {host(event.Prepared, known(true), reboot(false)), backend.PowerState{On: &on}, "nothing"},
		"a forced reboot of an available host":         {host(event.Prepared, known(true), reboot(true)), backend.PowerState{On: &on}, "off soft"},
		"a reboot where power-off is disabled":         {host(event.Deployed, known(true), reboot(false), noOff), backend.PowerState{On: &on}, "reboot soft"},
		"the other way while a switch is under way":    {host(event.Deployed, known(true), op(event.PowerOff)), backend.PowerState{}, "record off.aborted"},
		"a switch that is under way":                   {host(event.Deployed, known(false), op(event.PowerOn)), backend.PowerState{}, "on"},
		"no control of the power":                      {host(event.Deployed, known(false)), backend.PowerState{On: &off, Fault: "no answer"}, "record fault.changed"},
		"still no control of the power":                {host(event.Deployed, known(false), func(h *lifecycle.Host) { h.Power.Fault = "no answer" }), backend.PowerState{On: &off, Fault: "no answer"}, "nothing"},
		"the hardware's report":                        {host(event.Deployed, known(true)), backend.PowerState{On: &on, Health: "Warning"}, "record health.changed"},
		"somebody else did what we could not":          {host(event.Deployed, known(true), failed(2)), backend.PowerState{On: &on}, "record on.succeeded"},
		"off, and its firmware is to be changed":       {host(event.Deployed, known(false), firmware), backend.PowerState{On: &off}, "nothing"},
		"on, and its firmware is to be changed":        {host(event.Deployed, known(true), firmware), backend.PowerState{On: &on}, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			task, step := compare(c.host, found{PowerState: c.now})
			if got := text(task, step); got != c.want {
				t.Errorf("compared to %q, want %q", got, c.want)
			}
		})
	}
}

// text is a decision in words.
func text(t lifecycle.Task, s lifecycle.Step) string {
	switch s := s.(type) {
	case lifecycle.Nothing:
		return "nothing"
	case lifecycle.Record:
		return "record " + s.Fact.Name()
	default:
		if t.Mode != "" {
			return string(t.Kind) + " " + string(t.Mode)
		}
		return string(t.Kind)
	}
}
