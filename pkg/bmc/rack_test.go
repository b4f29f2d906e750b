package bmc_test

import (
	"errors"
	"log" //nolint:depguard // net/http asks for it
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bmc/bmctest"
)

const iso = "http://images.example/live.iso"

// lab is one simulated host that answers at an address of its own.
type lab struct {
	sim  *bmcsim.Sim
	host *bmcsim.Host
	base string
	pool *bmc.Pool
}

func newLab(t *testing.T, profile string, cfg bmc.Config) *lab {
	t.Helper()
	s := bmctest.Rack(t, bmcsim.Config{Hosts: 1, Profiles: []string{profile}})
	h := s.Hosts()[0]
	return &lab{sim: s, host: h, base: bmctest.ServeAlone(t, h), pool: bmctest.Pool(t, cfg)}
}

func (l *lab) target() bmc.Target { return bmctest.TargetAlone(l.base, l.host) }

func (l *lab) open(t *testing.T) *bmc.BMC {
	t.Helper()
	return bmctest.Open(t, l.pool, l.target())
}

// requests counts the requests so far.
func (l *lab) requests() int {
	n := 0
	for _, k := range l.host.Requests() {
		n += k
	}
	return n
}

// cost counts the requests that f makes.
func (l *lab) cost(f func()) (int, map[string]int) {
	before, was := l.requests(), l.host.Requests()
	f()
	kinds := maps.Clone(l.host.Requests())
	for k, n := range was {
		if kinds[k] -= n; kinds[k] == 0 {
			delete(kinds, k)
		}
	}
	return l.requests() - before, kinds
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wants an error of this package with a reason, and an advice for the user.
func wants(t *testing.T, err, reason error) {
	t.Helper()
	_ = explained(t, err, reason) // it has said what is wrong
}

// explained wants an error of this package with a reason, and an advice for the user.
func explained(t *testing.T, err, reason error) *bmc.Error {
	t.Helper()
	e, ok := errors.AsType[*bmc.Error](err)
	if !ok || !errors.Is(err, reason) {
		t.Fatalf("got error %v, want %v", err, reason)
	}
	if e.Advice == "" || e.Op == "" || e.BMC == "" {
		t.Errorf("the error does not say enough: %+v", e)
	}
	return e
}

// server answers whatever f answers.
func server(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	return srv.URL
}

// nobody is an address where nothing listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	return "http://" + l.Addr().String()
}

// quiet is a log for servers that are meant to see broken connections.
func quiet() *log.Logger { return slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) }

// raise lifts a highest value.
func raise(most *atomic.Int32, n int32) {
	for {
		m := most.Load()
		if n <= m || most.CompareAndSwap(m, n) {
			return
		}
	}
}

// countConns counts the connections of a server that are open at a time.
func countConns(open, most *atomic.Int32) func(net.Conn, http.ConnState) {
	return func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			raise(most, open.Add(1))
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		default:
		}
	}
}
