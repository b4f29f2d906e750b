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
	v := view{kind: k, host: h, set: b.set, wish: w, version: ironic.Version{Minor: 115}, now: start.Add(s.idle)}
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

// A node that boots live images is taken over only if it names one.
func TestAdopt(t *testing.T) {
	const iso = "http://192.0.2.80/live.iso"
	live := func(h *lifecycle.Host) {
		used(h)
		h.Provisioning.Image = v1alpha1.Image{URL: iso, DiskFormat: new(v1alpha1.DiskFormatLiveISO)}
	}
	namesISO := func(n *ironic.Node) {
		n.DeployInterface, n.InstanceInfo = deploysISO, map[string]any{"boot_iso": iso}
	}
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
		"a live image is named first":                         {subject{state: "manageable", host: live}, "needs configure"},
		"also where that was forgotten":                       {subject{state: "adopt failed", host: live, node: lastError("Missing are: ['kernel', 'ramdisk']")}, "needs configure"},
		"and then it is taken over":                           {subject{state: "manageable", host: live, node: namesISO}, "needs adopt"},
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
		"one that is stuck in its verification":          {subject{state: "verifying", idle: time.Hour}, "needs delete"},
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

// A host in use is never led to a verb that could take something from it, whatever
// its node says, by the operations that run without a wish of its user to be rid of
// what is there.
func TestNothingHarmsAMachineInUse(t *testing.T) {
	harmless := []string{writeManage, writeAdopt, writeProtect, writeUnmaintain, writeUpdate, writePorts, writeConfigure, writeService, writeAbort, writeOn, writeRecreate}
	tables := map[event.Kind]func(view) lifecycle.Outlook{
		event.Enroll: view.enroll, event.Adopt: view.adopt, event.PowerOn: view.powerOn,
		event.Service: view.service,
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
