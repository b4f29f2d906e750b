package bmc_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bmc/bmctest"
)

const (
	loginKind  = "POST SessionService/Sessions"
	logoutKind = "DELETE SessionService/Sessions/{}"
)

func TestOneRequestAtATimeAndOneSession(t *testing.T) {
	s := bmctest.Rack(t, bmcsim.Config{Hosts: 1, Profiles: []string{bmcsim.Supermicro}})
	h := s.Hosts()[0]
	var now, most atomic.Int32
	inner := h.Handler()
	base := server(t, func(w http.ResponseWriter, r *http.Request) {
		raise(&most, now.Add(1))
		inner.ServeHTTP(w, r)
		now.Add(-1)
	})
	pool := bmctest.Pool(t, bmc.Config{})
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			b := bmctest.Open(t, pool, bmctest.TargetAlone(base, h))
			if _, err := b.State(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := b.Inventory(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if most.Load() != 1 {
		t.Errorf("%d requests at a time, want 1", most.Load())
	}
	if n := h.Requests()[loginKind]; n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
}

func TestBMCsDoNotWaitForEachOther(t *testing.T) {
	s := bmctest.Rack(t, bmcsim.Config{Hosts: 2})
	base, pool := bmctest.Serve(t, s), bmctest.Pool(t, bmc.Config{})
	slow, quick := s.Hosts()[0], s.Hosts()[1]
	slow.SetFaults(bmcsim.Faults{Latency: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := bmctest.Open(t, pool, bmctest.Target(base, slow)).State(ctx)
		ended <- err
	}()
	until(t, func() bool { return len(slow.Requests()) > 0 })
	_, err := bmctest.Open(t, pool, bmctest.Target(base, quick)).State(t.Context())
	must(t, err)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the slow one ended with %v", err)
	}
}

func TestSessionIsLoggedOutWhenItIsNotUsed(t *testing.T) {
	l := newLab(t, bmcsim.Dell, bmc.Config{SessionIdle: 20 * time.Millisecond})
	_, err := l.open(t).State(t.Context())
	must(t, err)
	until(t, func() bool { return l.host.Requests()[logoutKind] == 1 })
	_, err = l.open(t).State(t.Context())
	must(t, err)
	if n := l.host.Requests()[loginKind]; n != 2 {
		t.Errorf("%d logins, want 2", n)
	}
}

func TestCloseLogsOut(t *testing.T) {
	s := bmctest.Rack(t, bmcsim.Config{Hosts: 5})
	base := bmctest.Serve(t, s)
	pool, err := bmc.New(bmc.Config{Now: time.Now})
	must(t, err)
	for _, h := range s.Hosts() {
		_, err := bmctest.Open(t, pool, bmctest.Target(base, h)).State(t.Context())
		must(t, err)
	}
	pool.Close(t.Context())
	if n := s.Requests()[logoutKind]; n != 5 {
		t.Errorf("%d sessions were logged out, want 5", n)
	}
	if _, err := bmctest.Open(t, pool, bmctest.Target(base, s.Hosts()[0])).State(t.Context()); !errors.Is(err, bmc.ErrClosed) {
		t.Errorf("a closed pool answers %v", err)
	}
}

func TestASessionThatEndedOnTheBMCIsOpenedAgain(t *testing.T) {
	var clock atomic.Int64
	s := bmctest.Rack(t, bmcsim.Config{Hosts: 1, Now: func() time.Time { return time.Unix(clock.Load(), 0) }})
	h := s.Hosts()[0]
	b := bmctest.Open(t, bmctest.Pool(t, bmc.Config{}), bmctest.TargetAlone(bmctest.ServeAlone(t, h), h))
	_, err := b.State(t.Context())
	must(t, err)
	clock.Add(int64(time.Hour / time.Second))
	must(t, b.SetPower(t.Context(), bmc.TurnOn))
	if got := h.Commands(); len(got) != 1 || h.View().Power != "On" {
		t.Errorf("commands %v, power %s", got, h.View().Power)
	}
	if n := h.Requests()[loginKind]; n != 2 {
		t.Errorf("%d logins, want 2", n)
	}
}

func TestBasicAuthenticationWhereThereAreNoSessions(t *testing.T) {
	for name, faults := range map[string]bmcsim.Faults{"none at all": {NoSessions: true}, "none left": {SessionsFull: true}} {
		s := bmctest.Rack(t, bmcsim.Config{Hosts: 2})
		a, b := s.Hosts()[0], s.Hosts()[1]
		for where, target := range map[string]bmc.Target{"alone": bmctest.TargetAlone(bmctest.ServeAlone(t, a), a), "shared": bmctest.Target(bmctest.Serve(t, s), b)} {
			t.Run(name+" "+where, func(t *testing.T) {
				a.SetFaults(faults)
				b.SetFaults(faults)
				before := s.FailedLogins()
				pool := bmctest.Pool(t, bmc.Config{})
				must(t, bmctest.Open(t, pool, target).SetPower(t.Context(), bmc.TurnOn))
				target.Credentials = bmc.NewCredentials("admin", "wrong")
				for range 3 {
					_, err := bmctest.Open(t, pool, target).State(t.Context())
					wants(t, err, bmc.ErrUnauthorized)
				}
				if n := s.FailedLogins() - before; n != 1 {
					t.Errorf("%d failed logins, want 1", n)
				}
			})
		}
	}
}

func TestAWrongPasswordIsTriedOnce(t *testing.T) {
	for _, profile := range bmcsim.Profiles() {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, profile, bmc.Config{})
			wrong := l.target()
			wrong.Credentials = bmc.NewCredentials("admin", "canary-7")
			b := bmctest.Open(t, l.pool, wrong)
			_, err := b.Check(t.Context())
			if wants(t, err, bmc.ErrUnauthorized); errors.Is(err, bmc.ErrNotTried) {
				t.Error("the first try was none")
			}
			manyTimes(20, func() {
				if _, err := b.State(t.Context()); !errors.Is(err, bmc.ErrUnauthorized) || !errors.Is(err, bmc.ErrNotTried) {
					t.Errorf("got %v", err)
				}
			})
			if n := l.host.FailedLogins(); n != 1 {
				t.Errorf("%d failed logins, want 1", n)
			}
			_, err = l.open(t).Check(t.Context()) // the Secret is corrected
			must(t, err)
			// The wrong one is still known to be wrong, until somebody says otherwise.
			l.host.SetCredentials("admin", "canary-7")
			_, err = b.Check(t.Context())
			wants(t, err, bmc.ErrUnauthorized)
			l.pool.Forget(wrong)
			_, err = b.Check(t.Context())
			must(t, err)
		})
	}
}

// manyTimes runs f n times at once.
func manyTimes(n int, f func()) {
	var all sync.WaitGroup
	for range n {
		all.Go(f)
	}
	all.Wait()
}

func TestAPasswordThatChangesUnderASessionIsTriedOnce(t *testing.T) {
	l := newLab(t, bmcsim.HPE, bmc.Config{})
	b := l.open(t)
	_, err := b.State(t.Context())
	must(t, err)
	l.host.SetCredentials("admin", "changed")
	for range 5 {
		_, err = b.State(t.Context())
		wants(t, err, bmc.ErrUnauthorized)
	}
	if n := l.host.FailedLogins(); n != 1 {
		t.Errorf("%d failed logins, want 1", n)
	}
}

func TestNoPasswordGoesToWhatIsNoRedfishService(t *testing.T) {
	var posted atomic.Bool
	base := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Header.Get("Authorization") != "" {
			posted.Store(true)
		}
		_, _ = w.Write([]byte("hello"))
	})
	b := bmctest.Open(t, bmctest.Pool(t, bmc.Config{}), bmc.Target{BaseURL: base, Credentials: bmc.NewCredentials("u", "p")})
	_, err := b.Check(t.Context())
	wants(t, err, bmc.ErrNotRedfish)
	if posted.Load() {
		t.Error("credentials were sent")
	}
}

func TestNoTokenGoesElsewhere(t *testing.T) {
	var elsewhere atomic.Int32
	other := server(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	l := newLab(t, bmcsim.Dell, bmc.Config{})
	inner := l.host.Handler()
	base := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == l.host.OwnSystemPath() {
			http.Redirect(w, r, other+"/redfish/v1/Systems/1", http.StatusTemporaryRedirect)
			return
		}
		inner.ServeHTTP(w, r)
	})
	_, err := bmctest.Open(t, l.pool, bmctest.TargetAlone(base, l.host)).Check(t.Context())
	if err == nil || elsewhere.Load() != 0 {
		t.Errorf("the redirect was followed %d times: %v", elsewhere.Load(), err)
	}
}

func TestRedirectsWithinTheBMCAreFollowed(t *testing.T) {
	l := newLab(t, bmcsim.HPE, bmc.Config{})
	inner := l.host.Handler()
	base := server(t, func(w http.ResponseWriter, r *http.Request) {
		if last := len(r.URL.Path) - 1; r.Method == http.MethodGet && r.URL.Path[last] != '/' {
			w.Header().Set("Location", r.URL.Path+"/")
			w.WriteHeader(http.StatusPermanentRedirect)
			return
		}
		inner.ServeHTTP(w, r)
	})
	_, err := bmctest.Open(t, l.pool, bmctest.TargetAlone(base, l.host)).Check(t.Context())
	must(t, err)
}

func TestABMCThatIsDownIsLeftAlone(t *testing.T) {
	var clock atomic.Int64
	l := newLab(t, bmcsim.Dell, bmc.Config{Now: func() time.Time { return time.Unix(0, clock.Load()) }})
	b := l.open(t)
	_, err := b.State(t.Context())
	must(t, err)
	l.host.SetFaults(bmcsim.Faults{Down: true})
	state := func() error { _, err := b.State(t.Context()); return err }
	// Go tries a request once more by itself if a connection that was kept open turns
	// out to be dead; so the BMC may see four connections for three failures.
	for range 3 {
		if err := state(); !errors.Is(err, bmc.ErrUnreachable) || errors.Is(err, bmc.ErrNotTried) {
			t.Fatalf("got %v", err)
		}
	}
	seen := l.requests()
	pause := time.Second
	for range 9 { // 1 s, 2 s, 4 s ... 1 min, 1 min
		e := explained(t, state(), bmc.ErrUnreachable)
		if !e.NotTried || e.RetryAfter != pause || l.requests() != seen {
			t.Fatalf("during the pause of %s: %+v, %d requests", pause, e, l.requests()-seen)
		}
		clock.Add(int64(pause))
		if err := state(); errors.Is(err, bmc.ErrNotTried) || l.requests() == seen {
			t.Fatalf("after the pause of %s the BMC was not tried", pause)
		}
		seen = l.requests()
		pause = min(2*pause, time.Minute)
	}
	clock.Add(int64(pause))
	l.host.SetFaults(bmcsim.Faults{})
	must(t, state())
	must(t, state())
}

func TestConnectionsAreBounded(t *testing.T) {
	s := bmctest.Rack(t, bmcsim.Config{Hosts: 40})
	var open, most atomic.Int32
	srv := httptest.NewUnstartedServer(s.Handler())
	srv.Config.ConnState = countConns(&open, &most)
	srv.Start()
	t.Cleanup(srv.Close)
	const bound = 8
	pool := bmctest.Pool(t, bmc.Config{MaxConns: bound})
	var all sync.WaitGroup
	for _, h := range s.Hosts() {
		h.SetFaults(bmcsim.Faults{Latency: time.Millisecond})
		all.Go(func() {
			if _, err := bmctest.Open(t, pool, bmctest.Target(srv.URL, h)).Inventory(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if most.Load() > bound {
		t.Errorf("%d connections were open at a time, want at most %d", most.Load(), bound)
	}
}

// A BMC may answer in all kinds of odd ways to a login.
func TestOddLogins(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		reason error
		tries  int32 // logins that reach the BMC in three calls
	}{
		"too many tries":             {429, `{"error": {"code": "iLO.2.8.LoginAttemptDelayed", "@Message.ExtendedInfo": [{"MessageId": "iLO.2.8.LoginAttemptDelayed"}]}}`, bmc.ErrBusy, 3},
		"forbidden":                  {403, `{}`, bmc.ErrUnauthorized, 1},
		"the password has expired":   {403, `{"error": {"code": "x", "@Message.ExtendedInfo": [{"MessageId": "Base.1.8.PasswordChangeRequired", "Message": "change it"}]}}`, bmc.ErrUnauthorized, 1},
		"trouble inside":             {500, `{}`, bmc.ErrRefused, 3},
		"a bad request, as iLO says": {400, `{"error": {"code": "x", "@Message.ExtendedInfo": [{"MessageId": "iLO.0.10.UnauthorizedLoginAttempt"}]}}`, bmc.ErrUnauthorized, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var logins atomic.Int32
			base := server(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					must(t, json.NewEncoder(w).Encode(map[string]any{"RedfishVersion": "1.0.0", "Links": map[string]any{"Sessions": map[string]string{"@odata.id": "/redfish/v1/Sessions"}}}))
					return
				}
				logins.Add(1)
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			})
			b := bmctest.Open(t, bmctest.Pool(t, bmc.Config{}), bmc.Target{BaseURL: base, Credentials: bmc.NewCredentials("u", "p")})
			for range 3 {
				_, err := b.Check(t.Context())
				wants(t, err, tc.reason)
			}
			if logins.Load() != tc.tries {
				t.Errorf("%d logins, want %d", logins.Load(), tc.tries)
			}
		})
	}
}
