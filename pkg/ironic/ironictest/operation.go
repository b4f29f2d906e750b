package ironictest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// operation is one thread of the conductor, at work on one node. It reads and
// changes the node through with, for as long as nobody has ended it.
type operation struct {
	i      *Ironic
	n      *node
	body   obj    // of the verb
	target string // where the node was to go
	ctx    context.Context
	cancel context.CancelFunc
}

// errOver says that the operation is over: it was aborted, the node is gone, or the
// Ironic is closed. Whatever an operation tries to do with its node from then on
// gives it again, so that an error need not be looked at before the node is made to
// fail by it.
var errOver = errors.New("the operation is over")

// begin carries out a transition. The caller holds i.mu.
func (i *Ironic) begin(n *node, t transition, body obj) {
	n.stop()
	if t.target == "" && (t.to == cleanFailed || t.to == inspectFailed) {
		t.target = n.state.target
	}
	if t.run == nil { // manage out of a failure leaves its text
		n.goTo(t.to, "", i.cfg.Now())
		return
	}
	n.state.lastError = ""
	n.goTo(t.to, t.target, i.cfg.Now())
	if t.to == active {
		n.state.target = ""
	}
	o := &operation{i: i, n: n, body: body, target: t.target}
	i.start(o, t.run)
}

// start runs an operation with the node locked. The caller holds i.mu.
func (i *Ironic) start(o *operation, run func(*operation) error) {
	if i.ctx.Err() != nil {
		return
	}
	o.n.op = o
	i.thread(o, run)
	if o.n.strand {
		o.n.strand = false
		o.n.stop()
	}
}

// beside runs something short on a node that stays in its state, and beside an
// operation that waits. The caller holds i.mu.
func (i *Ironic) beside(n *node, run func(*operation) error) {
	if i.ctx.Err() != nil {
		return
	}
	n.side = &operation{i: i, n: n}
	i.thread(n.side, run)
}

func (i *Ironic) thread(o *operation, run func(*operation) error) {
	o.ctx, o.cancel = context.WithCancel(i.ctx)
	o.n.state.reservation = conductor
	i.tasks.Go(func() {
		defer o.cancel()
		if err := run(o); err != nil && !errors.Is(err, errOver) {
			panic(err) // an operation has to deal with its own errors
		}
		_ = o.with(func(n *node) { n.leave(o) }) // one that is over has left already
	})
}

// leave ends an operation in good order.
func (n *node) leave(o *operation) {
	if n.side == o {
		n.side = nil
	}
	if n.op == o {
		n.op = nil
	}
	if n.op == nil || waits(n.state.provision) {
		n.state.reservation = ""
	}
}

// stop ends what the conductor does with the node, where it is.
func (n *node) stop() {
	for _, o := range []*operation{n.op, n.side} {
		if o != nil {
			o.cancel()
		}
	}
	n.op, n.side, n.state.reservation = nil, nil, ""
}

func (n *node) goTo(provision, target string, now time.Time) {
	n.state.provision, n.state.target, n.state.provisioned = provision, target, now
}

// with looks at the node, or changes it. The node shows that something is going on.
func (o *operation) with(f func(n *node)) error {
	o.i.mu.Lock()
	defer o.i.mu.Unlock()
	if o.ctx.Err() != nil {
		return errOver
	}
	o.n.state.updated = o.i.cfg.Now()
	f(o.n)
	return nil
}

// pause lets time pass.
func (o *operation) pause(d time.Duration) error {
	o.i.mu.Lock()
	d = o.i.longer(d)
	o.i.mu.Unlock()
	return o.sleep(d)
}

// beat lets time pass with an agent that is up, and is heard of all the while.
func (o *operation) beat(d time.Duration) error {
	o.i.mu.Lock()
	d = o.i.longer(d)
	o.i.mu.Unlock()
	for every := o.i.cfg.Delays.Heartbeat; d > every; d -= every {
		if err := o.sleep(every); err != nil {
			return err
		}
		if err := o.with(func(*node) {}); err != nil {
			return err
		}
	}
	return o.sleep(d)
}

func (o *operation) sleep(d time.Duration) error {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-o.ctx.Done():
		}
	}
	if o.ctx.Err() != nil {
		return errOver
	}
	return nil
}

func waits(provision string) bool {
	switch provision {
	case cleanWait, deployWait, inspectWait, serviceWait:
		return true
	default:
		return false
	}
}

// goTo moves the node on, locked or waiting.
func (o *operation) goTo(provision string) error {
	return o.with(func(n *node) {
		n.goTo(provision, n.state.target, o.i.cfg.Now())
		n.state.reservation = conductor
		if waits(provision) && n.side == nil {
			n.state.reservation = ""
		}
	})
}

// arrive brings the node to where it stays. It is locked for a moment longer, as
// the real ones are while the thread tidies up.
func (o *operation) arrive(provision string) error {
	if err := o.with(func(n *node) {
		n.goTo(provision, "", o.i.cfg.Now())
		n.state.step = nil
		n.state.reservation = conductor
	}); err != nil {
		return err
	}
	return o.pause(o.i.cfg.Delays.BMC)
}

// fail brings the node to a state of failure. It stays on its way to where it was
// to go.
func (o *operation) fail(provision, kind, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	return o.with(func(n *node) {
		n.goTo(provision, n.state.target, o.i.cfg.Now())
		n.state.step = nil
		n.state.reservation = conductor
		o.i.record(n, kind, "ERROR", text)
		n.state.lastError = text
	})
}

// failInMaintenance is a failure after which the node needs a person.
func (o *operation) failInMaintenance(provision, fault, kind, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if err := o.fail(provision, kind, "%s", text); err != nil {
		return err
	}
	return o.with(func(n *node) { n.setMaintenance(true, text, fault) })
}

// reach exchanges something with the BMC. The error is the driver's or the BMC's.
func (o *operation) reach(f func(m *Machine) error) error {
	if err := o.pause(o.i.cfg.Delays.BMC); err != nil {
		return err
	}
	var b bmc
	var m *Machine
	if err := o.with(func(n *node) { b, m = bmcOf(n), o.i.phantom(n) }); err != nil {
		return err
	}
	if m == nil {
		var err error
		if m, err = o.i.cfg.Rack.reach(b); err != nil {
			return err
		}
	}
	if err := o.sleep(m.Faults().Slow); err != nil {
		return err
	}
	if err := f(m); err != nil {
		return b.said(err)
	}
	return nil
}

// look reads something of the machine.
func (o *operation) look(f func(m *Machine)) error {
	return o.reach(func(m *Machine) error {
		f(m)
		return nil
	})
}

// phantom is the machine of a node whose driver has no BMC, nil for others. The
// caller holds i.mu.
func (i *Ironic) phantom(n *node) *Machine {
	switch n.text("driver") {
	case "fake-hardware", "manual-management":
		if n.phantom == nil {
			n.phantom = newMachine(0, Spec{Name: n.uuid}, i.cfg.Now)
		}
		return n.phantom
	default:
		return nil
	}
}

// power brings the machine's power about and notes it.
func (o *operation) power(on bool) error {
	want := powerText(on)
	if err := o.with(func(n *node) { n.state.targetPower = want }); err != nil {
		return err
	}
	if err := o.pause(o.i.cfg.Delays.Power); err != nil {
		return err
	}
	wrong := o.reach(func(m *Machine) error { return m.bring(on) })
	if err := o.with(func(n *node) {
		n.state.targetPower = ""
		if wrong == nil {
			n.state.power = want
		}
	}); err != nil {
		return err
	}
	return wrong
}
