package ironictest

import (
	"context"
	"net/http"
	"slices"
	"time"
)

// Fault is what befalls one request.
type Fault struct {
	// Status is the status of the error that is answered, none if zero.
	Status int
	// Text is what that error says.
	Text string
	// Raw replaces the body of the answer, whatever it is: "{}", half an object,
	// a proxy's web page.
	Raw []byte
	// Drop closes the connection without an answer.
	Drop bool
	// Late carries the request out before it is answered with Status, or dropped.
	Late bool
	// Stale answers with what the same request was answered before, if it was.
	Stale bool
	// Delay holds the request up before anything else.
	Delay time.Duration
}

// early tells whether the fault answers in place of Ironic.
func (f Fault) early() bool { return f.Status != 0 && !f.Late }

func (f Fault) answer() answer { return answerOf(refuse(f.Status, "%s", f.Text)) }

type injection struct {
	match func(method, path string, body []byte) bool
	left  int // how many more requests it befalls, less than zero: all
	fault Fault
}

// Inject lets a fault befall the next requests that match, as many as times says,
// all if it is less than zero. The path comes with its leading /v1, the body as it
// was sent. undo ends it.
func (i *Ironic) Inject(times int, f Fault, match func(method, path string, body []byte) bool) (undo func()) {
	x := &injection{match: match, left: times, fault: f}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.injected = append(i.injected, x)
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.injected = slices.DeleteFunc(i.injected, func(y *injection) bool { return x == y })
	}
}

// Chaos is how often requests meet with trouble: shares of one, thrown by the seed
// for each request, all of them independent.
type Chaos struct {
	Error       float64 // 500
	Unavailable float64 // 503
	Busy        float64 // 409 to changes, as of a locked node
	Empty       float64 // an empty object in place of the answer
	Garbage     float64 // half an answer
	Drop        float64 // the connection is closed, nothing was done
	Lost        float64 // the connection is closed, but the request was carried out
	Stale       float64 // an old answer
	// Delay is the longest time that a request is held up.
	Delay time.Duration
}

// SetChaos sets how often requests meet with trouble from now on; Chaos{} ends it.
func (i *Ironic) SetChaos(c Chaos) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.chaos = c
	i.log.keepOld(c.Stale > 0)
}

// befalls finds what befalls a request.
func (i *Ironic) befalls(r *http.Request, body []byte) Fault {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, x := range i.injected {
		if x.left == 0 || !x.match(r.Method, r.URL.Path, body) {
			continue
		}
		x.left--
		return x.fault
	}
	if i.chaos == (Chaos{}) {
		return Fault{}
	}
	return i.throw(r.Method != http.MethodGet)
}

func (i *Ironic) throw(change bool) Fault {
	c, f := i.chaos, Fault{}
	hit := func(share float64) bool { return share > 0 && i.dice.Float64() < share }
	if c.Delay > 0 {
		f.Delay = time.Duration(i.dice.Float64() * float64(c.Delay))
	}
	f.Drop, f.Stale = hit(c.Drop), hit(c.Stale)
	if hit(c.Lost) {
		f.Drop, f.Late = true, true
	}
	switch {
	case hit(c.Error):
		f.Status, f.Text = http.StatusInternalServerError, "Unexpected exception."
	case hit(c.Unavailable):
		f.Status, f.Text = http.StatusServiceUnavailable, "Requested action cannot be performed due to lack of free conductor workers."
	case change && hit(c.Busy):
		f.Status, f.Text = http.StatusConflict, "Node is locked by host "+conductor+", please retry after the current operation is completed."
	}
	switch {
	case hit(c.Empty):
		f.Raw = []byte("{}")
	case hit(c.Garbage):
		f.Raw = []byte(`{"nodes": [{"uuid": "`)
	}
	return f
}

// wait holds a request up, or until the caller has gone.
func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
