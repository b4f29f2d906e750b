package ironic

import (
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func TestInspect(t *testing.T) {
	again := func(h *lifecycle.Host) { h.Provisioning.Phase = event.Prepared; h.Intent.InspectRequest = "r1" }
	inspected := func(n *ironic.Node) { n.InspectionFinishedAt = start }
	fastMode := func(h *lifecycle.Host) { h.Intent.Spec.InspectionMode = v1alpha1.InspectionModeFast }
	waits := func(w *wish) { w.waits = "the image to be built" }
	check(t, event.Inspect, view.inspect, map[string]row{
		"a manageable node is inspected":                      {subject{state: "manageable"}, "needs inspect"},
		"an available one becomes manageable first":           {subject{state: "available"}, "needs manage"},
		"what is known already is taken":                      {subject{state: "manageable", node: inspected}, "done"},
		"but not if it is asked for anew":                     {subject{state: "manageable", node: inspected, host: again}, "needs inspect"},
		"what came of it is taken":                            {subject{state: "manageable", op: writeInspect, host: again, node: inspected}, "done"},
		"a database lost meanwhile begins it anew":            {subject{state: "manageable", op: writeInspect}, "needs inspect"},
		"a node that does not know the mode is told first":    {subject{state: "manageable", host: fastMode, node: func(n *ironic.Node) { n.InspectInterface = "agent" }}, "needs configure"},
		"a node that cleans when it should not is told first": {subject{state: "manageable", host: func(h *lifecycle.Host) { h.Intent.Spec.AutomatedCleaningMode = v1alpha1.CleaningModeDisabled }, node: func(n *ironic.Node) { yes := true; n.AutomatedClean = &yes }}, "needs configure"},
		"a ramdisk that is being built is waited for":         {subject{state: "manageable", wish: waits}, "wait"},
		"asking the BMC needs no ramdisk":                     {subject{state: "manageable", wish: waits, host: fastMode}, "needs inspect"},
		"inspecting":                                          {subject{state: "inspecting", op: writeInspect}, "wait"},
		"stuck in inspecting":                                 {subject{state: "inspecting", op: writeInspect, idle: time.Hour}, "needs recover"},
		"waiting for the agent":                               {subject{state: "inspect wait", op: writeInspect, idle: time.Hour}, "wait"},
		"waiting for the agent in vain":                       {subject{state: "inspect wait", op: writeInspect, idle: 2 * time.Hour}, "needs abort"},
		"waiting for an agent that is not listened to":        {subject{state: "inspect wait", op: writeInspect, node: maintained}, "needs unmaintain"},
		"failed":                      {subject{state: "inspect failed", op: writeInspect, node: lastError("Redfish exception")}, "broken Inspection"},
		"failed without a word":       {subject{state: "inspect failed", op: writeInspect}, "broken Inspection"},
		"failed in vain waiting":      {subject{state: "inspect failed", op: writeAbort, node: lastError("Inspection was aborted by request.")}, "broken Timeout"},
		"failed before":               {subject{state: "inspect failed", node: lastError("x")}, "needs inspect"},
		"aborted by somebody":         {subject{state: "inspect failed", op: writeInspect, node: lastError("Inspection was aborted by request.")}, "needs inspect"},
		"a node that was not cleaned": {subject{state: "clean failed", node: cleanFault}, "needs unmaintain"},
		"a node that was not cleaned, out of maintenance": {subject{state: "clean failed"}, "needs manage"},
		"a machine in use is not inspected":               {subject{state: "active"}, "broken Conflict"},
		"a dead BMC":                                      {subject{state: "manageable", node: powerFault}, "broken Credentials"},
		"a rescue":                                        {subject{state: "rescue"}, "broken Conflict"},
	})
}

// A reboot that may interrupt work is asked for: the inspection begins anew, once.
func TestInspectIsInterrupted(t *testing.T) {
	v := subject{state: "inspect wait", op: writeInspect}.view(t, event.Inspect)
	v.host.Intent.Reboots = []event.RebootRequest{{ID: "1", Force: true}}
	if got := brief(v.inspect()); got != "needs abort" {
		t.Errorf("asked for: %s", got)
	}
	claim := func(step string) {
		v.host = lifecycle.Apply(v.host, lifecycle.Claimed{Kind: event.Inspect, Step: step}, start)
		v.host = lifecycle.Apply(v.host, lifecycle.Accepted{Kind: event.Inspect}, start)
	}
	claim(writeAbort)
	v.node.ProvisionState, v.node.LastError = "inspect failed", "Inspection was aborted by request."
	if got := brief(v.inspect()); got != "needs inspect" {
		t.Errorf("after our own abort: %s", got)
	}
	claim(writeInspect)
	v.node.ProvisionState = "inspect wait"
	if got := brief(v.inspect()); got != "wait" {
		t.Errorf("served: %s", got)
	}
}

func TestDeployIsInterrupted(t *testing.T) {
	v := subject{state: "wait call-back", op: writeDeploy, host: func(h *lifecycle.Host) { h.Provisioning.Phase = event.Deploying }}.view(t, event.Deploy)
	v.host.Intent.Reboots = []event.RebootRequest{{ID: "1", Force: true}}
	if got := brief(v.deploy()); got != "needs undeploy" {
		t.Errorf("asked for: %s", got)
	}
	v.host = lifecycle.Apply(v.host, lifecycle.Claimed{Kind: event.Deploy, Step: writeUndeploy}, start)
	v.host = lifecycle.Apply(v.host, lifecycle.Accepted{Kind: event.Deploy}, start)
	v.node.ProvisionState = "available"
	if got := brief(v.deploy()); got != "needs deploy" {
		t.Errorf("after that: %s", got)
	}
}

func TestPrepare(t *testing.T) {
	table := func(v view) lifecycle.Outlook {
		c, err := v.cleaning()
		if err != nil {
			p, _ := ofHost(v.kind, err)
			return lifecycle.Broken{Problem: p}
		}
		return v.prepare(c)
	}
	size := 100
	raid := func(h *lifecycle.Host) {
		h.Intent.Spec.RAID = &v1alpha1.RAIDConfig{HardwareRAIDVolumes: []v1alpha1.HardwareRAIDVolume{{Level: "1", SizeGibibytes: &size}}}
	}
	all := func(h *lifecycle.Host) {
		h.Intent.Spec.RAID = &v1alpha1.RAIDConfig{HardwareRAIDVolumes: []v1alpha1.HardwareRAIDVolume{{Level: "1"}}}
	}
	marked := func(n *ironic.Node) { n.Extra[markOp] = "e1/prepare-2" }
	firmware := func(h *lifecycle.Host) {
		h.Intent.Firmware = &event.FirmwareWish{Updates: []v1alpha1.FirmwareUpdate{{Component: "bmc", URL: "http://192.0.2.80/bmc"}}}
	}
	check(t, event.Prepare, table, map[string]row{
		"nothing to do":                        {subject{state: "manageable"}, "done"},
		"nothing to do with an available node": {subject{state: "available"}, "done"},
		"RAID":                                 {subject{state: "manageable", host: raid}, "needs clean"},
		"RAID of an available node":            {subject{state: "available", host: raid}, "needs manage"},
		"RAID with the wrong interface":        {subject{state: "manageable", host: raid, node: func(n *ironic.Node) { n.RAIDInterface = "agent" }}, "needs configure"},
		"firmware":                             {subject{state: "manageable", host: firmware}, "needs clean"},
		"firmware with an Ironic too old":      {subject{state: "manageable", host: firmware, version: 82}, "broken Unsupported"},
		"cleaning":                             {subject{state: "cleaning", op: writeClean, host: raid}, "wait"},
		"waiting for the agent":                {subject{state: "clean wait", op: writeClean, host: raid}, "wait"},
		"waiting for an agent that is not listened to":        {subject{state: "clean wait", op: writeClean, host: raid, node: maintained}, "needs unmaintain"},
		"waiting for an agent in vain":                        {subject{state: "clean wait", op: writeClean, host: raid, idle: 2 * time.Hour}, "needs abort"},
		"cleaned":                                             {subject{state: "manageable", op: writeClean, host: raid, node: marked}, "done"},
		"cleaned, but the node has been made anew meanwhile":  {subject{state: "manageable", op: writeClean, host: raid}, "needs clean"},
		"refused, and to be tried again":                      {subject{state: "manageable", op: writeClean, refused: true, host: raid, node: marked}, "needs clean"},
		"failed":                                              {subject{state: "clean failed", op: writeClean, host: raid, node: func(n *ironic.Node) { cleanFault(n); n.LastError = "Clean step failed" }}, "broken Hardware"},
		"failed in vain waiting":                              {subject{state: "clean failed", op: writeAbort, host: raid}, "broken Timeout"},
		"failed before: out of maintenance first":             {subject{state: "clean failed", host: raid, node: cleanFault}, "needs unmaintain"},
		"failed before: then manageable":                      {subject{state: "clean failed", host: raid}, "needs manage"},
		"all space without disks, which Redfish cannot":       {subject{state: "manageable", host: all}, "broken Hardware"},
		"RAID of a machine that must not be powered off":      {subject{state: "manageable", host: func(h *lifecycle.Host) { raid(h); h.Intent.Spec.DisablePowerOff = true }}, "broken Unsupported"},
		"nothing to do with one that must not be powered off": {subject{state: "manageable", host: func(h *lifecycle.Host) { h.Intent.Spec.DisablePowerOff = true }}, "done"},
		"a node whose inspection failed":                      {subject{state: "inspect failed"}, "needs manage"},
		"a machine in use":                                    {subject{state: "active", host: raid}, "broken Conflict"},
		"a node that is stuck":                                {subject{state: "cleaning", op: writeClean, host: raid, idle: 2 * time.Hour}, "needs recover"},
		"RAID while the ramdisk is built":                     {subject{state: "manageable", host: raid, wish: func(w *wish) { w.waits = "the image" }}, "wait"},
	})
}

func TestDeploy(t *testing.T) {
	deploying := func(h *lifecycle.Host) { h.Provisioning.Phase = event.Deploying }
	marked := func(n *ironic.Node) { n.Extra[markOp] = "e1/deploy-2" }
	bare := func(h *lifecycle.Host) { deploying(h); h.Intent.Spec.Image.Checksum = "" }
	check(t, event.Deploy, view.deploy, map[string]row{
		"a manageable node is provided":                 {subject{state: "manageable", host: deploying}, "needs provide"},
		"an available one gets the image":               {subject{state: "available", host: deploying}, "needs deploy"},
		"one that is claimed by somebody else does not": {subject{state: "available", host: deploying, node: func(n *ironic.Node) { n.InstanceUUID = "other" }}, "broken Conflict"},
		"one that is claimed by us does":                {subject{state: "available", host: deploying, node: func(n *ironic.Node) { n.InstanceUUID = uid }}, "needs deploy"},
		"one in maintenance is taken out of it":         {subject{state: "available", host: deploying, node: maintained}, "needs unmaintain"},
		"one with a dead BMC is not":                    {subject{state: "available", host: deploying, node: powerFault}, "broken Credentials"},
		"cleaning before it":                            {subject{state: "clean wait", host: deploying, op: writeProvide}, "wait"},
		"cleaning before it failed":                     {subject{state: "clean failed", host: deploying, op: writeProvide, node: lastError("timeout reached while cleaning")}, "broken Timeout"},
		"cleaning failed before":                        {subject{state: "clean failed", host: deploying}, "needs manage"},
		"deploying":                                     {subject{state: "deploying", host: deploying, op: writeDeploy}, "wait"},
		"waiting for the agent":                         {subject{state: "wait call-back", host: deploying, op: writeDeploy}, "wait"},
		"waiting for the agent in vain":                 {subject{state: "wait call-back", host: deploying, op: writeDeploy, idle: 2 * time.Hour}, "needs abort"},
		"waiting for the agent in vain, older Ironic":   {subject{state: "wait call-back", host: deploying, op: writeDeploy, idle: 2 * time.Hour, version: 96}, "needs undeploy"},
		"given up":                          {subject{state: "deploy failed", host: deploying, op: writeAbort, node: marked}, "broken Timeout"},
		"stuck":                             {subject{state: "deploying", host: deploying, op: writeDeploy, idle: 2 * time.Hour}, "needs recover"},
		"failed":                            {subject{state: "deploy failed", host: deploying, op: writeDeploy, node: func(n *ironic.Node) { marked(n); n.LastError = "checksum mismatch" }}, "broken Image"},
		"what failed before is tried again": {subject{state: "deploy failed", host: deploying, node: lastError("x")}, "needs deploy"},
		"done by us: protected":             {subject{state: "active", host: deploying, op: writeDeploy, node: marked}, "needs protect"},
		"done by us and protected":          {subject{state: "active", host: deploying, op: writeProtect, node: func(n *ironic.Node) { marked(n); n.Protected = true }}, "done"},
		"what is there already is not deployed again": {subject{state: "active", host: deploying, node: func(n *ironic.Node) {
			n.Protected, n.InstanceUUID, n.InstanceInfo = true, uid, map[string]any{"image_source": "http://192.0.2.80/os.qcow2"}
		}}, "done"},
		"what somebody else has deployed is let be":          {subject{state: "active", host: deploying, node: func(n *ironic.Node) { n.InstanceUUID = "other" }}, "broken Conflict"},
		"an image without a checksum":                        {subject{state: "available", host: bare}, "broken Image"},
		"cleaning of a machine that must not be powered off": {subject{state: "available", host: func(h *lifecycle.Host) { deploying(h); h.Intent.Spec.DisablePowerOff = true }}, "broken Unsupported"},
		"no cleaning of one that must not be powered off": {subject{state: "available", host: func(h *lifecycle.Host) {
			deploying(h)
			h.Intent.Spec.DisablePowerOff, h.Intent.Spec.AutomatedCleaningMode = true, v1alpha1.CleaningModeDisabled
		}}, "needs deploy"},
		"a node in error":         {subject{state: "error", host: deploying}, "broken Backend"},
		"given up, older Ironic":  {subject{state: "available", host: deploying, op: writeUndeploy, version: 96}, "broken Timeout"},
		"a ramdisk that is built": {subject{state: "available", host: deploying, wish: func(w *wish) { w.waits = "the image" }}, "wait"},
	})
}

func TestUndeploy(t *testing.T) {
	un := func(h *lifecycle.Host) { h.Provisioning.Phase = event.Undeploying }
	protected := func(reason string) func(*ironic.Node) {
		return func(n *ironic.Node) { n.Protected, n.ProtectedReason = true, reason }
	}
	check(t, event.Undeploy, view.undeploy, map[string]row{
		"an active node": {subject{state: "active", host: un, node: protected(reasonProtected)}, "needs undeploy"},
		"one that cleans when it should not is told first": {subject{state: "active", host: func(h *lifecycle.Host) { un(h); h.Intent.Spec.AutomatedCleaningMode = v1alpha1.CleaningModeDisabled }, node: func(n *ironic.Node) { yes := true; n.AutomatedClean = &yes }}, "needs configure"},
		"one that somebody else protects":                  {subject{state: "active", host: un, node: protected("hands off")}, "broken Conflict"},
		"one that belongs to another object by now":        {subject{state: "active", host: un, node: func(n *ironic.Node) { n.Extra[markHost] = "other" }}, "broken Conflict"},
		"one that must not be powered off":                 {subject{state: "active", host: func(h *lifecycle.Host) { un(h); h.Intent.Spec.DisablePowerOff = true }}, "broken Unsupported"},
		"one with a dead BMC":                              {subject{state: "active", host: un, node: powerFault}, "broken Credentials"},
		"one that failed to deploy":                        {subject{state: "deploy failed", host: un}, "needs undeploy"},
		"one that waits in its deployment":                 {subject{state: "wait call-back", host: un}, "needs undeploy"},
		"one that is deployed":                             {subject{state: "deploying", host: un}, "wait"},
		"one that failed to be serviced":                   {subject{state: "service failed", host: un}, "needs undeploy"},
		"one that waits to be serviced":                    {subject{state: "service wait", host: un, node: protected(reasonProtected)}, "needs abort"},
		"deleting":                                         {subject{state: "deleting", host: un, op: writeUndeploy}, "wait"},
		"cleaning":                                         {subject{state: "clean wait", host: un, op: writeUndeploy}, "wait"},
		"clean":                                            {subject{state: "available", host: un, op: writeUndeploy}, "done"},
		"cleaning failed":                                  {subject{state: "clean failed", host: un, op: writeUndeploy, node: func(n *ironic.Node) { cleanFault(n); n.LastError = "Agent error" }}, "broken Backend"},
		"cleaning failed before: out of maintenance":       {subject{state: "clean failed", host: un, node: cleanFault}, "needs unmaintain"},
		"cleaning failed before: manageable":               {subject{state: "clean failed", host: un}, "needs manage"},
		"then it is cleaned again":                         {subject{state: "manageable", host: un, op: writeManage}, "needs provide"},
		"an adoption that failed ends it without an image": {subject{state: "adopt failed", host: un}, "needs manage"},
		"undeploying failed":                               {subject{state: "error", host: un, op: writeUndeploy}, "broken Backend"},
		"undeploying failed before":                        {subject{state: "error", host: un}, "needs undeploy"},
		"stuck":                                            {subject{state: "deleting", host: un, op: writeUndeploy, idle: 2 * time.Hour}, "needs recover"},
	})
}

func TestService(t *testing.T) {
	wished := func(h *lifecycle.Host) {
		h.Intent.Firmware = &event.FirmwareWish{UpdatesInUse: true, Updates: []v1alpha1.FirmwareUpdate{{Component: "bmc", URL: "http://192.0.2.80/bmc"}}}
	}
	want := func(h *lifecycle.Host) { used(h); wished(h) }
	later := func(h *lifecycle.Host) { want(h); h.Intent.Firmware.UpdatesInUse = false }
	marked := func(n *ironic.Node) { n.Extra[markOp] = "e1/service-2" }
	fault := func(n *ironic.Node) {
		n.Maintenance, n.Fault, n.LastError = true, ironic.FaultService, "Node failed step"
	}
	check(t, event.Service, view.service, map[string]row{
		"nothing to do":                          {subject{state: "active", host: used}, "done"},
		"something to do, but not in use":        {subject{state: "active", host: later}, "done"},
		"something to do":                        {subject{state: "active", host: want}, "needs service"},
		"something to do with an Ironic too old": {subject{state: "active", host: want, version: 82}, "broken Unsupported"},
		"servicing":                              {subject{state: "servicing", host: want, op: writeService}, "wait"},
		"waiting":                                {subject{state: "service wait", host: want, op: writeService}, "wait"},
		"waiting, and called off":                {subject{state: "service wait", host: used, op: writeService}, "needs abort"},
		"done":                                   {subject{state: "active", host: want, op: writeService, node: marked}, "done"},
		"failed":                                 {subject{state: "service failed", host: want, op: writeService, node: fault}, "broken Hardware"},
		"failed before: out of maintenance first": {subject{state: "service failed", host: want, node: fault}, "needs unmaintain"},
		"failed before: again":                    {subject{state: "service failed", host: want}, "needs service"},
		"failed, and called off":                  {subject{state: "service failed", host: used}, "needs abort"},
		"failed, and called off in maintenance":   {subject{state: "service failed", host: used, node: fault}, "needs unmaintain"},
		"failed, and called off with Ironic 29":   {subject{state: "service failed", host: used, version: 96}, "broken Unsupported"},
		"stuck: told, and never deleted":          {subject{state: "servicing", host: want, op: writeService, idle: 2 * time.Hour}, "broken Timeout"},
		"a node that is not in use":               {subject{state: "available", host: wished}, "broken Conflict"},
	})
}
