package ironic

import (
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func TestPowerOn(t *testing.T) {
	on := func(n *ironic.Node) { n.PowerState = ironic.PowerOn }
	check(t, event.PowerOn, view.powerOn, map[string]row{
		"off":                          {subject{state: "active", host: used}, "needs on"},
		"on":                           {subject{state: "active", host: used, node: on}, "done"},
		"on its way":                   {subject{state: "active", host: used, op: writeOn, node: func(n *ironic.Node) { n.TargetPowerState = ironic.PowerOn }}, "wait"},
		"on its way off":               {subject{state: "active", host: used, node: func(n *ironic.Node) { on(n); n.TargetPowerState = ironic.PowerOff }}, "wait"},
		"failed":                       {subject{state: "active", host: used, op: writeOn, node: lastError("Failed to change power state")}, "broken Power"},
		"held, and no target told yet": {subject{state: "active", host: used, op: writeOn, node: func(n *ironic.Node) { n.Reservation = "c1" }}, "wait"},
		"failed without a word":        {subject{state: "active", host: used, op: writeOn}, "broken Power"},
		"failed before":                {subject{state: "active", host: used, node: lastError("x")}, "needs on"},
		"refused":                      {subject{state: "active", host: used, op: writeOn, refused: true}, "needs on"},
		"a dead BMC":                   {subject{state: "active", host: used, node: powerFault}, "broken Credentials"},
		"while the node is busy":       {subject{state: "cleaning"}, "wait"},
		"a failed node is no trouble":  {subject{state: "clean failed", node: func(n *ironic.Node) { n.TargetProvisionState = "available" }}, "needs on"},
	})
}

func TestPowerOff(t *testing.T) {
	on := func(n *ironic.Node) { n.PowerState = ironic.PowerOn }
	to := func(target string) func(*ironic.Node) {
		return func(n *ironic.Node) { on(n); n.TargetPowerState = target }
	}
	hardly := func(h *lifecycle.Host) {
		used(h)
		h.Intent.Reboots = []event.RebootRequest{{ID: "1", Mode: v1alpha1.RebootModeHard}}
	}
	gone := func(h *lifecycle.Host) { leaving(h) }
	check(t, event.PowerOff, view.powerOff, map[string]row{
		"on":                               {subject{state: "active", host: used, node: on}, "needs soft"},
		"on, and hard is asked for":        {subject{state: "active", host: hardly, node: on}, "needs hard"},
		"on, and the host is deleted":      {subject{state: "available", host: gone, node: on}, "needs hard"},
		"off":                              {subject{state: "active", host: used}, "done"},
		"accepted is not done":             {subject{state: "active", host: used, op: writeSoft, node: to(ironic.PowerOff)}, "wait"},
		"accepted long ago":                {subject{state: "active", host: used, op: writeHard, idle: 2 * time.Hour, node: to(ironic.PowerOff)}, "broken Timeout"},
		"hard, accepted is not done":       {subject{state: "active", host: used, op: writeHard, node: to(ironic.PowerOff)}, "wait"},
		"off, but on its way on":           {subject{state: "active", host: used, node: func(n *ironic.Node) { n.TargetPowerState = ironic.PowerOn }}, "wait"},
		"held, and no target told yet":     {subject{state: "active", host: used, op: writeSoft, node: func(n *ironic.Node) { on(n); n.Reservation = "c1" }}, "wait"},
		"soft had no effect":               {subject{state: "active", host: used, op: writeSoft, node: func(n *ironic.Node) { on(n); n.LastError = "timed out" }}, "needs hard"},
		"hard had no effect":               {subject{state: "active", host: used, op: writeHard, node: func(n *ironic.Node) { on(n); n.LastError = "refused" }}, "broken Power"},
		"hard had no effect, no word":      {subject{state: "active", host: used, op: writeHard, node: on}, "broken Power"},
		"hard is asked for meanwhile":      {subject{state: "active", host: hardly, op: writeSoft, node: to(ironic.PowerOff)}, "needs hard"},
		"an inspection is ended":           {subject{state: "inspect wait", host: gone, node: to("")}, "needs abort"},
		"an inspection that cannot be yet": {subject{state: "inspecting", host: gone, node: on}, "wait"},
		"after the end of an inspection": {subject{state: "inspect failed", host: gone, op: writeAbort, node: func(n *ironic.Node) {
			on(n)
			n.TargetProvisionState, n.LastError = "manageable", "Inspection was aborted by request."
		}}, "needs manage"},
		"and then":                         {subject{state: "manageable", host: gone, op: writeManage, node: func(n *ironic.Node) { on(n); n.LastError = "Inspection was aborted by request." }}, "needs hard"},
		"a manual cleaning is ended":       {subject{state: "clean wait", node: func(n *ironic.Node) { on(n); n.TargetProvisionState = "manageable" }}, "needs abort"},
		"an automated cleaning is awaited": {subject{state: "clean wait", node: func(n *ironic.Node) { on(n); n.TargetProvisionState = "available" }}, "wait"},
		"but not by a host that goes":      {subject{state: "clean wait", host: gone, node: func(n *ironic.Node) { on(n); n.TargetProvisionState = "available" }}, "needs abort"},
		"a cleaning that is not wanted":    {subject{state: "clean wait", host: func(h *lifecycle.Host) { h.Intent.Spec.AutomatedCleaningMode = v1alpha1.CleaningModeDisabled }, node: on}, "needs abort"},
		"a cleaning at work":               {subject{state: "cleaning", host: gone, node: on}, "wait"},
		"after a cleaning that failed":     {subject{state: "clean failed", host: gone, node: func(n *ironic.Node) { on(n); n.TargetProvisionState = "available" }}, "needs hard"},
		"never to be powered off":          {subject{state: "active", host: func(h *lifecycle.Host) { used(h); h.Intent.Spec.DisablePowerOff = true }, node: on}, "broken Unsupported"},
		"a dead BMC":                       {subject{state: "active", host: used, node: func(n *ironic.Node) { powerFault(n); n.PowerState = "" }}, "broken Credentials"},
		"another object's node":            {subject{state: "active", host: used, node: func(n *ironic.Node) { on(n); n.Extra[markHost] = "other" }}, "broken Conflict"},
	})
}

func TestReboot(t *testing.T) {
	never := func(h *lifecycle.Host) { used(h); h.Intent.Spec.DisablePowerOff = true }
	on := func(n *ironic.Node) { n.PowerState = ironic.PowerOn }
	check(t, event.Reboot, view.reboot, map[string]row{
		"on":                           {subject{state: "active", host: never, node: on}, "needs reboot"},
		"on its way":                   {subject{state: "active", host: never, op: writeReboot, node: func(n *ironic.Node) { on(n); n.TargetPowerState = ironic.Rebooting }}, "wait"},
		"done":                         {subject{state: "active", host: never, op: writeReboot, node: on}, "done"},
		"held, and no target told yet": {subject{state: "active", host: never, op: writeReboot, node: func(n *ironic.Node) { on(n); n.Reservation = "c1" }}, "wait"},
		"refused":                      {subject{state: "active", host: never, op: writeReboot, refused: true, node: on}, "needs reboot"},
		"failed":                       {subject{state: "active", host: never, op: writeReboot, node: func(n *ironic.Node) { on(n); n.LastError = "refused" }}, "broken Power"},
		"ended up off":                 {subject{state: "active", host: never, op: writeReboot}, "needs on"},
		"a dead BMC":                   {subject{state: "active", host: never, node: powerFault}, "broken Credentials"},
		"a busy machine":               {subject{state: "servicing", host: never, node: on}, "wait"},
	})
}
