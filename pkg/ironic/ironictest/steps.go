package ironictest

import (
	"fmt"
	"slices"
	"strings"
)

// step is one step of cleaning, deployment or service.
type step struct {
	iface, name string
	args        obj
	raw         obj
}

func stepsOf(v any) []step {
	all, _ := v.([]any)
	var steps []step
	for _, x := range all {
		raw, _ := x.(obj)
		s := step{raw: raw}
		s.iface, _ = raw["interface"].(string)
		s.name, _ = raw["step"].(string)
		s.args, _ = raw["args"].(obj)
		steps = append(steps, s)
	}
	return steps
}

func (s step) String() string { return s.iface + "." + s.name }

// python shows the step as Python would.
func (s step) python() string {
	return fmt.Sprintf("{'interface': '%s', 'step': '%s'}", s.iface, s.name)
}

// agentSteps are what agents offer for cleaning, deployment ("deploy") and
// service.
func (i *Ironic) agentSteps(kind string) []string {
	switch kind {
	case "clean":
		return []string{"deploy.erase_devices", "deploy.erase_devices_metadata", "raid.delete_configuration", "raid.create_configuration"}
	case "service":
		return []string{"deploy.burnin_cpu", "raid.apply_configuration"}
	default:
		all := []string{"deploy.write_image", "raid.apply_configuration"}
		for _, s := range i.cfg.DeploySteps {
			all = append(all, "deploy."+s)
		}
		return all
	}
}

// ownSteps are the steps that the conductor carries out itself, through the
// interfaces of the node. The caller holds i.mu.
func (i *Ironic) ownSteps(n *node) []string {
	var all []string
	if n.text("bios_interface") != "no-bios" {
		all = append(all, "bios.apply_configuration", "bios.factory_reset")
	}
	if n.text("raid_interface") == "redfish" {
		all = append(all, "raid.delete_configuration", "raid.create_configuration")
	}
	if n.text("management_interface") == "redfish" {
		all = append(all, "management.update_firmware")
	}
	if i.cfg.Release >= Ironic29 && n.text("firmware_interface") == "redfish" {
		all = append(all, "firmware.update")
	}
	return all
}

// sort tells which of the steps the conductor carries out itself, and which one
// nobody offers.
func (o *operation) sort(kind string, steps []step) (own []bool, unknown *step, err error) {
	err = o.with(func(n *node) {
		mine, agents := o.i.ownSteps(n), o.i.agentSteps(kind)
		byAgent := n.text("raid_interface") == "agent"
		for k, s := range steps {
			isOwn := slices.Contains(mine, s.String())
			offered := slices.Contains(agents, s.String()) && (s.iface != "raid" || byAgent)
			if !isOwn && !offered && unknown == nil {
				unknown = &steps[k]
			}
			own = append(own, isOwn)
		}
	})
	return own, unknown, err
}

// stepError is a step that failed.
type stepError struct {
	step    step
	byAgent bool
	err     error
}

func (e *stepError) Error() string { return e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

// flow is what steps are part of.
type flow struct {
	name, title string // as the history calls it
	kind        string // "clean", "deploy" or "service"
	wait, wake  string // states in which the node waits, and in which it is locked
}

// tell writes into the node's history how a flow goes, as newer releases do: its
// "start", its "end", or the step at which it broke off.
func (o *operation) tell(f flow, what string, steps []step, brokeOff string) error {
	if o.i.cfg.Release < Ironic39 {
		return nil
	}
	text, severity := fmt.Sprintf("Starting %s with steps=%s", f.name, pythonSteps(steps)), "INFO"
	switch {
	case brokeOff != "":
		text, severity = fmt.Sprintf("%s aborted at step '%s' with steps=%s", f.title, brokeOff, pythonSteps(steps)), "ERROR"
	case what == "end":
		text = fmt.Sprintf("%s completed successfully with steps=%s", f.title, pythonSteps(steps))
	}
	return o.with(func(n *node) { o.i.record(n, strings.ReplaceAll(f.name, " ", "_")+"_"+what, severity, text) })
}

func pythonSteps(steps []step) string {
	shown := make([]string, 0, len(steps))
	for _, s := range steps {
		shown = append(shown, s.python())
	}
	return "[" + strings.Join(shown, ", ") + "]"
}

// run carries out steps, one after the other, on a node that is locked. The error is a
// *stepError.
func (o *operation) run(f flow, steps []step, own []bool) error {
	if err := o.tell(f, "start", steps, ""); err != nil {
		return err
	}
	if err := o.runAll(f, steps, own); err != nil {
		return err
	}
	return o.tell(f, "end", steps, "")
}

func (o *operation) runAll(f flow, steps []step, own []bool) error {
	for k, s := range steps {
		if err := o.with(func(n *node) { n.state.step = s.raw }); err != nil {
			return &stepError{step: s, err: err}
		}
		if !own[k] {
			if err := o.runInAgent(f, s); err != nil {
				return &stepError{step: s, byAgent: true, err: err}
			}
			continue
		}
		if err := o.runOwn(s, f.wait, f.wake); err != nil {
			if err := o.tell(f, "end", steps, s.name); err != nil {
				return err
			}
			return &stepError{step: s, err: err}
		}
	}
	return o.with(func(n *node) { n.state.step = nil })
}

// runInAgent has the agent carry out a step.
func (o *operation) runInAgent(f flow, s step) error {
	if err := o.goTo(f.wait); err != nil {
		return err
	}
	took := o.i.cfg.Delays.Step
	if s.name == "write_image" {
		took = o.i.cfg.Delays.Write
	}
	if err := o.look(func(m *Machine) { took += m.Faults().Longer }); err != nil {
		return err
	}
	if err := o.beat(took); err != nil {
		return err
	}
	var target, instance obj
	if err := o.with(func(n *node) { target, instance = n.state.targetRAID, n.object("instance_info") }); err != nil {
		return err
	}
	var failure error
	if err := o.look(func(m *Machine) { failure = o.stepInAgent(m, f.kind, s, instance) }); err != nil {
		return err
	}
	if err := o.hearAgent(); err != nil {
		return err
	}
	if failure == nil && s.iface == "raid" {
		if err := o.with(func(n *node) { n.state.raid = raidFrom(s.name, target) }); err != nil {
			return err
		}
	}
	if err := o.goTo(f.wake); err != nil {
		return err
	}
	return failure
}

func raidFrom(step string, target obj) obj {
	if step == "delete_configuration" {
		return obj{"logical_disks": []any{}}
	}
	return orEmpty(target)
}

// stepInAgent is a step as the agent carries it out.
func (o *operation) stepInAgent(m *Machine, kind string, s step, instance obj) error {
	f := m.Faults()
	if s.name == map[string]string{"clean": f.FailClean, "deploy": f.FailDeploy, "service": f.FailService}[kind] && m.strikes() {
		if f.Text != "" {
			return words(f.Text)
		}
		return fmt.Errorf("injected failure of %s", s.name)
	}
	switch {
	case s.name == "write_image":
		image, _ := instance["image_source"].(string)
		if err := o.i.fetch(image, checksum(instance)); err != nil {
			return fmt.Errorf("download of image %s: %w", image, err)
		}
		m.write(image, o.body["configdrive"])
	case strings.HasPrefix(s.name, "erase_devices"):
		m.erase(s.name)
	case s.name == "create_configuration" || s.name == "delete_configuration":
		m.changeRAID(s.name)
	default:
		m.ranStep(s.String())
	}
	return nil
}

// checksum is what an image is to have.
func checksum(instance obj) string {
	for _, key := range []string{"image_os_hash_value", "image_checksum"} {
		if sum, _ := instance[key].(string); sum != "" {
			return sum
		}
	}
	return ""
}

// fetch tells what is wrong with an image.
func (i *Ironic) fetch(image, checksum string) error {
	if i.cfg.Images == nil || image == "" {
		return nil
	}
	return i.cfg.Images(image, checksum)
}

// runOwn carries out a step of the conductor's own, which reboots the machine
// where it has to.
func (o *operation) runOwn(s step, wait, wake string) error {
	switch s.iface {
	case "bios":
		return o.applySettings(s, wait, wake)
	case "raid":
		return o.changeVolumes(s, wait, wake)
	default:
		return o.updateFirmware(s, wait, wake)
	}
}

// rebooted reboots the machine and waits for it, in wait.
func (o *operation) rebooted(wait, wake string) error {
	if err := o.reach((*Machine).reboot); err != nil {
		return err
	}
	if err := o.with(func(n *node) { n.state.power = powerOn }); err != nil {
		return err
	}
	if err := o.goTo(wait); err != nil {
		return err
	}
	if err := o.pause(o.i.cfg.Delays.Boot + o.i.cfg.Delays.Step); err != nil {
		return err
	}
	if err := o.held(wait); err != nil {
		return err
	}
	return o.goTo(wake)
}
