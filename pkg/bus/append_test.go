package bus_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/bus/embedded"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func TestAppendReturnsWhatLoadReads(t *testing.T) {
	b := bustest.New(t)
	h, err := b.Append(t.Context(), lifecycle.Host{UID: "u1"}, created("u1"))
	for _, f := range []lifecycle.Fact{
		observed(true),
		lifecycle.Started{Kind: event.Enroll, Step: "create", Reason: "new"},
		lifecycle.Accepted{Kind: event.Enroll},
		enrolled().Fact,
	} {
		if err == nil {
			h, err = b.Append(t.Context(), h, f)
		}
		if err != nil {
			t.Fatal(err)
		}
		got := bustest.Load(t, b, "u1")
		if diff := cmp.Diff(h, got, cmp.AllowUnexported(lifecycle.Host{})); diff != "" {
			t.Fatalf("after %s (-appended +loaded):\n%s", f.Name(), diff)
		}
	}
	if h.Rev != 5 || h.Epoch == "" {
		t.Errorf("revision %d, epoch %q", h.Rev, h.Epoch)
	}
}

func TestAppendIsACompareAndSwapOnTheWholeHost(t *testing.T) {
	b := bustest.New(t)
	old := bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.Append(t, b, "u1", bustest.The(observed(true)))
	for name, f := range map[string]lifecycle.Fact{
		"the same section": observed(false), "another section": lifecycle.Started{Kind: event.Enroll, Step: "create"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := b.Append(t.Context(), old, f); !errors.Is(err, bus.ErrConflict) {
				t.Errorf("error %v, want a conflict", err)
			}
		})
	}
	t.Run("a host that is there already", func(t *testing.T) {
		if _, err := b.Append(t.Context(), lifecycle.Host{UID: "u1"}, created("u1")); !errors.Is(err, bus.ErrConflict) {
			t.Errorf("error %v, want a conflict", err)
		}
	})
	if h := bustest.Load(t, b, "u1"); h.Rev != 2 {
		t.Errorf("revision %d, want 2", h.Rev)
	}
}

// The same decision has the same id in every replica. Only one of them may
// believe that it was its own append that counted.
func TestOfEqualAppendsOneSucceeds(t *testing.T) {
	s := bustest.Server(t)
	first := bustest.On(t, s, "registrar")
	replicas := []*bus.Bus{first, bustest.On(t, s, "registrar"), bustest.On(t, s, "registrar")}
	for round := range 30 {
		uid := fmt.Sprintf("u%d", round)
		h := bustest.Append(t, first, uid, bustest.The(created(uid)))
		var won atomic.Int64
		var wg sync.WaitGroup
		for _, b := range replicas {
			wg.Go(func() {
				_, err := b.Append(t.Context(), h, lifecycle.Started{Kind: event.Enroll, Step: "create"})
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, bus.ErrConflict):
					t.Errorf("append: %v", err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d replicas believe that the claim is theirs", won.Load())
		}
	}
}

func TestManyWritersLeaveNoGap(t *testing.T) {
	b := bustest.New(t)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 25 {
				bustest.Append(t, b, "u1", bustest.The(observed((i+n)%2 == 0)))
			}
		})
	}
	wg.Wait()
	if h := bustest.Load(t, b, "u1"); h.Rev != 201 {
		t.Errorf("revision %d, want 201", h.Rev)
	}
	bustest.Clean(t, b)
}

func TestAppendRefuses(t *testing.T) {
	b := bustest.New(t)
	h := bustest.Append(t, b, "u1", bustest.The(created("u1")))
	t.Run("what the table does not allow", func(t *testing.T) {
		var refused *lifecycle.NotAllowedError
		if _, err := b.Append(t.Context(), h, lifecycle.Provisioned{}); !errors.As(err, &refused) {
			t.Errorf("error %v, want it not to be allowed", err)
		}
	})
	t.Run("a uid that is no token of a subject", func(t *testing.T) {
		for _, uid := range []string{"", "a.b", "*", ">", "a b"} {
			if _, err := b.Append(t.Context(), lifecycle.Host{UID: uid}, created(uid)); err == nil {
				t.Errorf("uid %q was taken", uid)
			}
		}
	})
	t.Run("an event that is too big", func(t *testing.T) {
		w := changed(h, "2")
		w.Intent.Spec.Description = strings.Repeat("x", 70<<10)
		if _, err := b.Append(t.Context(), h, w); err == nil || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("error %v, want one that names the size", err)
		}
	})
	if got := bustest.Load(t, b, "u1"); got.Rev != 1 {
		t.Errorf("revision %d: something was appended", got.Rev)
	}
}

func TestAFullLogTakesNothing(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "test", Timing: bustest.Timing()}, bus.WithServer(s))
	if _, err := b.Init(t.Context(), bus.InitOptions{Replicas: 1, MaxBytes: 100 << 10, Memory: true}); err != nil {
		t.Fatal(err)
	}
	var err error
	h := bustest.Append(t, b, "u1", bustest.The(created("u1")))
	for range 100 {
		w := changed(h, "2")
		w.Intent.Spec.Description = strings.Repeat("x", 8<<10)
		var next lifecycle.Host
		if next, err = b.Append(t.Context(), h, w); err != nil {
			break
		}
		h = next
	}
	if !errors.Is(err, bus.ErrFull) {
		t.Fatalf("error %v, want the stream to be full", err)
	}
	if got := bustest.Load(t, b, "u1"); got.Rev != h.Rev {
		t.Errorf("revision %d, want %d", got.Rev, h.Rev)
	}
}

func TestAnAnswerThatGotLostIsFoundOut(t *testing.T) {
	s := listening(t)
	p := newProxy(t, s)
	direct := bustest.On(t, s, "init")
	timing := bustest.Timing()
	timing.Reply = time.Second
	b := bustest.Connect(t, bus.Config{URLs: []string{p.url()}, Cluster: bustest.Cluster, Name: "registrar", Timing: timing})
	h := bustest.Append(t, b, "u1", bustest.The(created("u1")))

	p.mute.Store(true) // what is sent arrives, answers do not
	unmute := time.AfterFunc(timing.Reply*3/4, func() { p.mute.Store(false) })
	defer unmute.Stop()
	got, err := b.Append(t.Context(), h, lifecycle.Started{Kind: event.Enroll, Step: "create"})
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	if now := bustest.Load(t, direct, "u1"); now.Rev != 2 || now.Head != got.Head {
		t.Errorf("revision %d at %d, want 2 at %d", now.Rev, now.Head, got.Head)
	}
	if counter(t, b, "metalbus_forced_reconnects_total") == 0 {
		t.Error("the connection that did not answer was kept")
	}
}

func TestAnAppendWithoutAnAnswerIsUnknown(t *testing.T) {
	s := listening(t)
	p := newProxy(t, s)
	direct := bustest.On(t, s, "init")
	timing := bustest.Timing()
	timing.Reply = 500 * time.Millisecond
	b := bustest.Connect(t, bus.Config{URLs: []string{p.url()}, Cluster: bustest.Cluster, Name: "registrar", Timing: timing})
	h := bustest.Append(t, b, "u1", bustest.The(created("u1")))
	p.mute.Store(true)
	if _, err := b.Append(t.Context(), h, lifecycle.Started{Kind: event.Enroll, Step: "create"}); !errors.Is(err, bus.ErrUnanswered) {
		t.Errorf("error %v, want it to be unanswered", err)
	}
	if _, err := b.Load(t.Context(), "u1"); !errors.Is(err, bus.ErrUnanswered) {
		t.Errorf("load: error %v, want it to be unanswered: a host must not seem unknown", err)
	}
	p.mute.Store(false)
	bustest.Await(t, "the bus to answer again", func() bool { _, err := b.Load(t.Context(), "u1"); return err == nil })
	bustest.Clean(t, direct)
}

func listening(tb testing.TB) *embedded.Server {
	tb.Helper()
	s, err := embedded.Start(embedded.Config{Dir: tb.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Stop)
	return s
}

// proxy stands between a client and the server, and can swallow answers.
type proxy struct {
	l    net.Listener
	mute atomic.Bool
}

func newProxy(tb testing.TB, s *embedded.Server) *proxy {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &proxy{l: l}
	to := strings.TrimPrefix(s.URL(), "nats://")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.pass(c, to)
		}
	}()
	tb.Cleanup(func() { _ = l.Close() })
	return p
}

func (p *proxy) url() string { return "nats://" + p.l.Addr().String() }

func (p *proxy) pass(client net.Conn, to string) {
	defer client.Close()
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", to)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(muted{client, &p.mute}, server)
		_ = client.Close()
	}()
	_, _ = io.Copy(server, client)
	_ = server.Close()
}

// muted swallows what is written while it is mute.
type muted struct {
	io.Writer
	mute *atomic.Bool
}

func (m muted) Write(p []byte) (int, error) {
	if m.mute.Load() {
		return len(p), nil
	}
	return m.Writer.Write(p)
}

var _ nats.InProcessConnProvider = (*embedded.Server)(nil)
