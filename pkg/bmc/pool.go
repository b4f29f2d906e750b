package bmc

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Config is how a pool treats BMCs. Zero values take the defaults.
type Config struct {
	// Now is the clock. Required.
	Now func() time.Time
	// RootCAs are the authorities that certificates are held against, asked for at
	// each request; nil, or none, means the system's.
	RootCAs func() *x509.CertPool
	// MaxConns bounds the open connections in all; 1000.
	MaxConns int
	// DialTimeout is for a connection, and again for its TLS handshake; 10 s.
	DialTimeout time.Duration
	// RequestTimeout is for one request, from its turn to the end of the answer; 60 s.
	RequestTimeout time.Duration
	// SessionIdle is how long a session is kept unused before it is logged out; 5 min.
	SessionIdle time.Duration
	// PauseAfter is how many failed connections in a row make a BMC be left alone; 3.
	PauseAfter int
	// FirstPause is for how long at first; it doubles up to LongestPause. 1 s, 1 min.
	FirstPause, LongestPause time.Duration
	// IPMITool is the path of the program ipmitool; it is looked up if empty.
	IPMITool string
}

func (c Config) withDefaults() (Config, error) {
	if c.Now == nil {
		return c, errors.New("bmc: Config.Now is not set: give it a clock")
	}
	if c.MaxConns < 0 || c.PauseAfter < 0 || min(c.DialTimeout, c.RequestTimeout, c.SessionIdle, c.FirstPause, c.LongestPause) < 0 {
		return c, fmt.Errorf("bmc: a number or time in the configuration is negative: %+v", c)
	}
	for _, d := range []struct {
		to *time.Duration
		by time.Duration
	}{
		{&c.DialTimeout, 10 * time.Second}, {&c.RequestTimeout, time.Minute}, {&c.SessionIdle, 5 * time.Minute}, {&c.FirstPause, time.Second}, {&c.LongestPause, time.Minute},
	} {
		if *d.to == 0 {
			*d.to = d.by
		}
	}
	if c.MaxConns == 0 {
		c.MaxConns = 1000
	}
	if c.PauseAfter == 0 {
		c.PauseAfter = 3
	}
	return c, nil
}

// Pool speaks to any number of BMCs. Its methods may be called at the same time
// from anywhere.
type Pool struct {
	cfg    Config
	salt   []byte // of the keys of credentials, so that they are worth nothing outside
	wires  *wires
	slots  chan struct{} // requests under way
	failed failedLogins

	ctx    context.Context // of what nobody waits for; ends with Close
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	lanes  map[laneKey]*lane
}

// New makes a pool. It fails on a bad configuration only; no connection is made.
func New(cfg Config) (*Pool, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	salt := make([]byte, sha256.Size)
	_, _ = rand.Read(salt) // never fails
	ctx, cancel := context.WithCancel(context.Background())
	return &Pool{
		cfg: cfg, salt: salt, wires: newWires(cfg), slots: make(chan struct{}, inFlight(cfg.MaxConns)),
		ctx: ctx, cancel: cancel, lanes: map[laneKey]*lane{},
	}, nil
}

// laneKey tells lanes apart.
type laneKey struct {
	login    loginKey
	insecure bool
}

// loginKey stands for an address, a user name and a password.
type loginKey [sha256.Size]byte

func (p *Pool) keyOf(address string, c Credentials) loginKey {
	h := hmac.New(sha256.New, p.salt)
	for _, part := range []string{address, c.user, c.reveal()} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return loginKey(h.Sum(nil))
}

// BMC gives a handle on one machine. It fails if the target is no address; nothing
// is sent.
func (p *Pool) BMC(t Target) (*BMC, error) {
	base, err := t.address()
	if err != nil {
		return nil, err
	}
	path, err := t.systemPath()
	if err != nil {
		return nil, err
	}
	return &BMC{pool: p, base: base, path: path, creds: t.Credentials, key: laneKey{p.keyOf(base, t.Credentials), t.InsecureSkipVerify}}, nil
}

// Forget allows one more login with the target's credentials after one that failed:
// for a user who says that the BMC's password was set right.
func (p *Pool) Forget(t Target) {
	if base, err := t.address(); err == nil {
		p.failed.forget(p.keyOf(base, t.Credentials))
	}
}

// Close logs all sessions out, as far as that goes before ctx ends, and closes the
// connections. Calls after it fail.
func (p *Pool) Close(ctx context.Context) {
	p.mu.Lock()
	p.closed = true
	lanes := p.lanes
	p.lanes = map[laneKey]*lane{}
	p.mu.Unlock()
	var all sync.WaitGroup
	for _, l := range lanes {
		all.Go(func() { l.end(ctx) })
	}
	all.Wait()
	p.cancel()
	p.wires.close()
}

// borrow takes the lane of a handle, and keeps it from being put away until give.
func (p *Pool) borrow(b *BMC) (*lane, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	l := p.lanes[b.key]
	if l == nil {
		l = newLane(p, b)
		p.lanes[b.key] = l
	}
	l.users++
	l.idle.Stop()
	return l, nil
}

func (p *Pool) give(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.users--; l.users == 0 && !p.closed {
		l.idle.Reset(p.cfg.SessionIdle)
	}
}

// putAway ends a lane that nobody has used for a while.
func (p *Pool) putAway(l *lane) {
	p.mu.Lock()
	unused := l.users == 0 && p.lanes[l.key] == l
	if unused {
		delete(p.lanes, l.key)
	}
	p.mu.Unlock()
	if unused {
		ctx, cancel := context.WithTimeout(p.ctx, p.cfg.RequestTimeout)
		defer cancel()
		l.end(ctx)
	}
}
