package ironictest

import (
	"net/http"
	"slices"
)

// Provision states, as they are on the wire.
const (
	enroll        = "enroll"
	verifying     = "verifying"
	manageable    = "manageable"
	available     = "available"
	active        = "active"
	inspecting    = "inspecting"
	inspectWait   = "inspect wait"
	inspectFailed = "inspect failed"
	cleaning      = "cleaning"
	cleanWait     = "clean wait"
	cleanFailed   = "clean failed"
	deploying     = "deploying"
	deployWait    = "wait call-back"
	deployFailed  = "deploy failed"
	deleting      = "deleting"
	failed        = "error"
	adopting      = "adopting"
	adoptFailed   = "adopt failed"
	servicing     = "servicing"
	serviceWait   = "service wait"
	serviceFailed = "service failed"
	rescued       = "rescue"
)

func isState(s string) bool {
	return slices.Contains([]string{
		enroll, verifying, manageable, available, active, inspecting, inspectWait, inspectFailed, cleaning, cleanWait, cleanFailed, deploying, deployWait, deployFailed,
		deleting, failed, adopting, adoptFailed, servicing, serviceWait, serviceFailed, rescued,
	}, s)
}

// updatable are the states on the way to another in which settings may change.
func updatable() []string {
	return []string{deployFailed, inspecting, inspectFailed, inspectWait, cleanFailed, failed, verifying, adoptFailed, serviceFailed}
}

// transition is what a verb does in a state: to which state it leads, to which one
// the node is on its way then, and what the conductor does meanwhile. nil is
// nothing: the node is there.
type transition struct {
	to, target string
	run        func(*operation) error
	check      func(*call, *node, obj) error
}

// verb finds the transition of a verb from a state.
func (r Release) verb(verb, from string) (transition, bool) {
	for _, t := range r.verbs() {
		if t.verb == verb && slices.Contains(t.from, from) {
			return t.transition, true
		}
	}
	return transition{}, false
}

type verb struct {
	verb string
	from []string
	transition
}

// verbs are all verbs of a release.
func (r Release) verbs() []verb {
	all := []verb{
		{"manage", []string{enroll}, transition{to: verifying, target: manageable, run: (*operation).verify}},
		{"manage", []string{available, inspectFailed, cleanFailed, adoptFailed}, transition{to: manageable}},
		{"inspect", []string{manageable, inspectFailed}, transition{to: inspecting, target: manageable, run: (*operation).inspect, check: checkInspect}},
		{"provide", []string{manageable}, transition{to: cleaning, target: available, run: (*operation).cleanAutomatically, check: checkProvide}},
		{"clean", []string{manageable}, transition{to: cleaning, target: manageable, run: (*operation).cleanManually, check: checkClean}},
		{"adopt", []string{manageable, adoptFailed}, transition{to: adopting, target: active, run: (*operation).adopt}},
		{"active", []string{available, deployFailed}, transition{to: deploying, target: active, run: (*operation).deploy, check: checkDeploy}},
		{"rebuild", []string{active, deployFailed, failed}, transition{to: deploying, target: active, run: (*operation).deploy, check: checkDeploy}},
		{"deleted", []string{active, deployFailed, deployWait, failed, serviceWait, serviceFailed}, transition{to: deleting, target: available, run: (*operation).undeploy, check: checkUndeploy}},
		{"abort", []string{cleanWait}, transition{to: cleanFailed, run: (*operation).abortClean}},
		{"abort", []string{inspectWait}, transition{to: inspectFailed, run: (*operation).abortInspect}},
	}
	if r >= Ironic29 {
		all = append(all,
			verb{"service", []string{active, serviceFailed}, transition{to: servicing, target: active, run: (*operation).service, check: checkService}},
			verb{"abort", []string{serviceWait}, transition{to: serviceFailed, target: active, run: (*operation).abortService}},
		)
	}
	if r >= Ironic39 {
		all = append(all,
			verb{"abort", []string{serviceFailed}, transition{to: active, run: (*operation).leaveService, check: checkLeaveService}},
			verb{"abort", []string{deployWait}, transition{to: deployFailed, target: active, run: (*operation).abortDeploy, check: checkAbortDeploy}},
		)
	}
	return all
}

// putProvision takes a verb.
func putProvision(c *call) (answer, error) {
	args := []string{"target", "configdrive", "clean_steps", "deploy_steps", "rescue_password", "disable_ramdisk"}
	if c.i.cfg.Release >= Ironic29 {
		args = append(args, "service_steps", "runbook")
	}
	body, err := c.read(args...)
	if err != nil {
		return nothing(err)
	}
	target, _ := body["target"].(string)
	if target == "" {
		return nothing(bad("Missing mandatory parameter: target"))
	}
	n, err := c.node()
	if err != nil {
		return nothing(err)
	}
	t, err := c.allowed(n, target)
	if err != nil {
		return nothing(err)
	}
	if err := checkArguments(target, body); err != nil {
		return nothing(err)
	}
	if t.check != nil {
		if err := t.check(c, n, body); err != nil {
			return nothing(err)
		}
	}
	if n.state.reservation != "" {
		return nothing(locked(n))
	}
	c.i.begin(n, t, body)
	return answer{status: http.StatusAccepted}.with("Location", c.base+"/v1/nodes/"+n.uuid+"/states"), nil
}

// allowed finds what a verb does to a node, if it may.
func (c *call) allowed(n *node, target string) (transition, error) {
	if (target == "active" || target == "rebuild") && n.maintenance() {
		return transition{}, inMaintenance("provisioning", n)
	}
	t, known := c.i.cfg.Release.verb(target, n.state.provision)
	switch {
	case known:
		return t, nil
	case n.state.reservation != "":
		return transition{}, locked(n)
	}
	return transition{}, wrongState(target, n.uuid, n.state.provision)
}

func wrongState(action, node, state string) error {
	return bad("The requested action \"%s\" can not be performed on node \"%s\" while it is in state \"%s\".", action, node, state)
}

func inMaintenance(op string, n *node) error {
	return bad("The %s operation can't be performed on node %s because it's in maintenance mode.", op, n.uuid)
}

// checkArguments refuses what belongs to another verb.
func checkArguments(target string, body obj) error {
	drives := target == "active" || target == "rebuild"
	switch {
	case body["configdrive"] != nil && !drives:
		return bad("Adding a config drive is only supported when setting provision state to active, rebuild")
	case !empty(body["clean_steps"]) && target != "clean":
		return bad("\"clean_steps\" is only valid when setting target provision state to clean")
	case !empty(body["deploy_steps"]) && !drives:
		return bad("\"deploy_steps\" is only valid when setting target provision state to active or rebuild")
	case !empty(body["service_steps"]) && target != "service":
		return bad("\"service_steps\" is only valid when setting target provision state to service")
	}
	return nil
}

func empty(v any) bool {
	l, _ := v.([]any)
	return len(l) == 0
}

func checkInspect(_ *call, n *node, _ obj) error {
	if n.text("inspect_interface") == "no-inspect" {
		return bad("Driver %s does not support inspect (disabled or not implemented).", n.text("driver"))
	}
	return nil
}

func checkProvide(_ *call, n *node, _ obj) error {
	if n.flag("retired") {
		return conflict("The providing operation can't be performed on node %s because it is retired.", n.uuid)
	}
	return nil
}

func checkClean(c *call, n *node, body obj) error {
	if empty(body["clean_steps"]) {
		return bad("\"clean_steps\" is required when setting target provision state to clean")
	}
	of := func(s step) bool { return s.iface == "firmware" }
	if c.i.cfg.Release < Ironic29 && slices.ContainsFunc(stepsOf(body["clean_steps"]), of) {
		return bad("Invalid clean_steps: 'firmware' is not one of ['power', 'management', 'deploy', 'bios', 'raid']")
	}
	if n.maintenance() {
		return inMaintenance("cleaning", n)
	}
	return nil
}

func checkService(c *call, n *node, body obj) error {
	if c.minor < minorService {
		return notAcceptable()
	}
	if empty(body["service_steps"]) {
		return bad("\"service_steps\" is required when setting target provision state to service")
	}
	if n.maintenance() {
		return inMaintenance("service", n)
	}
	return nil
}

func checkDeploy(_ *call, n *node, _ obj) error {
	if n.flag("protected") && n.state.provision == active {
		return refuse(http.StatusForbidden, "Node %s is protected and cannot be undeployed, rebuilt or deleted.", n.uuid)
	}
	if missing := n.missingImage(); missing != "" {
		return bad("Failed to validate deploy or power info for node %s: Node %s failed to validate deploy image info. Some parameters were missing. Missing are: ['instance_info.%s']", n.uuid, n.uuid, missing)
	}
	return nil
}

func checkUndeploy(_ *call, n *node, _ obj) error {
	if n.flag("protected") {
		return refuse(http.StatusForbidden, "Node %s is protected and cannot be undeployed, rebuilt or deleted.", n.uuid)
	}
	return nil
}

func checkAbortDeploy(c *call, _ *node, _ obj) error {
	if c.minor < minorDeployAbort {
		return notAcceptable()
	}
	return nil
}

func checkLeaveService(_ *call, n *node, _ obj) error {
	if n.maintenance() {
		return conflict("Can not abort service on node \"%s\" while it is in maintenance mode. Please remove the node from maintenance prior to issuing the request to abort the service operation.", n.uuid)
	}
	return nil
}
