package ironic_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// An Ironic that does not answer is left alone for a growing while, in which every
// call is answered at once, and is used again as soon as it is back.
func TestBrokenIronicIsLeftAlone(t *testing.T) {
	var broken atomic.Bool
	var tried atomic.Int64
	a := newAPI(t)
	a.on("GET /nodes/"+uuid1, func(w http.ResponseWriter, _ *http.Request) {
		tried.Add(1)
		if broken.Load() {
			respond(w, http.StatusBadGateway, "<html>")
			return
		}
		respond(w, http.StatusOK, nodeJSON(uuid1, "n", "active"))
	})
	var ahead atomic.Int64
	c, err := ironic.New(ironic.Config{Name: "lab", Endpoint: a.server.URL, Discovery: 24 * time.Hour},
		func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), uuid1); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	tried.Store(0)
	for range 100 {
		if _, err := c.Get(t.Context(), uuid1); !errors.Is(err, ironic.ErrNotReady) {
			t.Fatalf("error %v, want ErrNotReady", err)
		}
	}
	if n := tried.Load(); n > 5 {
		t.Errorf("a broken Ironic was asked %d times in a moment, want a few", n)
	}
	tried.Store(0)
	for range 600 { // ten minutes
		ahead.Add(int64(time.Second))
		_, _ = c.Get(t.Context(), uuid1)
	}
	if n := tried.Load(); n < 10 || n > 40 {
		t.Errorf("a broken Ironic was asked %d times in ten minutes, want about one each 30 s", n)
	}
	broken.Store(false)
	ahead.Add(int64(30 * time.Second))
	for range 3 {
		if _, err := c.Get(t.Context(), uuid1); err != nil {
			t.Fatalf("after it was back: %v", err)
		}
	}
}

// An Ironic without free workers gets no writes for a while, but is read from.
func TestCrowdedConductorIsRead(t *testing.T) {
	a := newAPI(t)
	a.on("GET /nodes/"+uuid1, answer(200, nodeJSON(uuid1, "n", "active")))
	a.on("PUT /nodes/"+uuid1+"/states/provision", answer(503, fault("lack of free conductor workers")))
	c := a.client(nil)
	for range 20 {
		if err := c.Provision(t.Context(), uuid1, ironic.Provision{Verb: ironic.VerbManage}); !errors.Is(err, lifecycle.ErrBusy) {
			t.Fatalf("error %v, want ErrBusy", err)
		}
		if _, err := c.Get(t.Context(), uuid1); err != nil {
			t.Fatal(err)
		}
	}
	writes := 0
	for _, line := range a.lines() {
		if line == "PUT /v1/nodes/"+uuid1+"/states/provision" {
			writes++
		}
	}
	if writes > 5 {
		t.Errorf("%d writes to a conductor without free workers, want a few", writes)
	}
}

// A locked node says nothing of the others.
func TestLockedNodeHoldsUpNobody(t *testing.T) {
	a := newAPI(t)
	a.on("PUT /nodes/"+uuid1+"/states/provision", answer(409, fault("Node x is locked by host h")))
	a.on("PUT /nodes/"+uuid2+"/states/provision", answer(202, ""))
	c := a.client(nil)
	for range 10 {
		if err := c.Provision(t.Context(), uuid1, ironic.Provision{Verb: ironic.VerbManage}); !errors.Is(err, lifecycle.ErrBusy) {
			t.Fatalf("error %v, want ErrBusy", err)
		}
		if err := c.Provision(t.Context(), uuid2, ironic.Provision{Verb: ironic.VerbManage}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConcurrencyIsBounded(t *testing.T) {
	var under, most atomic.Int64
	a := newAPI(t)
	a.on("GET /nodes/"+uuid1, func(w http.ResponseWriter, _ *http.Request) {
		if n := under.Add(1); n > 3 {
			most.Store(n)
		}
		for range 1000 {
			runtime.Gosched() // gives others the time to come in
		}
		under.Add(-1)
		respond(w, http.StatusOK, nodeJSON(uuid1, "n", "active"))
	})
	c := a.client(func(cfg *ironic.Config) { cfg.Concurrency = 3 })
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, err := c.Get(t.Context(), uuid1); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if most.Load() > 0 {
		t.Errorf("%d requests at once, want 3 at most", most.Load())
	}
}

// An Ironic that hangs must not hold up those who wait for a turn there.
func TestWaitingForATurnIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial := make(chan struct{})
		c, err := ironic.New(ironic.Config{Name: "lab", Endpoint: "http://192.0.2.1", Concurrency: 1}, time.Now, nil)
		if err != nil {
			t.Fatal(err)
		}
		ironic.Dial(c, func(ctx context.Context, _, _ string) (net.Conn, error) {
			select {
			case <-dial:
			case <-ctx.Done():
			}
			return nil, context.DeadlineExceeded
		})
		go func() { _, _ = c.Version(t.Context()) }()
		synctest.Wait()
		began := time.Now()
		_, err = c.Version(t.Context())
		if !errors.Is(err, lifecycle.ErrBusy) {
			t.Errorf("error %v, want ErrBusy", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("waited %s, want a second at most", took)
		}
		close(dial)
		synctest.Wait()
	})
}

func TestTimeoutLeavesItOpen(t *testing.T) {
	a := newAPI(t)
	ended := make(chan struct{})
	a.on("PUT /nodes/"+uuid1+"/states/provision", func(http.ResponseWriter, *http.Request) { <-ended })
	defer close(ended)
	c := a.client(func(cfg *ironic.Config) { cfg.Timeout = 20 * time.Millisecond })
	err := c.Provision(t.Context(), uuid1, ironic.Provision{Verb: ironic.VerbManage})
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lifecycle.ErrBusy) {
		t.Errorf("error %v, want an open question", err)
	}
}

func TestRefusedConnectionIsNotOpen(t *testing.T) {
	a := newAPI(t)
	c := a.client(nil)
	if _, err := c.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.server.Close()
	c.Close()
	err := c.Provision(t.Context(), uuid1, ironic.Provision{Verb: ironic.VerbManage})
	if !errors.Is(err, ironic.ErrNotReady) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want ErrNotReady and nothing open", err)
	}
}
