package bmcsim

import "context"

// BootFunc plays whatever a machine boots. It is called in a goroutine of its own
// at the end of each boot, for live images, disks and the network alike, and may
// return at once. ctx ends when the machine loses its power, is reset, or boots
// again, and when the simulator is closed.
type BootFunc func(ctx context.Context, b *Boot)

// Boot is one boot of one machine. Its methods have no effect once that boot is
// over.
type Boot struct {
	Host *Host
	// Running is what was booted: from disk, live image or network.
	Running Running
	// Resumed says that the machine has run since before the simulator was
	// restored from a snapshot: it was not booted again.
	Resumed bool

	ctx context.Context
}

// play hands the machine to the BootFunc. The caller holds h.mu.
func (h *Host) play(resumed bool) {
	f := h.sim.cfg.Boot
	if f == nil || h.sim.ctx.Err() != nil || !h.machine.hasOS() {
		return
	}
	h.machine.dropOS()
	ctx, cancel := context.WithCancel(h.sim.ctx)
	h.machine.cancel = cancel
	b := &Boot{Host: h, Running: h.machine.running, Resumed: resumed, ctx: ctx}
	h.sim.tasks.Go(func() { f(ctx, b) })
}

// while changes the machine if this boot still lasts.
func (b *Boot) while(change func(h *Host)) {
	b.Host.mu.Lock()
	defer b.Host.mu.Unlock()
	if b.ctx.Err() == nil {
		change(b.Host)
	}
}

// Becomes tells what runs now, for instance an agent out of a live image.
func (b *Boot) Becomes(r Running) {
	b.while(func(h *Host) {
		h.machine.running = r
		h.touch()
	})
}

// WriteDisk puts an image on the machine's disk; "" wipes it.
func (b *Boot) WriteDisk(image string) {
	b.while(func(h *Host) {
		h.machine.disk = image
		h.touch()
	})
}

// PowerOff is the operating system switching the machine off.
func (b *Boot) PowerOff() {
	b.while(func(h *Host) {
		h.machine.action = "ForceOff"
		h.powerOff(func() {})
	})
}
