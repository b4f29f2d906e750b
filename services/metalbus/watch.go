package metalbus

import (
	"context"
	"fmt"
	"time"

	"github.com/metalbus/metalbus/pkg/lifecycle"
)

const (
	// paintEvery is the pause between frames, lineEvery that between lines where
	// there are no frames.
	paintEvery = 200 * time.Millisecond
	lineEvery  = 2 * time.Second
	// compareEvery is the pause between two comparisons with Kubernetes.
	compareEvery = 500 * time.Millisecond
)

// watcher shows a site's hosts as they go.
type watcher struct {
	*site
	fleet *fleet
	title string
	// below is what the frame shows last.
	below []string

	line string            // the last one
	told map[string]string // the last problem told of a host, and troubles by themselves
}

// newWatcher begins to follow the hosts.
func (s *site) newWatcher(ctx context.Context, title string) (*watcher, error) {
	since := s.tool.Env.Now()
	f, err := newFleet(ctx, s.bus, s.tool.Env.Now)
	if err != nil {
		return nil, err
	}
	go f.follow(ctx, since)
	return &watcher{site: s, fleet: f, title: title, told: map[string]string{}}, nil
}

// untilSettled declares the hosts that are new, and shows all of them until
// they are as they were asked to be, and Kubernetes shows it.
func (w *watcher) untilSettled(ctx context.Context) error {
	declared := make(chan error, 1)
	go func() { declared <- w.declare(ctx) }()
	waiting, said := true, false
	compare := time.NewTicker(compareEvery)
	defer compare.Stop()
	return w.show(ctx, func(s summary) (bool, error) {
		select {
		case err := <-declared:
			waiting = false
			return false, err
		case <-compare.C:
		default:
			return false, nil
		}
		if waiting || s.Settled < s.Total {
			return false, nil
		}
		agreed, err := w.agrees(ctx)
		if !agreed && !said && s.Total > 0 {
			said = true
			w.console.say("all %s are as asked; Kubernetes does not show all of it yet", count(s.Total, "host"))
		}
		return agreed, err
	})
}

// show shows the hosts until enough says so.
func (w *watcher) show(ctx context.Context, enough func(summary) (bool, error)) error {
	every := lineEvery
	if w.console.live() {
		every = paintEvery
	}
	ticks := time.NewTicker(paintEvery)
	defer ticks.Stop()
	for shown := w.tool.Env.Now(); ; {
		w.fleet.refresh(ctx)
		s := w.fleet.summary()
		ended, err := enough(s)
		if now := w.tool.Env.Now(); ended || now.Sub(shown) >= every {
			shown = now
			w.tell(s)
		}
		if ended || err != nil {
			return cause(ctx, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticks.C:
		}
	}
}

// tell shows the hosts as they are now.
func (w *watcher) tell(s summary) {
	if w.console.live() {
		title := fmt.Sprintf("%s  %s", w.title, seconds(w.tool.Env.Now().Sub(w.console.began)))
		w.console.show(append(s.frame(w.console.style, title), w.below...))
		return
	}
	for _, err := range s.Trouble {
		if text := err.Error(); w.told[text] == "" {
			w.told[text] = text
			w.console.say("%s", text)
		}
	}
	for _, h := range s.Troubled {
		if text := lifecycle.Message(*lifecycle.Problem(h)); w.told[h.UID] != text {
			w.told[h.UID] = text
			w.console.say("%s: %s", h.Name(), text)
		}
	}
	if line := s.line(); line != w.line && s.Total > 0 {
		w.line = line
		w.console.say("%s", line)
	}
}

// agrees reports whether Kubernetes shows every host, and the bus knows every
// one that Kubernetes has, in one and the same state.
func (w *watcher) agrees(ctx context.Context) (bool, error) {
	known := map[string]lifecycle.Host{}
	for _, h := range w.fleet.present() {
		known[h.UID] = h
	}
	shown, err := w.cluster.Hosts(ctx, w.watched())
	if err != nil || len(shown) != len(known) {
		return false, err
	}
	for _, o := range shown {
		h, ok := known[string(o.UID)]
		status := lifecycle.Status(h)
		if !ok || o.Status.Provisioning.State != status.Provisioning.State || o.Status.OperationalStatus != status.OperationalStatus ||
			o.Status.PoweredOn != status.PoweredOn {
			return false, nil
		}
	}
	return true, nil
}

// watched is the namespace whose hosts count, "" for all.
func (s *site) watched() string {
	if len(s.shared.Kube.Namespaces) == 1 {
		return s.shared.Kube.Namespaces[0]
	}
	return ""
}
