package bmc

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// maxAnswer bounds the answers that are read, in bytes.
const maxAnswer = 32 << 20

// lane is the way to one BMC with one set of credentials: one request at a time and
// one session.
type lane struct {
	pool     *Pool
	key      laneKey
	base     string
	creds    Credentials
	insecure bool

	// Under pool.mu.
	users int
	idle  *time.Timer

	// turn is taken for each request, and guards what follows.
	turn    chan struct{}
	breaker breaker
	session session
	service *service
	ended   bool

	// What does not change and so is learned once.
	memory  sync.Mutex
	systems map[string]*system // by path
	only    string             // path of the only system
	tags    bool               // the BMC wants If-Match
}

func newLane(p *Pool, b *BMC) *lane {
	l := &lane{
		pool: p, key: b.key, base: b.base, creds: b.creds, insecure: b.key.insecure, turn: make(chan struct{}, 1), systems: map[string]*system{},
		breaker: breaker{after: p.cfg.PauseAfter, first: p.cfg.FirstPause, longest: p.cfg.LongestPause},
	}
	l.idle = time.AfterFunc(p.cfg.SessionIdle, func() { p.putAway(l) })
	l.idle.Stop()
	return l
}

func (l *lane) host() string {
	if u, err := url.Parse(l.base); err == nil {
		return u.Host
	}
	return l.base
}

func (l *lane) scrub(text string) string {
	return scrub(text, append(l.creds.secrets(), l.session.token)...)
}

// request is one request to be made. header is for what is not always there.
type request struct {
	method string
	path   string
	body   any
	header map[string]string
	open   bool // needs no login
}

// take waits for the lane's turn.
func (l *lane) take(ctx context.Context) *Error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return l.callerGone(ctx)
	}
}

func (l *lane) leave() { <-l.turn }

// do makes a request in its turn, logged in. An answer that is no success comes back
// with the error that is made of it.
func (l *lane) do(ctx context.Context, r request) (*response, *Error) {
	if e := l.take(ctx); e != nil {
		return nil, e
	}
	defer l.leave()
	return l.doInTurn(ctx, r)
}

func (l *lane) doInTurn(ctx context.Context, r request) (*response, *Error) {
	if l.ended {
		return nil, &Error{Reason: ErrClosed, Detail: "the pool is closed", NotTried: true}
	}
	fresh := !l.session.open
	if e := l.login(ctx); e != nil {
		return nil, e
	}
	a, e := l.send(ctx, r)
	if e != nil {
		return nil, e
	}
	if a.status == http.StatusUnauthorized && !fresh && l.session.token != "" {
		// The session has ended on the BMC's side. Nothing was carried out.
		l.session = session{}
		if e := l.login(ctx); e != nil {
			return nil, e
		}
		if a, e = l.send(ctx, r); e != nil {
			return nil, e
		}
	}
	if a.status == http.StatusUnauthorized {
		return nil, l.rejected(a)
	}
	return a, l.answerError(a)
}

// send puts one request on the wire. It fails if there is no whole answer.
func (l *lane) send(ctx context.Context, r request) (*response, *Error) {
	if e := l.breaker.open(l.pool.cfg.Now()); e != nil {
		return nil, e
	}
	select {
	case l.pool.slots <- struct{}{}:
		defer func() { <-l.pool.slots }()
	case <-ctx.Done():
		return nil, l.callerGone(ctx)
	}
	reqCtx, cancel := context.WithTimeoutCause(ctx, l.pool.cfg.RequestTimeout, errOwnTimeout)
	defer cancel()
	req, err := l.build(reqCtx, r)
	if err != nil {
		return nil, &Error{Reason: ErrNotRedfish, Detail: "the BMC gave a path that is none", Advice: "check the system's path in the address"}
	}
	a, err := l.roundTrip(req)
	if err != nil {
		e, blame := l.transportError(ctx, reqCtx, err)
		if blame {
			l.breaker.fail(l.pool.cfg.Now(), e)
		}
		return nil, e
	}
	l.breaker.ok()
	return a, nil
}

// roundTrip reads the whole answer. If only the body of a success to a change is
// lost, what counts is known.
func (l *lane) roundTrip(req *http.Request) (*response, error) {
	resp, err := l.pool.wires.client(l.insecure).Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // all that is wanted of it has been read
	a := &response{status: resp.StatusCode, header: resp.Header}
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil && (req.Method == http.MethodGet || !a.ok()) {
		return nil, err
	}
	return a, nil
}

func (l *lane) build(ctx context.Context, r request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, l.base+r.path, body)
	if err != nil {
		return nil, err
	}
	h := req.Header
	h.Set("Accept", "application/json")
	h.Set("OData-Version", "4.0")
	h.Set("User-Agent", "metalbus")
	if body != nil {
		h.Set("Content-Type", "application/json")
	}
	for k, v := range r.header {
		h.Set(k, v)
	}
	switch {
	case r.open:
	case l.session.token != "":
		h.Set("X-Auth-Token", l.session.token)
	default:
		req.SetBasicAuth(l.creds.user, l.creds.reveal())
	}
	return req, nil
}

// end logs out, as far as that goes before ctx ends.
func (l *lane) end(ctx context.Context) {
	if l.take(ctx) != nil {
		return
	}
	defer l.leave()
	if l.session.token != "" && l.session.location != "" {
		_, _ = l.send(ctx, request{method: http.MethodDelete, path: l.session.location}) // the session ends by itself otherwise
	}
	l.session, l.ended = session{}, true
}
