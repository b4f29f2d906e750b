package ironic

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

const uid = "0b6c9e36-6f2a-4a44-9d0b-5a3f2f0c8f11"

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// subject is the view of a host whose node is as it should be, in a state.
type subject struct {
	state string
	// op is the operation's last write, "" for none, and whether it was refused.
	op      string
	refused bool
	version int
	host    func(*lifecycle.Host)
	node    func(*ironic.Node)
	wish    func(*wish)
	// idle is how long nothing has happened to the node.
	idle time.Duration
}

func (s subject) view(t *testing.T, k event.Kind) view {
	t.Helper()
	h := lifecycle.Host{UID: uid, Epoch: "e1"}
	h.Intent = event.Intent{Namespace: "lab", Name: "host-a", UID: uid, Credentials: event.SecretRef{Namespace: "lab", Name: "s", Version: "1"}}
	h.Intent.Spec = v1alpha1.BareMetalHostSpec{
		Online: true, BMC: v1alpha1.BMCDetails{Address: "redfish-virtualmedia://192.0.2.10/redfish/v1/Systems/1", CredentialsName: "s"},
		Image: &v1alpha1.Image{URL: "http://192.0.2.80/os.qcow2", Checksum: "http://192.0.2.80/os.sha256"},
	}
	h.Registration.Registered, h.Registration.Node, h.Registration.HardwareProfile = true, "u1", "unknown"
	h.Inspection.Done = true
	h = h.WithNewest(event.SectionIntent, lifecycle.Meta{Seq: 1, Rev: 1, Fact: event.Created, At: start})
	if s.host != nil {
		s.host(&h)
	}
	if s.op != "" {
		h = lifecycle.Apply(h, lifecycle.Started{Kind: k, Step: s.op, Mode: lifecycle.OffMode(h)}, start)
		h = lifecycle.Apply(h, lifecycle.Accepted{Kind: k, Busy: s.refused}, start)
	}
	b := &Backend{set: DefaultSettings()}
	w, err := b.wishFor(h)
	if err != nil {
		t.Fatal(err)
	}
	if s.wish != nil {
		s.wish(&w)
	}
	v := view{kind: k, host: h, set: b.set, wish: w, version: ironic.Version{Minor: 115}}
	if s.version > 0 {
		v.version.Minor = s.version
	}
	v.node = s.ironicNode(v)
	return v
}

// ironicNode is a node that needs no change.
func (s subject) ironicNode(v view) ironic.Node {
	clean := cleans(v.host)
	caps, _ := capabilities("", bootMode(v.host))
	n := ironic.Node{
		UUID: "u1", Name: "lab~host-a", Driver: "redfish", ProvisionState: s.state, PowerState: ironic.PowerOff, Extra: v.marks(), AutomatedClean: &clean,
		DriverInfo:       map[string]any{"redfish_address": "https://192.0.2.10", "redfish_system_id": "/redfish/v1/Systems/1"},
		Properties:       map[string]any{"capabilities": caps, "cpu_arch": "x86_64"},
		InspectInterface: "agent", RAIDInterface: "redfish", DisablePowerOff: v.host.Intent.Spec.DisablePowerOff,
		CreatedAt: start, UpdatedAt: start, ProvisionUpdatedAt: start, SeenAt: start.Add(s.idle),
	}
	if v.host.Intent.Spec.InspectionMode == v1alpha1.InspectionModeFast {
		n.InspectInterface = "redfish"
	}
	if s.node != nil {
		s.node(&n)
	}
	return n
}

// brief is an outlook in short: "needs X", "wait", "done" or the class of what is
// wrong.
func brief(o lifecycle.Outlook) string {
	switch o := o.(type) {
	case lifecycle.Finished:
		return "done"
	case lifecycle.Needs:
		return "needs " + o.Write
	case lifecycle.Underway:
		if o.For == "" || o.Every <= 0 {
			return "a wait for nothing"
		}
		return "wait"
	case lifecycle.Broken:
		if o.Problem.Message == "" || o.Problem.Next == "" || o.Problem.Type == "" {
			return fmt.Sprintf("a problem that says too little: %+v", o.Problem)
		}
		return "broken " + string(o.Problem.Class)
	default:
		return fmt.Sprintf("%T", o)
	}
}

type row struct {
	subject
	want string
}

func check(t *testing.T, k event.Kind, table func(view) lifecycle.Outlook, rows map[string]row) {
	t.Helper()
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			if got := brief(table(r.view(t, k))); got != r.want {
				t.Errorf("%s, want %s", got, r.want)
			}
		})
	}
}

func used(h *lifecycle.Host) { h.Provisioning.Phase = event.Deployed }

func leaving(h *lifecycle.Host) { h.Intent.DeletedAt = start }

func powerFault(n *ironic.Node) {
	n.Fault, n.Maintenance, n.MaintenanceReason = ironic.FaultPower, true, "During sync_power_state, max retries exceeded. Error: HTTP GET returned code 401"
}

func cleanFault(n *ironic.Node) { n.Fault, n.Maintenance = ironic.FaultClean, true }

func lastError(text string) func(*ironic.Node) { return func(n *ironic.Node) { n.LastError = text } }

func maintained(n *ironic.Node) { n.Maintenance = true }

func TestEnroll(t *testing.T) {
	check(t, event.Enroll, view.enroll, map[string]row{
		"a new node is verified":                                     {subject{state: "enroll"}, "needs manage"},
		"an old error does not keep it from being verified":          {subject{state: "enroll", node: lastError("long ago")}, "needs manage"},
		"a node that is being verified is waited for":                {subject{state: "verifying", op: writeManage}, "wait"},
		"a node on its way to that is waited for":                    {subject{state: "enroll", op: writeManage, node: func(n *ironic.Node) { n.TargetProvisionState = "manageable" }}, "wait"},
		"a verification that failed is told":                         {subject{state: "enroll", op: writeManage, node: lastError("Unable to connect to https://192.0.2.10")}, "broken Unreachable"},
		"a wrong password is told as such":                           {subject{state: "enroll", op: writeManage, node: lastError("HTTP GET returned code 401")}, "broken Credentials"},
		"a system that the BMC does not have is told as such":        {subject{state: "enroll", op: writeManage, node: lastError("Resource https://192.0.2.10/redfish/v1/Systems/9 not found")}, "broken Address"},
		"an untrusted certificate is told as such":                   {subject{state: "enroll", op: writeManage, node: lastError("SSLError certificate verify failed")}, "broken TLS"},
		"a verification that was refused is asked for again":         {subject{state: "enroll", op: writeManage, refused: true, node: lastError("locked")}, "needs manage"},
		"a failure without a word is tried again":                    {subject{state: "enroll", op: writeManage}, "needs manage"},
		"a manageable node is registered":                            {subject{state: "manageable", op: writeManage}, "done"},
		"an available node is registered":                            {subject{state: "available"}, "done"},
		"an active node is registered, untouched":                    {subject{state: "active", host: used}, "done"},
		"a node that is cleaned is registered":                       {subject{state: "clean wait"}, "done"},
		"another name is brought up to date":                         {subject{state: "manageable", node: func(n *ironic.Node) { n.Name = "host-a" }}, "needs update"},
		"another address is brought up to date":                      {subject{state: "enroll", node: func(n *ironic.Node) { n.DriverInfo["redfish_address"] = "https://192.0.2.99" }}, "needs update"},
		"another system is brought up to date":                       {subject{state: "manageable", node: func(n *ironic.Node) { delete(n.DriverInfo, "redfish_system_id") }}, "needs update"},
		"a setting that is no longer wanted is removed":              {subject{state: "manageable", node: func(n *ironic.Node) { n.DriverInfo["redfish_verify_ca"] = false }}, "needs update"},
		"what an operator added is let be":                           {subject{state: "manageable", node: func(n *ironic.Node) { n.DriverInfo["redfish_auth_type"] = "basic" }}, "done"},
		"new credentials are brought to a node in use":               {subject{state: "active", host: func(h *lifecycle.Host) { used(h); h.Intent.Credentials.Version = "2" }, node: func(n *ironic.Node) { n.Extra[markCredentials] = "lab/s@1" }}, "needs update"},
		"new credentials cannot be brought to a busy node":           {subject{state: "clean wait", node: func(n *ironic.Node) { n.Extra[markCredentials] = "lab/s@0" }}, "wait"},
		"a node of another driver that never worked is made anew":    {subject{state: "enroll", node: func(n *ironic.Node) { n.Driver = "ipmi" }}, "needs recreate"},
		"a node of another driver that works needs its user":         {subject{state: "active", node: func(n *ironic.Node) { n.Driver = "ipmi" }}, "broken Conflict"},
		"a node that is never powered off is told so":                {subject{state: "manageable", host: func(h *lifecycle.Host) { h.Intent.Spec.DisablePowerOff = true }, node: func(n *ironic.Node) { n.DisablePowerOff = false }}, "needs update"},
		"a node stuck in verifying is made anew":                     {subject{state: "verifying", op: writeManage, idle: time.Hour}, "needs recover"},
		"a node of a host in use that is stuck is not":               {subject{state: "verifying", op: writeManage, idle: time.Hour, host: used}, "broken Timeout"},
		"a node in verifying that a conductor holds is waited for":   {subject{state: "verifying", op: writeManage, idle: time.Hour, node: func(n *ironic.Node) { n.Reservation = "c1" }}, "wait"},
		"a node that a conductor holds for ever is told to its user": {subject{state: "verifying", op: writeManage, idle: 4 * time.Hour, node: func(n *ironic.Node) { n.Reservation = "c1" }}, "broken Timeout"},
	})
}

func TestEnrollGivesUpOnSilence(t *testing.T) {
	v := subject{state: "enroll", op: writeManage}.view(t, event.Enroll)
	for range verifications {
		v.host = lifecycle.Apply(v.host, lifecycle.Claimed{Kind: event.Enroll, Step: writeManage}, start)
		v.host = lifecycle.Apply(v.host, lifecycle.Accepted{Kind: event.Enroll}, start)
	}
	if got := brief(v.enroll()); got != "broken Unreachable" {
		t.Errorf("after %d verifications without a word: %s", verifications+1, got)
	}
}

func TestRefusal(t *testing.T) {
	ipmi := func(h *lifecycle.Host) { h.Intent.Spec.BMC.Address = "ipmi://192.0.2.10" }
	refused := func(v view) lifecycle.Outlook {
		if o := v.refusal(); o != nil {
			return o
		}
		return finished()
	}
	check(t, event.Enroll, refused, map[string]row{
		"nothing special":           {subject{}, "done"},
		"IPMI":                      {subject{host: ipmi}, "done"},
		"fast inspection over IPMI": {subject{host: func(h *lifecycle.Host) { ipmi(h); h.Intent.Spec.InspectionMode = v1alpha1.InspectionModeFast }}, "broken Unsupported"},
		"secure boot over IPMI":     {subject{host: func(h *lifecycle.Host) { ipmi(h); h.Intent.Spec.BootMode = v1alpha1.UEFISecureBoot }}, "broken Unsupported"},
		"no boot MAC address where none is found": {subject{host: func(h *lifecycle.Host) { h.Intent.InspectionDisabled = true }}, "broken Unsupported"},
		"no boot MAC address of a virtual BMC":    {subject{host: func(h *lifecycle.Host) { h.Intent.Spec.BMC.Address = "libvirt://192.0.2.10" }}, "broken Unsupported"},
		"a virtual BMC with a boot MAC address": {subject{host: func(h *lifecycle.Host) {
			h.Intent.Spec.BMC.Address = "libvirt://192.0.2.10"
			h.Intent.Spec.BootMACAddress = "00:00:5e:00:53:01"
		}}, "done"},
		"disablePowerOff":                        {subject{host: func(h *lifecycle.Host) { h.Intent.Spec.DisablePowerOff = true }}, "done"},
		"disablePowerOff with an Ironic too old": {subject{version: 94, host: func(h *lifecycle.Host) { h.Intent.Spec.DisablePowerOff = true }}, "broken Unsupported"},
	})
	v := subject{host: ipmi}.view(t, event.Enroll)
	v.set.NoProvisioningNetwork = true
	if got := brief(refused(v)); got != "broken Unsupported" {
		t.Errorf("network boot without a provisioning network: %s", got)
	}
}

func TestAdopt(t *testing.T) {
	protected := func(n *ironic.Node) { n.Protected = true }
	check(t, event.Adopt, view.adopt, map[string]row{
		"a manageable node is adopted":                        {subject{state: "manageable", host: used}, "needs adopt"},
		"one of a host that is deprovisioned is let be":       {subject{state: "manageable", host: func(h *lifecycle.Host) { h.Provisioning.Phase = event.Undeploying }}, "done"},
		"one of such a host that is in use is adopted":        {subject{state: "active", host: func(h *lifecycle.Host) { h.Provisioning.Phase = event.Undeploying }}, "done"},
		"it takes a moment":                                   {subject{state: "adopting", host: used, op: writeAdopt}, "wait"},
		"an adopted node is protected":                        {subject{state: "active", host: used, op: writeAdopt}, "needs protect"},
		"and that is all":                                     {subject{state: "active", host: used, node: protected}, "done"},
		"a failure is told, with its cause":                   {subject{state: "adopt failed", host: used, op: writeAdopt, node: lastError("Validation of image href http://x failed")}, "broken Image"},
		"an earlier failure is tried again":                   {subject{state: "adopt failed", host: used, node: lastError("x")}, "needs adopt"},
		"a node that thinks it is free is brought back":       {subject{state: "available", host: used}, "needs manage"},
		"a maintenance that was ours is ended":                {subject{state: "active", host: used, node: func(n *ironic.Node) { maintained(n); n.MaintenanceReason = reasonUpstream }}, "needs unmaintain"},
		"one that is an operator's is let be":                 {subject{state: "active", host: used, node: func(n *ironic.Node) { protected(n); maintained(n); n.MaintenanceReason = "new fans" }}, "done"},
		"a node with a dead BMC is not":                       {subject{state: "manageable", host: used, node: powerFault}, "broken Credentials"},
		"a node about to be cleaned is told, and not touched": {subject{state: "clean wait", host: used}, "broken Conflict"},
		"a node that was deployed and failed is told":         {subject{state: "deploy failed", host: used}, "broken Conflict"},
		"stuck: the machine runs, so it is only told":         {subject{state: "adopting", host: used, op: writeAdopt, idle: time.Hour}, "broken Timeout"},
	})
}

// From a host in use no state of its node leads to a write that could harm it.
func TestAdoptNeverHarms(t *testing.T) {
	for _, state := range states() {
		for _, op := range []string{"", writeAdopt, writeManage} {
			o := subject{state: state, host: used, op: op, idle: 24 * time.Hour, node: maintained}.view(t, event.Adopt).adopt()
			if n, ok := o.(lifecycle.Needs); ok && n.Write != writeAdopt && n.Write != writeManage && n.Write != writeProtect && n.Write != writeUnmaintain && n.Write != writeAbort {
				t.Errorf("adopt in state %q after %q needs %s", state, op, n.Write)
			}
		}
	}
}

func states() []string {
	return []string{
		"enroll", "verifying", "manageable", "available", "active", "deploying", "wait call-back", "deploy failed", "deploy hold", "deleting", "cleaning", "clean wait", "clean failed",
		"clean hold", "error", "inspecting", "inspect wait", "inspect failed", "adopting", "adopt failed", "servicing", "service wait", "service failed", "service hold", "rescue", "rescue failed", "unrescue failed",
	}
}

func TestRemove(t *testing.T) {
	protected := func(reason string) func(*ironic.Node) {
		return func(n *ironic.Node) { n.Protected, n.ProtectedReason = true, reason }
	}
	check(t, event.Remove, view.remove, map[string]row{
		"a node in enroll":                               {subject{state: "enroll"}, "needs delete"},
		"an available one":                               {subject{state: "available"}, "needs delete"},
		"an active one":                                  {subject{state: "active", node: protected(reasonProtected)}, "needs delete"},
		"one that somebody else protects":                {subject{state: "active", node: protected("do not touch")}, "broken Conflict"},
		"one that failed":                                {subject{state: "clean failed", node: cleanFault}, "needs delete"},
		"one that is being verified":                     {subject{state: "verifying"}, "wait"},
		"one that is busy":                               {subject{state: "cleaning"}, "wait"},
		"one that is stuck":                              {subject{state: "deploying", idle: 2 * time.Hour}, "needs delete"},
		"one that we began to delete":                    {subject{state: "deploying", node: func(n *ironic.Node) { maintained(n); n.MaintenanceReason = reasonDelete }}, "needs delete"},
		"one that waits for its inspection":              {subject{state: "inspect wait"}, "needs abort"},
		"one that waits in cleaning":                     {subject{state: "clean wait"}, "needs abort"},
		"one that waits in a deployment":                 {subject{state: "wait call-back"}, "needs abort"},
		"one that waits in a deployment, older Ironic":   {subject{state: "wait call-back", version: 96}, "needs undeploy"},
		"one that has been taken over by another object": {subject{state: "active", node: func(n *ironic.Node) { n.Extra[markHost] = "other" }}, "done"},
		"one from before the host was moved here":        {subject{state: "active", host: func(h *lifecycle.Host) { h.Intent.Base = &event.Base{OldUID: "old"} }, node: func(n *ironic.Node) { n.Extra[markHost] = "old" }}, "needs delete"},
		"one of before our time":                         {subject{state: "active", node: func(n *ironic.Node) { n.Extra = nil }}, "needs delete"},
	})
}

func TestDetach(t *testing.T) {
	plain := func(h *lifecycle.Host) { used(h); h.Intent.Detached = &event.DetachRequest{} }
	force := func(h *lifecycle.Host) { h.Intent.Detached = &event.DetachRequest{Force: true} }
	check(t, event.Detach, view.remove, map[string]row{
		"a node in use":                         {subject{state: "active", host: plain}, "needs delete"},
		"a waiting one":                         {subject{state: "service wait", host: plain}, "wait"},
		"a waiting one, by force":               {subject{state: "service wait", host: force}, "needs abort"},
		"a waiting deployment, by force":        {subject{state: "wait call-back", host: force}, "needs abort"},
		"a waiting deployment, by force, on 29": {subject{state: "wait call-back", host: force, version: 96}, "needs undeploy"},
		"a busy one, by force":                  {subject{state: "deploying", host: force}, "wait"},
	})
}

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
		c, err := v.cleaning(map[string]string{"Turbo": "Enabled"})
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
	firmware := func(w *wish) {
		w.firmware = FirmwareWish{Updates: []v1alpha1.FirmwareUpdate{{Component: "bmc", URL: "http://192.0.2.80/bmc"}}}
	}
	check(t, event.Prepare, table, map[string]row{
		"nothing to do":                        {subject{state: "manageable"}, "done"},
		"nothing to do with an available node": {subject{state: "available"}, "done"},
		"RAID":                                 {subject{state: "manageable", host: raid}, "needs clean"},
		"RAID of an available node":            {subject{state: "available", host: raid}, "needs manage"},
		"RAID with the wrong interface":        {subject{state: "manageable", host: raid, node: func(n *ironic.Node) { n.RAIDInterface = "agent" }}, "needs configure"},
		"firmware":                             {subject{state: "manageable", wish: firmware}, "needs clean"},
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
	want := func(w *wish) {
		w.firmware = FirmwareWish{Updates: []v1alpha1.FirmwareUpdate{{Component: "bmc", URL: "http://192.0.2.80/bmc"}}}
	}
	table := func(v view) lifecycle.Outlook { return v.service(firmwareSteps(v.wish.firmware, nil)) }
	marked := func(n *ironic.Node) { n.Extra[markOp] = "e1/service-2" }
	fault := func(n *ironic.Node) {
		n.Maintenance, n.Fault, n.LastError = true, ironic.FaultService, "Node failed step"
	}
	check(t, event.Service, table, map[string]row{
		"nothing to do":                          {subject{state: "active", host: used}, "done"},
		"something to do":                        {subject{state: "active", host: used, wish: want}, "needs service"},
		"something to do with an Ironic too old": {subject{state: "active", host: used, wish: want, version: 82}, "broken Unsupported"},
		"servicing":                              {subject{state: "servicing", host: used, wish: want, op: writeService}, "wait"},
		"waiting":                                {subject{state: "service wait", host: used, wish: want, op: writeService}, "wait"},
		"waiting, and called off":                {subject{state: "service wait", host: used, op: writeService}, "needs abort"},
		"done":                                   {subject{state: "active", host: used, wish: want, op: writeService, node: marked}, "done"},
		"failed":                                 {subject{state: "service failed", host: used, wish: want, op: writeService, node: fault}, "broken Hardware"},
		"failed before: out of maintenance first": {subject{state: "service failed", host: used, wish: want, node: fault}, "needs unmaintain"},
		"failed before: again":                    {subject{state: "service failed", host: used, wish: want}, "needs service"},
		"failed, and called off":                  {subject{state: "service failed", host: used}, "needs abort"},
		"failed, and called off in maintenance":   {subject{state: "service failed", host: used, node: fault}, "needs unmaintain"},
		"failed, and called off with Ironic 29":   {subject{state: "service failed", host: used, version: 96}, "broken Unsupported"},
		"stuck: told, and never deleted":          {subject{state: "servicing", host: used, wish: want, op: writeService, idle: 2 * time.Hour}, "broken Timeout"},
		"a node that is not in use":               {subject{state: "available", wish: want}, "broken Conflict"},
	})
}

func TestPowerOn(t *testing.T) {
	on := func(n *ironic.Node) { n.PowerState = ironic.PowerOn }
	check(t, event.PowerOn, view.powerOn, map[string]row{
		"off":                         {subject{state: "active", host: used}, "needs on"},
		"on":                          {subject{state: "active", host: used, node: on}, "done"},
		"on its way":                  {subject{state: "active", host: used, op: writeOn, node: func(n *ironic.Node) { n.TargetPowerState = ironic.PowerOn }}, "wait"},
		"on its way off":              {subject{state: "active", host: used, node: func(n *ironic.Node) { on(n); n.TargetPowerState = ironic.PowerOff }}, "wait"},
		"failed":                      {subject{state: "active", host: used, op: writeOn, node: lastError("Failed to change power state")}, "broken Power"},
		"failed without a word":       {subject{state: "active", host: used, op: writeOn}, "broken Power"},
		"failed before":               {subject{state: "active", host: used, node: lastError("x")}, "needs on"},
		"refused":                     {subject{state: "active", host: used, op: writeOn, refused: true}, "needs on"},
		"a dead BMC":                  {subject{state: "active", host: used, node: powerFault}, "broken Credentials"},
		"while the node is busy":      {subject{state: "cleaning"}, "wait"},
		"a failed node is no trouble": {subject{state: "clean failed", node: func(n *ironic.Node) { n.TargetProvisionState = "available" }}, "needs on"},
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
		"hard, accepted is not done":       {subject{state: "active", host: used, op: writeHard, node: to(ironic.PowerOff)}, "wait"},
		"off, but on its way on":           {subject{state: "active", host: used, node: func(n *ironic.Node) { n.TargetPowerState = ironic.PowerOn }}, "wait"},
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
		"on":             {subject{state: "active", host: never, node: on}, "needs reboot"},
		"on its way":     {subject{state: "active", host: never, op: writeReboot, node: func(n *ironic.Node) { on(n); n.TargetPowerState = ironic.Rebooting }}, "wait"},
		"done":           {subject{state: "active", host: never, op: writeReboot, node: on}, "done"},
		"refused":        {subject{state: "active", host: never, op: writeReboot, refused: true, node: on}, "needs reboot"},
		"failed":         {subject{state: "active", host: never, op: writeReboot, node: func(n *ironic.Node) { on(n); n.LastError = "refused" }}, "broken Power"},
		"ended up off":   {subject{state: "active", host: never, op: writeReboot}, "needs on"},
		"a dead BMC":     {subject{state: "active", host: never, node: powerFault}, "broken Credentials"},
		"a busy machine": {subject{state: "servicing", host: never, node: on}, "wait"},
	})
}

// A host in use is never led to a verb that could take something from it, whatever
// its node says, by the operations that run without a wish of its user to be rid of
// what is there.
func TestNothingHarmsAMachineInUse(t *testing.T) {
	harmless := []string{writeManage, writeAdopt, writeProtect, writeUnmaintain, writeUpdate, writePorts, writeConfigure, writeService, writeAbort, writeOn, writeRecreate}
	tables := map[event.Kind]func(view) lifecycle.Outlook{
		event.Enroll: view.enroll, event.Adopt: view.adopt, event.PowerOn: view.powerOn,
		event.Service: func(v view) lifecycle.Outlook { return v.service(nil) },
	}
	for kind, table := range tables {
		for _, state := range states() {
			for _, change := range []func(*ironic.Node){nil, maintained, powerFault, cleanFault, func(n *ironic.Node) { n.Reservation = "c1" }} {
				o := table(subject{state: state, host: used, idle: 24 * time.Hour, node: change}.view(t, kind))
				n, ok := o.(lifecycle.Needs)
				if ok && !strings.Contains(strings.Join(harmless, " "), n.Write) {
					t.Errorf("%s in state %q needs %s", kind, state, n.Write)
				}
			}
		}
	}
}
