package plant

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
)

// Hosts are the hosts of a namespace as a user of Kubernetes sees them, by a
// watch: nothing that a host showed is missed.
type Hosts struct {
	mu      sync.Mutex
	byName  map[string]*Life
	changed chan struct{} // closed at the next change
}

// A Life is what a host has shown so far.
type Life struct {
	// Now is the object as it is, nil once it has gone.
	Now *v1alpha1.BareMetalHost
	// Moments are the states that it showed, one after the other.
	Moments []Moment
}

// A Moment is when a host was first seen in a state.
type Moment struct {
	State v1alpha1.ProvisioningState
	At    time.Time
}

// States are those that the host showed, one after the other.
func (l Life) States() []v1alpha1.ProvisioningState {
	var states []v1alpha1.ProvisioningState
	for _, m := range l.Moments {
		states = append(states, m.State)
	}
	return states
}

// Reached is when the host was first seen in a state; ok is false if it never was.
func (l Life) Reached(s v1alpha1.ProvisioningState) (at time.Time, ok bool) {
	i := slices.IndexFunc(l.Moments, func(m Moment) bool { return m.State == s })
	if i < 0 {
		return time.Time{}, false
	}
	return l.Moments[i].At, true
}

// Follow watches the hosts of a namespace until the test ends.
func Follow(tb testing.TB, kube *lab.Kube, namespace string) *Hosts {
	tb.Helper()
	h := &Hosts{byName: map[string]*Life{}, changed: make(chan struct{})}
	c, err := client.NewWithWatch(kube.Config, client.Options{Scheme: lab.Scheme()})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			h.watch(ctx, c, namespace)
		}
	}()
	tb.Cleanup(func() {
		cancel()
		<-ended
	})
	return h
}

// again is the wait before the API is asked once more, which may be restarting.
const again = 100 * time.Millisecond

// watch lists the hosts and follows them until the API ends the watch.
func (h *Hosts) watch(ctx context.Context, c client.WithWatch, namespace string) {
	var list v1alpha1.BareMetalHostList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
		return
	}
	h.listed(list.Items)
	w, err := c.Watch(ctx, &v1alpha1.BareMetalHostList{}, client.InNamespace(namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		o, ok := e.Object.(*v1alpha1.BareMetalHost)
		if !ok {
			return // an error: the next list tells what was missed
		}
		h.see(o, e.Type == watch.Deleted)
	}
}

func (h *Hosts) listed(items []v1alpha1.BareMetalHost) {
	there := map[string]bool{}
	for i := range items {
		there[items[i].Name] = true
		h.see(&items[i], false)
	}
	for _, name := range h.names() {
		if !there[name] {
			h.see(h.Life(name).Now, true)
		}
	}
}

// see notes what a host shows now.
func (h *Hosts) see(o *v1alpha1.BareMetalHost, gone bool) {
	if o == nil {
		return
	}
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	life := h.byName[o.Name]
	if life == nil || (life.Now != nil && life.Now.UID != o.UID) {
		life = &Life{}
		h.byName[o.Name] = life
	}
	state := o.Status.Provisioning.State
	if n := len(life.Moments); n == 0 || life.Moments[n-1].State != state {
		life.Moments = append(life.Moments, Moment{state, now})
	}
	if life.Now = o; gone {
		life.Now = nil
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *Hosts) names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for name := range h.byName {
		names = append(names, name)
	}
	return names
}

// Count is how many hosts there are in each state.
func (h *Hosts) Count() map[v1alpha1.ProvisioningState]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	count := map[v1alpha1.ProvisioningState]int{}
	for _, life := range h.byName {
		if life.Now != nil {
			count[life.Now.Status.Provisioning.State]++
		}
	}
	return count
}

// Life is what a host has shown so far; empty for one that was never seen.
func (h *Hosts) Life(name string) Life {
	life, _ := h.look(name)
	return life
}

// look is a host's life so far, and a channel that is closed when any changes.
func (h *Hosts) look(name string) (Life, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if life := h.byName[name]; life != nil {
		return Life{Now: life.Now, Moments: slices.Clone(life.Moments)}, h.changed
	}
	return Life{}, h.changed
}

// Patience is how long a host may take to come where it is asked to, while
// other work goes on.
const Patience = 6 * time.Minute

// Await waits until a host is as it should be, and returns its life so far. A
// service that ends by itself ends the test at once.
func (p *Plant) Await(tb testing.TB, name, what string, is func(Life) bool) Life {
	tb.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	crash := time.NewTicker(time.Second)
	defer crash.Stop()
	for {
		life, changed := p.Hosts.look(name)
		if is(life) {
			return life
		}
		select {
		case <-changed:
		case <-crash.C:
			if text := p.crashed(); text != "" {
				tb.Fatal(text)
			}
		case <-deadline.C:
			tb.Fatalf("%s is not %s within %s: %s", name, what, Patience, describe(life))
		case <-tb.Context().Done():
			tb.Fatal("the test is over")
		}
	}
}

func describe(l Life) string {
	if l.Now == nil {
		return "it is not there"
	}
	s := l.Now.Status
	return fmt.Sprintf("it is %q, %q, %s %q, after %q", s.Provisioning.State, s.OperationalStatus, s.ErrorType, s.ErrorMessage, l.States())
}

// Shows is a condition for Await: the host shows a state.
func Shows(s v1alpha1.ProvisioningState) func(Life) bool {
	return func(l Life) bool { return l.Now != nil && l.Now.Status.Provisioning.State == s }
}

// InUse is a condition for Await: the host runs its image, and is on.
func InUse(l Life) bool { return Shows(v1alpha1.StateProvisioned)(l) && l.Now.Status.PoweredOn }

// Gone is a condition for Await: the host was there, and is no longer.
func Gone(l Life) bool { return l.Now == nil && len(l.Moments) > 0 }

// AwaitAll waits until each of the hosts has been as it should be.
func (p *Plant) AwaitAll(tb testing.TB, names []string, what string, is func(Life) bool) {
	tb.Helper()
	for _, name := range names {
		p.Await(tb, name, what, is)
	}
}

// AwaitSome waits until so many of the hosts are as they should be.
func (p *Plant) AwaitSome(tb testing.TB, n int, names []string, what string, is func(Life) bool) {
	tb.Helper()
	p.Await(tb, names[0], fmt.Sprintf("one of %d that are %s", n, what), func(Life) bool {
		are := 0
		for _, name := range names {
			if is(p.Hosts.Life(name)) {
				are++
			}
		}
		return are >= n
	})
}
