package ironic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// alone is how many reads a second get a request of their own, while there are no
	// more.
	alone = 20
	// thick is for how long after a listing reads count as many. It outlasts the
	// wait for the next one.
	thick = longestGather + 3*time.Second
	// gather is how long reads are gathered before they are answered together.
	gather = 50 * time.Millisecond
	// share is how many times as long as a listing took is waited until the next one
	// begins: a quarter of Ironic's time for us is enough.
	share = 4
	// shortestGather and longestGather bound that. Who reads that much has so many
	// nodes under way that a second does not matter to any of them.
	shortestGather = time.Second
	longestGather  = 2 * time.Second
	// worth is how many reads are worth a page of a listing.
	worth = 5
)

// Reader reads nodes and ports for many callers at once. A few reads are answered by single
// requests at once. Where they come thick, they are gathered, and one listing
// answers them all. Either begins after the caller asked: no answer is older than
// its question.
type Reader struct {
	c     *Client
	alone *rate.Limiter
	ports *portReader

	mu sync.Mutex
	gathered[*question]
	listing int // listings under way
	// of the last listing:
	nodes int
	rest  Fleet
	index map[string]int // of rest, by UUID
	// asked counts reads of nodes at rest since rest began.
	asked      int
	refreshing bool
}

// question is one caller who waits.
type question struct {
	ids    []string // of one node, by which it may be known; the first that is there counts
	trust  bool     // a listing is believed that it is not there
	answer chan answer
}

type answer struct {
	node Node
	err  error
}

// NewReader is a Reader of a client's nodes.
func NewReader(c *Client) *Reader {
	return &Reader{c: c, alone: rate.NewLimiter(alone, alone), ports: newPortReader(c)}
}

// Node is a node as it is now, by UUID or name. Of several of them the first that
// is there counts. A node that there is not is an ErrNoNode.
func (r *Reader) Node(ctx context.Context, ids ...string) (Node, error) {
	return r.ask(ctx, &question{ids: ids, answer: make(chan answer, 1)})
}

// Find is like Node for one that need not be there: a listing that does not show it
// is believed. Nodes that Ironic hides are missed then.
func (r *Reader) Find(ctx context.Context, ids ...string) (Node, error) {
	return r.ask(ctx, &question{ids: ids, trust: true, answer: make(chan answer, 1)})
}

func (r *Reader) ask(ctx context.Context, q *question) (Node, error) {
	if r.aloneNow() {
		return r.single(ctx, q)
	}
	r.join(ctx, q)
	select {
	case a := <-q.answer:
		return a.node, a.err
	case <-ctx.Done():
		return Node{}, &Error{Reason: ErrBusy, Ironic: r.c.cfg.Name, Op: "read node " + q.ids[0], Detail: "no answer in time"}
	}
}

// aloneNow reports whether a read may have a request of its own.
func (r *Reader) aloneNow() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	many := len(r.waiting)+r.listing > 0 || r.c.now().Sub(r.ended) < thick
	return !many && r.alone.AllowN(r.c.now(), 1)
}

// single asks for a node by requests of its own.
func (r *Reader) single(ctx context.Context, q *question) (n Node, err error) {
	r.c.metrics.reads.WithLabelValues(r.c.cfg.Name, "single").Inc()
	for _, id := range q.ids {
		if n, err = r.c.Get(ctx, id); !errors.Is(err, ErrNoNode) {
			break
		}
	}
	return n, err
}

// join adds a question to those who wait, and sees to it that they get an answer.
func (r *Reader) join(ctx context.Context, q *question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx = context.WithoutCancel(ctx) // the answer is for others too
	r.add(r.c.now(), q, func() { r.answerAll(ctx) })
}

// answerAll answers those who wait.
func (r *Reader) answerAll(ctx context.Context) {
	r.mu.Lock()
	questions := r.take()
	few := len(questions) < worth*pages(r.nodes)
	if !few {
		r.listing++
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, r.c.cfg.Timeout)
	defer cancel()
	if few {
		r.each(ctx, questions)
		return
	}
	found, err := r.list(ctx)
	var others []*question
	for _, q := range questions {
		if a, ok := r.fromListing(q, found, err); ok {
			q.answer <- a
		} else {
			others = append(others, q)
		}
	}
	r.each(ctx, others)
}

// fromListing is what a listing says to a question; ok is false if that is not to
// be believed: the node may have come meanwhile, or be hidden from listings.
func (r *Reader) fromListing(q *question, found map[string]Node, err error) (a answer, ok bool) {
	if err != nil {
		return answer{err: err}, true
	}
	for _, id := range q.ids {
		if n, there := found[id]; there && !n.Hidden() {
			r.c.metrics.reads.WithLabelValues(r.c.cfg.Name, "listing").Inc()
			return answer{node: n}, true
		}
	}
	e := &Error{Reason: ErrNoNode, Ironic: r.c.cfg.Name, Op: "read node " + q.ids[0], Detail: "no listing shows it"}
	return answer{err: e}, q.trust
}

// each answers every question by a request of its own.
func (r *Reader) each(ctx context.Context, questions []*question) {
	atOnce(questions, func(q *question) {
		n, err := r.single(ctx, q)
		q.answer <- answer{node: n, err: err}
	})
}

// list reads all nodes, by UUID and by name.
func (r *Reader) list(ctx context.Context) (map[string]Node, error) {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.listing--
	}()
	v, err := r.c.Version(ctx)
	if err != nil {
		return nil, err
	}
	began := r.c.now()
	all, err := r.c.list(ctx, v.fields())
	if err != nil {
		return nil, err
	}
	r.keep(Fleet{Began: began, Nodes: all})
	found := make(map[string]Node, 2*len(all))
	for _, n := range all {
		found[n.Name] = n
	}
	for _, n := range all { // a name may look like a UUID, and does not win over one
		found[n.UUID] = n
	}
	return found, nil
}

// keep keeps a listing for reads that may be older.
func (r *Reader) keep(f Fleet) {
	index := make(map[string]int, len(f.Nodes))
	for i, n := range f.Nodes {
		index[n.UUID] = i
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listed(f.Began, r.c.now())
	r.nodes, r.rest, r.index, r.asked = len(f.Nodes), f, index, 0
}

// pages is how many pages a listing of so many nodes has.
func pages(nodes int) int { return nodes/pageSize + 1 }

// Recent is a node at rest, by UUID: states, power, fault and health, asked of
// Ironic after the given moment and, by and large, no longer ago than maxAge.
func (r *Reader) Recent(ctx context.Context, uuid string, after time.Time, maxAge time.Duration) (Node, error) {
	if r.refreshes(maxAge) {
		if err := r.refresh(ctx); err != nil {
			return Node{}, err
		}
	}
	n, ok := r.kept(uuid, after, maxAge)
	if !ok {
		return r.Node(ctx, uuid)
	}
	r.c.metrics.reads.WithLabelValues(r.c.cfg.Name, "kept").Inc()
	return n, nil
}

// refreshes tells one caller that the last listing is too old and that so many ask
// for it that a new one is worth it.
func (r *Reader) refreshes(maxAge time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	age := r.c.now().Sub(r.rest.Began)
	if age < maxAge || r.refreshing || r.demand(age, maxAge) < worth*pages(r.nodes) {
		return false
	}
	r.refreshing = true
	return true
}

// kept is a node of the last listing, if that is new enough. While a new one is
// made the old one serves on.
func (r *Reader) kept(uuid string, after time.Time, maxAge time.Duration) (Node, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	age := r.c.now().Sub(r.rest.Began)
	i, there := r.index[uuid]
	fresh := age < maxAge || (r.refreshing && age < 2*maxAge)
	if !there || !fresh || !r.rest.Began.After(after) {
		return Node{}, false
	}
	return r.rest.Nodes[i], true
}

// demand is how many reads of nodes at rest come in a time.
func (r *Reader) demand(age, within time.Duration) int {
	return int(float64(r.asked) * min(1, within.Seconds()/age.Seconds()))
}

// refresh lists the nodes anew.
func (r *Reader) refresh(ctx context.Context) error {
	_, err := r.Fleet(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refreshing = false
	return err
}

// Fleet lists all nodes at rest, and keeps the answer for Recent.
func (r *Reader) Fleet(ctx context.Context) (Fleet, error) {
	f, err := r.c.Fleet(ctx)
	if err != nil {
		return Fleet{}, fmt.Errorf("list the fleet: %w", err)
	}
	r.keep(f)
	return f, nil
}
