package ironictest

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const (
	versionHeader = "X-OpenStack-Ironic-API-Version"
	minimumHeader = "X-OpenStack-Ironic-API-Minimum-Version"
	maximumHeader = "X-OpenStack-Ironic-API-Maximum-Version"
	sharedHeader  = "OpenStack-API-Version"
	maxBody       = 64 << 20
)

// call is one request on its way.
type call struct {
	i     *Ironic
	r     *http.Request
	minor int
	body  []byte
	base  string // address of the server, as the caller wrote it
}

// handler answers a request with i.mu held.
type handler func(*call) (answer, error)

// Handler is the API. It takes paths with and without the leading /v1.
func (i *Ironic) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		path := strings.TrimRight(r.URL.Path, "/")
		if path != "/v1" && !strings.HasPrefix(path, "/v1/") && path != "" {
			path = "/v1" + path
		}
		if path == "" {
			path = "/"
		}
		r.URL = &url.URL{Path: path, RawQuery: r.URL.RawQuery}
		i.mux.ServeHTTP(w, r)
	})
}

func (i *Ironic) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	routes := i.routes()
	routes["/"] = func(*call) (answer, error) { return nothing(noSuchPage()) }
	for pattern, h := range routes {
		kind := strings.Replace(pattern, " /v1/", " ", 1)
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { i.serve(w, r, kind, h) })
	}
	return mux
}

// serve takes one request through the door: what befalls it, who asks, in which
// version, and who answers.
func (i *Ironic) serve(w http.ResponseWriter, r *http.Request, kind string, h handler) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return // the caller has gone
	}
	c := &call{i: i, r: r, body: body, base: "http://" + r.Host}
	if r.TLS != nil {
		c.base = "https://" + r.Host
	}
	f := i.befalls(r, body)
	wait(r.Context(), f.Delay)
	if f.Drop && !f.Late {
		i.logged(c, kind, 0)
		panic(http.ErrAbortHandler)
	}
	a := answer{}
	if f.early() {
		a = f.answer()
	} else {
		a = i.answer(w.Header(), c, h)
	}
	i.logged(c, kind, a.status)
	switch {
	case f.Drop:
		panic(http.ErrAbortHandler)
	case f.Late && f.Status != 0:
		a = f.answer()
	case f.Stale && a.status == http.StatusOK:
		a = i.log.stale(r, a)
	}
	i.log.remember(r, a)
	if f.Raw != nil {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(a.status)
		_, _ = io.Copy(w, bytes.NewReader(f.Raw)) // the caller may have gone
		return
	}
	a.write(w)
}

// answer lets a request in and has it answered.
func (i *Ironic) answer(header http.Header, c *call, h handler) answer {
	if a, refused := i.whoAsks(c.r); refused {
		return a
	}
	header.Set("Date", i.cfg.Now().UTC().Format(http.TimeFormat))
	if c.r.URL.Path != "/" || i.cfg.Release >= Ironic29 {
		header.Set(minimumHeader, "1.1")
		header.Set(maximumHeader, fmt.Sprintf("1.%d", i.cfg.NewestMinor))
	}
	if err := c.negotiate(); err != nil {
		return answerOf(err)
	}
	if c.r.URL.Path != "/" || i.cfg.Release >= Ironic29 {
		header.Set(versionHeader, fmt.Sprintf("1.%d", c.minor))
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	a, err := h(c)
	if err != nil {
		return answerOf(err)
	}
	return a
}

// whoAsks checks the credentials, where there are any to check.
func (i *Ironic) whoAsks(r *http.Request) (answer, bool) {
	if i.cfg.Username == "" && i.cfg.Password == "" || r.URL.Path == "/" || r.URL.Path == "/v1" {
		return answer{}, false
	}
	user, password, given := r.BasicAuth()
	good := subtle.ConstantTimeCompare([]byte(user+"\x00"+password), []byte(i.cfg.Username+"\x00"+i.cfg.Password)) == 1
	text := "Incorrect username or password"
	switch {
	case given && good:
		return answer{}, false
	case !given:
		text = "Authorization required"
	}
	a := answer{status: http.StatusUnauthorized, body: obj{"error": obj{"message": text, "code": http.StatusUnauthorized}}}
	return a.with("WWW-Authenticate", `Basic realm="Baremetal API"`), true
}

// negotiate finds the version that is asked for; 1.1 if none is.
func (c *call) negotiate() error {
	asked := strings.TrimSpace(c.r.Header.Get(versionHeader))
	if asked == "" {
		service, version, _ := strings.Cut(c.r.Header.Get(sharedHeader), " ")
		if service == "baremetal" {
			asked = strings.TrimSpace(version)
		}
	}
	switch asked {
	case "":
		c.minor = 1
		return nil
	case "latest":
		c.minor = c.i.cfg.NewestMinor
		return nil
	}
	major, minor, dotted := strings.Cut(asked, ".")
	n, err := strconv.Atoi(minor)
	if !dotted || err != nil {
		return refusePlainly(http.StatusNotAcceptable, "Invalid value for "+versionHeader+" header")
	}
	if major != "1" || n < 1 || n > c.i.cfg.NewestMinor {
		return refusePlainly(http.StatusNotAcceptable, fmt.Sprintf(
			"Version %s was requested but the minor version is not supported by this service. The supported version range is: [1.1, 1.%d].", asked, c.i.cfg.NewestMinor))
	}
	c.minor = n
	return nil
}

// needs refuses a page that the version does not have.
func (c *call) needs(minor int) error {
	if c.minor < minor {
		return noSuchPage()
	}
	return nil
}

// read takes the body apart, and refuses keys that nobody expects.
func (c *call) read(allowed ...string) (obj, error) {
	body := obj{}
	if len(c.body) > 0 {
		if err := json.Unmarshal(c.body, &body); err != nil {
			return nil, bad("Invalid input for field/attribute body: %v", err)
		}
	}
	for k := range body {
		known := false
		for _, a := range allowed {
			known = known || a == k
		}
		if !known {
			return nil, bad("Unexpected arguments: %s", k)
		}
	}
	return body, nil
}

// node finds the node that the path names.
func (c *call) node() (*node, error) {
	ident := c.r.PathValue("node")
	n := c.i.find(ident)
	if n == nil {
		return nil, noNode(ident)
	}
	return n, nil
}

// unlocked finds the node that the path names, for a change that wants it for
// itself.
func (c *call) unlocked() (*node, error) {
	n, err := c.node()
	if err != nil {
		return nil, err
	}
	if n.state.reservation != "" {
		return nil, locked(n)
	}
	return n, nil
}

func locked(n *node) error {
	return conflict("Node %s is locked by host %s, please retry after the current operation is completed.", n.uuid, n.state.reservation)
}
