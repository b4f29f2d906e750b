package ironic

import (
	"context"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/time/rate"
)

// portsAlone is how many questions about ports a second get a request of their own.
const portsAlone = 5

// portReader answers questions about ports as [Reader] does those about nodes: few
// of them at once by single requests, many by one listing that begins after they were
// asked.
type portReader struct {
	c     *Client
	alone *rate.Limiter

	mu sync.Mutex
	gathered[*portQuestion]
	ports int // of the last listing
}

type portQuestion struct {
	query  url.Values
	match  func(Port) bool
	answer chan portAnswer
}

type portAnswer struct {
	ports []Port
	err   error
}

func newPortReader(c *Client) *portReader {
	return &portReader{c: c, alone: rate.NewLimiter(portsAlone, portsAlone)}
}

// PortOf is the port with a MAC address; ok is false if there is none. MAC
// addresses are unique in an Ironic.
func (r *Reader) PortOf(ctx context.Context, mac string) (p Port, ok bool, err error) {
	mac = strings.ToLower(mac)
	all, err := r.ports.ask(ctx, &portQuestion{query: url.Values{"address": {mac}}, match: func(p Port) bool { return strings.EqualFold(p.MAC, mac) }})
	if err != nil || len(all) == 0 {
		return Port{}, false, err
	}
	return all[0], true, nil
}

// Ports are the ports of a node.
func (r *Reader) Ports(ctx context.Context, uuid string) ([]Port, error) {
	return r.ports.ask(ctx, &portQuestion{query: url.Values{"node_uuid": {uuid}}, match: func(p Port) bool { return p.Node == uuid }})
}

func (r *portReader) ask(ctx context.Context, q *portQuestion) ([]Port, error) {
	if r.aloneNow() {
		return r.c.ports(ctx, q.query)
	}
	q.answer = make(chan portAnswer, 1)
	r.join(ctx, q)
	select {
	case a := <-q.answer:
		return a.ports, a.err
	case <-ctx.Done():
		return nil, &Error{Reason: ErrBusy, Ironic: r.c.cfg.Name, Op: "list ports", Detail: "no answer in time"}
	}
}

// aloneNow reports whether a question may have a request of its own.
func (r *portReader) aloneNow() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting) == 0 && r.alone.AllowN(r.c.now(), 1)
}

// join adds a question to those who wait, and sees to it that they get an answer.
func (r *portReader) join(ctx context.Context, q *portQuestion) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx = context.WithoutCancel(ctx) // the answer is for others too
	r.add(r.c.now(), q, func() { r.answerAll(ctx) })
}

func (r *portReader) answerAll(ctx context.Context) {
	r.mu.Lock()
	questions := r.take()
	few := len(questions) < worth*pages(r.ports)
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, r.c.cfg.Timeout)
	defer cancel()
	if few {
		atOnce(questions, func(q *portQuestion) {
			ports, err := r.c.ports(ctx, q.query)
			q.answer <- portAnswer{ports, err}
		})
		return
	}
	began := r.c.now()
	all, err := listed(ctx, r.c, "ports", portFields(), func([]Port) {})
	r.mu.Lock()
	r.listed(began, r.c.now())
	r.ports = len(all)
	r.mu.Unlock()
	for _, q := range questions {
		q.answer <- portAnswer{ports: q.of(all), err: err}
	}
}

// of are those of the ports that a question is about.
func (q *portQuestion) of(all []Port) []Port {
	var list []Port
	for _, p := range all {
		if q.match(p) {
			list = append(list, p)
		}
	}
	return list
}
