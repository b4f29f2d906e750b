package ironic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/noauth"
)

// Client speaks to one Ironic. Its methods may be called at the same time from
// anywhere. What a method writes may have been done although it returned an error
// that is context.DeadlineExceeded; every other error means that it was not.
type Client struct {
	cfg     Config
	base    string // of all resources, with a slash at the end
	now     func() time.Time
	wire    *wire
	budget  *budget
	metrics *Metrics
	// skew is how far Ironic's clock is ahead of ours, in nanoseconds.
	skew atomic.Int64

	asking chan struct{} // has room for the one who asks for the version
	mu     sync.Mutex
	found  session
}

// session is a version that was found, and gophercloud's client that speaks it.
type session struct {
	Version
	client *gophercloud.ServiceClient
	until  time.Time
}

// New is a Client of the Ironic that cfg describes. It asks nothing of it yet.
func New(cfg Config, now func() time.Time, m *Metrics) (*Client, error) {
	if now == nil {
		return nil, errors.New("ironic: New needs a clock")
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	base, err := endpoint(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	w, err := newWire(cfg, now)
	if err != nil {
		return nil, err
	}
	if m == nil {
		m = NewMetrics(nil)
	}
	return &Client{cfg: cfg, base: base, now: now, wire: w, budget: newBudget(cfg, now), metrics: m, asking: make(chan struct{}, 1)}, nil
}

// Name is how users call this Ironic.
func (c *Client) Name() string { return c.cfg.Name }

// Close lets go of idle connections.
func (c *Client) Close() { c.wire.close() }

// service is gophercloud's client, which asks in a version if there is one.
func (c *Client) service(version string) *gophercloud.ServiceClient {
	client, err := noauth.NewBareMetalNoAuth(noauth.EndpointOpts{IronicEndpoint: c.base})
	if err != nil {
		panic(err) // the endpoint is not empty
	}
	client.Microversion = version
	client.UserAgent.Prepend("metalbus")
	client.HTTPClient = http.Client{
		Transport: c.wire,
		// A redirected write may become a read on its way: configure the right endpoint instead.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return client
}

// call is one request to Ironic.
type call struct {
	// name in metrics, "get node"; what it is about, "lab~host-a".
	name, about string
	write       bool
	listing     bool // of nodes, for many who wait
	// bmc: Ironic asks the BMC before it answers, so a time-out says nothing of Ironic.
	bmc bool
	// body is what is sent, for its secrets.
	body any
	// do makes the request.
	do func(context.Context, *gophercloud.ServiceClient) error
}

// patience is how long the call waits for its turn.
func (k call) patience() time.Duration {
	switch {
	case k.write:
		return writePatience
	case k.listing:
		return listingPatience
	default:
		return patience
	}
}

func (k call) op() string {
	if k.about == "" {
		return k.name
	}
	return k.name + " " + k.about
}

// call makes a request in the negotiated version. A server that no longer speaks
// it is asked for its version again, and once more for the answer: it has done
// nothing.
func (c *Client) call(ctx context.Context, k call) error {
	s, err := c.session(ctx)
	if err != nil {
		return err
	}
	err = c.make(ctx, k, s.client)
	if !errors.Is(err, ErrVersion) {
		return err
	}
	c.forget(s)
	if s, err = c.session(ctx); err != nil {
		return err
	}
	return c.make(ctx, k, s.client)
}

// make makes a request within the budget.
func (c *Client) make(ctx context.Context, k call, client *gophercloud.ServiceClient) error {
	leave, err := c.budget.enter(ctx, k.write, k.patience())
	if err != nil {
		c.metrics.held.WithLabelValues(c.cfg.Name).Inc()
		return c.notMade(k, err)
	}
	defer leave()
	began := c.now()
	within, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	err = c.translate(k.op(), secretsIn(k.body), k.do(within, client))
	took := c.now().Sub(began)
	c.metrics.done(c.cfg.Name, k.name, took, err)
	if !isTimeLimit(err) || (!k.bmc && ctx.Err() == nil) {
		c.budget.heard(began, k.write, err)
	}
	return err
}

func isTimeLimit(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// notMade is the error of a request that was not made. Nothing was done.
func (c *Client) notMade(k call, err error) error {
	e := &Error{Reason: ErrNotReady, Ironic: c.cfg.Name, Op: k.op(), Detail: Detail(err)}
	if errors.Is(err, errCrowded) || errors.Is(err, ErrBusy) {
		e.Reason = ErrBusy
	}
	return e
}

// Version is the API version that is spoken. An Ironic that cannot be used now is
// an ErrNotReady.
func (c *Client) Version(ctx context.Context) (Version, error) {
	s, err := c.session(ctx)
	return s.Version, err
}

// session is the one in use. One caller renews it when its time is over, and the
// others go on with the old one meanwhile.
func (c *Client) session(ctx context.Context) (session, error) {
	found := c.known()
	if found.client != nil && c.now().Before(found.until) {
		return found, nil
	}
	if !c.mayAsk(ctx, found.client == nil) {
		if found = c.known(); found.client != nil {
			return found, nil
		}
		return session{}, c.notMade(call{name: "discover the API version"}, errCrowded)
	}
	defer func() { <-c.asking }()
	if found = c.known(); found.client != nil && c.now().Before(found.until) {
		return found, nil
	}
	s, err := c.discover(ctx)
	if err != nil {
		return session{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found = s
	return s, nil
}

func (c *Client) known() session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.found
}

// mayAsk takes the turn to ask for the version. Who has no version to go on with
// waits a little for it.
func (c *Client) mayAsk(ctx context.Context, wait bool) bool {
	select {
	case c.asking <- struct{}{}:
		return true
	default:
	}
	if !wait {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case c.asking <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// forget drops a session that no longer works.
func (c *Client) forget(s session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.found.client == s.client {
		c.found = session{}
	}
}

// discover asks for the versions, and whether there are drivers: an Ironic whose
// conductor is not up yet has none.
func (c *Client) discover(ctx context.Context) (session, error) {
	const name = "discover the API version"
	var versions serverVersions
	plain := c.service("")
	err := c.make(ctx, call{name: name, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		return c.get(ctx, s, c.base, &versions)
	}}, plain)
	if err != nil {
		return session{}, c.unready(name, err)
	}
	v, err := versions.choose(c.cfg.Name)
	if err != nil {
		return session{}, &Error{Reason: ErrNotReady, Ironic: c.cfg.Name, Op: name, Detail: err.Error()}
	}
	s := session{Version: v, client: c.service(v.String()), until: c.now().Add(c.cfg.Discovery)}
	var drivers struct{ Drivers []struct{ Name string } }
	err = c.make(ctx, call{name: "list drivers", do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		return c.get(ctx, s, s.ServiceURL("drivers"), &drivers)
	}}, s.client)
	switch {
	case err != nil:
		return session{}, c.unready("list drivers", err)
	case len(drivers.Drivers) == 0:
		return session{}, &Error{Reason: ErrNotReady, Ironic: c.cfg.Name, Op: "list drivers", Detail: "no drivers loaded", Advice: "Ironic's conductor is not up yet, or has no enabled_hardware_types"}
	}
	return s, nil
}

// unready: whatever goes wrong in discovery, Ironic is not ready.
func (c *Client) unready(op string, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || errors.Is(e, ErrNotReady) || errors.Is(e, ErrUnauthorized) || errors.Is(e, ErrBusy) {
		return err
	}
	return &Error{Reason: ErrNotReady, Ironic: c.cfg.Name, Op: op, Detail: e.Detail, Status: e.Status, Advice: fmt.Sprintf("check that the endpoint %s is that of the Ironic API", c.base)}
}

// get reads a JSON document, and notes what Ironic's clock says.
func (c *Client) get(ctx context.Context, s *gophercloud.ServiceClient, url string, out any) error {
	header, err := send(ctx, s, http.MethodGet, url, &gophercloud.RequestOpts{JSONResponse: out, OkCodes: []int{http.StatusOK}})
	c.noteClock(header)
	return err
}

// send makes a request for which gophercloud has no function of its own, or one
// that reads less than there is.
func send(ctx context.Context, s *gophercloud.ServiceClient, method, url string, opts *gophercloud.RequestOpts) (http.Header, error) {
	resp, err := s.Request(ctx, method, url, opts)
	if resp == nil {
		return nil, err
	}
	_ = resp.Body.Close() // gophercloud has read what there was
	return resp.Header, err
}

func (c *Client) noteClock(h http.Header) {
	if at, err := http.ParseTime(h.Get("Date")); err == nil {
		c.skew.Store(int64(at.Sub(c.now())))
	}
}

// serverTime is Ironic's clock for a moment of ours, good to a second or two.
func (c *Client) serverTime(at time.Time) time.Time { return at.Add(time.Duration(c.skew.Load())) }
