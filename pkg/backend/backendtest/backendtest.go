// Package backendtest holds the suite that every backend passes: the same
// operations on the same kinds of hosts, driven as the services and the bus
// drive them, with the same outcome at the machine.
package backendtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Lab is a backend with machines to try it on.
type Lab struct {
	Backend backend.Backend
	// NewHost declares a host with a machine of its own, which is off and empty.
	NewHost func(t *testing.T) lifecycle.Host
	// Machine is what the host's machine is like now.
	Machine func(t *testing.T, h lifecycle.Host) Machine
	// Image is what can be deployed.
	Image v1alpha1.Image
	// DataImages are two that can be put into virtual CD drives; empty for a
	// backend that cannot.
	DataImages []string
	// Subscribed are the destinations of the subscriptions at the host's BMC; nil
	// for a backend that makes none.
	Subscribed func(t *testing.T, h lifecycle.Host) []string
	// Sparse: an inspection tells of processors, memory and MAC addresses, and of
	// little else.
	Sparse bool
	// NoService: the firmware of hosts in use cannot be changed.
	NoService bool
	// Now is the backend's clock; Pass lets time pass until the next look.
	Now  func() time.Time
	Pass func(time.Duration)
	// Break makes the host's BMC unreachable until mend is called. Nil if the
	// lab cannot.
	Break func(t *testing.T, h lifecycle.Host) (mend func())
}

// Machine is a machine as its lab sees it, not as the backend does.
type Machine struct {
	On bool
	// Image is the URL that it runs or has on its disk, "" for none.
	Image string
	// Boots counts how often it was switched on or restarted.
	Boots int
	// Media reports whether something is in its virtual CD drive.
	Media bool
}

// looks bounds how often an operation is looked at before it counts as stuck.
const looks = 400

// Drive brings an operation to its end, as the bus does: look, claim, write,
// look again. It returns the host after it, or the problem that ended it.
func (l Lab) Drive(ctx context.Context, h lifecycle.Host, k event.Kind) (lifecycle.Host, lifecycle.Result, *event.Problem, error) {
	for range looks {
		o, err := l.Backend.Look(ctx, k, h)
		if err != nil {
			return h, lifecycle.Result{}, nil, fmt.Errorf("look at %s: %w", k, err)
		}
		switch o := o.(type) {
		case lifecycle.Finished:
			return h, o.Result, nil, nil
		case lifecycle.Broken:
			return record(h, lifecycle.Failed{Kind: k, Problem: o.Problem}, l.Now()), lifecycle.Result{}, &o.Problem, nil
		case lifecycle.Underway:
			l.Pass(min(o.Every, 200*time.Millisecond))
		case lifecycle.Needs:
			if h, err = l.write(ctx, h, k, o.Write); err != nil {
				if p, ok := errors.AsType[*lifecycle.ProblemError](err); ok {
					return h, lifecycle.Result{}, &p.Problem, nil
				}
				return h, lifecycle.Result{}, nil, err
			}
		}
	}
	return h, lifecycle.Result{}, nil, fmt.Errorf("%s did not end in %d looks", k, looks)
}

// write claims a write and makes it.
func (l Lab) write(ctx context.Context, h lifecycle.Host, k event.Kind, name string) (lifecycle.Host, error) {
	var claim lifecycle.Fact = lifecycle.Started{Kind: k, Step: name, Mode: lifecycle.OffMode(h)}
	if h.Doing(k) {
		claim = lifecycle.Claimed{Kind: k, Step: name}
	}
	h = record(h, claim, l.Now())
	err := l.Backend.Do(ctx, h, lifecycle.Write{Kind: k, Name: name, Mode: lifecycle.OffMode(h)})
	busy := errors.Is(err, lifecycle.ErrBusy)
	if err != nil && !busy {
		return h, fmt.Errorf("write %s of %s: %w", name, k, err)
	}
	if busy {
		l.Pass(200 * time.Millisecond)
	}
	return record(h, lifecycle.Accepted{Kind: k, Busy: busy}, l.Now()), nil
}

func record(h lifecycle.Host, f lifecycle.Fact, at time.Time) lifecycle.Host {
	after := lifecycle.Apply(h, f, at)
	return after.WithNewest(f.Section(), lifecycle.Meta{Seq: h.Head + 1, Rev: h.Rev + 1, Fact: f.Name(), At: at})
}

// must drives an operation to a good end and records the fact that says so.
func (l Lab) must(t *testing.T, h lifecycle.Host, k event.Kind, done func(lifecycle.Result) lifecycle.Fact) lifecycle.Host {
	t.Helper()
	h, res, problem, err := l.Drive(t.Context(), h, k)
	if err != nil {
		t.Fatal(err)
	}
	if problem != nil {
		t.Fatalf("%s: %s", k, lifecycle.Message(*problem))
	}
	return record(h, done(res), l.Now())
}
