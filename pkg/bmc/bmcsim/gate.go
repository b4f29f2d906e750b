package bmcsim

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// Handler answers for all hosts at one address.
func (s *Sim) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, nil) })
}

// serve takes one request through the door: whose is it, is that BMC in a state
// to answer, may the caller ask, and who answers. only is the host at an address
// of its own.
func (s *Sim) serve(w http.ResponseWriter, r *http.Request, only *Host) {
	path, below := strings.CutPrefix(strings.TrimRight(r.URL.Path, "/"), root)
	if !below {
		s.outside(w, r)
		return
	}
	path = strings.Trim(path, "/")
	c := &call{sim: s, host: only, alone: only != nil, path: path, r: r}
	var parts []string
	if path != "" {
		parts = strings.Split(path, "/")
	}
	node, ids := s.routes.match(parts)
	c.ids = ids
	c.whoAsks()
	gone := c.whose(parts)
	kind := r.Method + " " + kindOf(node)
	s.stats.count(kind)

	f := c.arrive(kind)
	sleep(r.Context(), f.Latency)
	if f.Down {
		panic(http.ErrAbortHandler)
	}
	a := c.answerTo(node, gone || f.Lost && strings.HasPrefix(path, "Systems/"), f)
	c.log(a.status)
	if a.stream != nil {
		a.stream(w, r)
		return
	}
	a.write(w, c.host != nil && c.host.shape.terse, f.Drop)
}

// outside answers what lies above the service root.
func (s *Sim) outside(w http.ResponseWriter, r *http.Request) {
	if strings.TrimRight(r.URL.Path, "/") == "/redfish" {
		answer{status: http.StatusOK, body: obj{"v1": root + "/"}}.write(w, false, false)
		return
	}
	http.NotFound(w, r)
}

func kindOf(n *route) string {
	if n == nil {
		return "unknown"
	}
	return n.kind
}

// whoAsks finds the credentials of the caller, good or bad. Who asks for a session
// has them in the body.
func (c *call) whoAsks() {
	if c.r.Method == http.MethodPost && c.path == sessionsPath {
		c.malformed, c.known = c.body(&c.login)
		c.key = keyOf(c.login.UserName, c.login.Password)
		return
	}
	if t := c.r.Header.Get("X-Auth-Token"); t != "" {
		c.key, c.known = c.sim.sessions.use(t)
		return
	}
	if user, password, ok := c.r.BasicAuth(); ok {
		c.key, c.known = keyOf(user, password), true
	}
}

// whose finds the host that the request is for: by the path, or by the caller's
// credentials if they open one host only. It tells whether the path names a host
// that is not there.
func (c *call) whose(parts []string) (gone bool) {
	named := len(parts) >= 2 && (parts[0] == "Systems" || parts[0] == "Managers" || parts[0] == "Chassis")
	if c.alone {
		own := map[string]string{"Systems": c.host.shape.systemID, "Managers": c.host.shape.managerID, "Chassis": c.host.shape.chassisID}
		return named && parts[1] != own[parts[0]]
	}
	if named {
		c.sim.mu.RLock()
		c.host = c.sim.hosts[parts[1]]
		c.sim.mu.RUnlock()
		if c.host != nil {
			return false
		}
	}
	if c.known {
		if mine := c.sim.holders(c.key); len(mine) == 1 {
			c.host = mine[0]
		}
	}
	return named
}

// arrive counts the request and tells what is wrong with the BMC.
func (c *call) arrive(kind string) Faults {
	if c.host == nil {
		return Faults{}
	}
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	c.host.ledger.count(kind)
	return c.host.faults
}

func (c *call) answerTo(node *route, gone bool, f Faults) answer {
	if f.Unavailable {
		return unavailable(f)
	}
	open := node != nil && (node.kind == "" || node.kind == sessionsPath && c.r.Method == http.MethodPost)
	if !open && !c.allowed(f) {
		return c.unauthorized()
	}
	if node == nil || gone {
		return missing(root + "/" + c.path)
	}
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	h := node.do[method]
	if h == nil {
		return refuse(http.StatusMethodNotAllowed, "OperationNotAllowed", "The HTTP method is not allowed on this resource.")
	}
	a := h(c)
	if method == http.MethodGet {
		return c.expand(a)
	}
	return a
}

func unavailable(f Faults) answer {
	a := refuse(http.StatusServiceUnavailable, "ServiceTemporarilyUnavailable", "The service is temporarily unavailable. Retry in 30 seconds.", "30")
	a.retry = f.RetryAfter
	return a
}

// allowed tells whether the caller's credentials open what is asked for: one host,
// or anything at all for what belongs to the whole service.
func (c *call) allowed(f Faults) bool {
	if !c.known {
		return false
	}
	if c.host != nil {
		return c.host.opens(c.key) && (!f.NoSessions || c.r.Header.Get("X-Auth-Token") == "")
	}
	return len(c.sim.owners(c.key)) > 0
}

func (c *call) unauthorized() answer {
	if _, _, basic := c.r.BasicAuth(); basic {
		c.failedLogin()
	}
	return refuse(http.StatusUnauthorized, "NoValidSession", "There is no valid session established with the implementation.")
}

func (c *call) failedLogin() {
	c.sim.stats.failedLogin()
	if c.host != nil {
		c.host.mu.Lock()
		c.host.ledger.failedLogins++
		c.host.mu.Unlock()
	}
}

// sleep waits, or until the caller has gone.
func sleep(ctx context.Context, d time.Duration) {
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
