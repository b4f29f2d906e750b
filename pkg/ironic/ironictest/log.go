package ironictest

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Request is one request that an Ironic was asked, and the status of its answer,
// zero if the connection was closed without one.
type Request struct {
	Time   time.Time
	Method string
	Path   string // with its leading /v1
	Query  string
	Minor  int    // of the API version, zero where it was not looked at
	Body   []byte // of changes; it may hold passwords
	Status int
}

// maxRequests bounds the log.
const maxRequests = 20000

// requestLog is what an Ironic remembers of the requests to it.
type requestLog struct {
	mu     sync.Mutex
	last   []Request
	counts map[string]int
	old    map[string]answer // answers by address; nil while nobody asks for old ones
}

// note adds a request of a kind.
func (l *requestLog) note(kind string, r Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	l.counts[kind]++
	if len(l.last) >= maxRequests {
		l.last = slices.Delete(l.last, 0, maxRequests/2)
	}
	l.last = append(l.last, r)
}

func (l *requestLog) keepOld(yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.old = nil
	if yes {
		l.old = map[string]answer{}
	}
}

// remember keeps an answer until it has been given again when it was old.
func (l *requestLog) remember(r *http.Request, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.old == nil || r.Method != http.MethodGet || a.status != http.StatusOK {
		return
	}
	if _, there := l.old[r.URL.String()]; !there {
		l.old[r.URL.String()] = a
	}
}

// stale gives an old answer in place of a, if there is one.
func (l *requestLog) stale(r *http.Request, a answer) answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	old, there := l.old[r.URL.String()]
	if !there || r.Method != http.MethodGet {
		return a
	}
	delete(l.old, r.URL.String())
	return old
}

// Requests are the requests so far, the oldest first; only the last ones if there
// were very many.
func (i *Ironic) Requests() []Request {
	i.log.mu.Lock()
	defer i.log.mu.Unlock()
	return slices.Clone(i.log.last)
}

// Counts counts all requests so far by kind, like "GET nodes/{node}" and
// "PUT nodes/{node}/states/provision".
func (i *Ironic) Counts() map[string]int {
	i.log.mu.Lock()
	defer i.log.mu.Unlock()
	return maps.Clone(i.log.counts)
}

// logged notes a call and how it was answered.
func (i *Ironic) logged(c *call, kind string, status int) {
	r := Request{Time: i.cfg.Now(), Method: c.r.Method, Path: c.r.URL.Path, Query: c.r.URL.RawQuery, Minor: c.minor, Status: status}
	if c.r.Method != http.MethodGet {
		r.Body = c.body
	}
	i.log.note(kind, r)
}
