package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// wakeData is the payload of a wake.
type wakeData struct {
	Reason string `json:"reason,omitempty"`
}

// Wake asks a service to look at a host again, though nothing happened to it.
// It is harmless at any time. An operation that lost its work token gets a new
// one by it. reason is one or two words for people and metrics.
func (b *Bus) Wake(ctx context.Context, service, uid, reason string) error {
	if err := errors.Join(checkToken("service", service), checkToken("uid", uid)); err != nil {
		return err
	}
	data, err := json.Marshal(wakeData{Reason: reason})
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: b.subj.wake(service, uid), Data: data, Header: nats.Header{contentHeader: []string{"application/json"}}}
	if _, err := b.tryPublish(ctx, m); err != nil {
		return fmt.Errorf("wake %s for host %s: %w", service, uid, err)
	}
	b.m.wakes.WithLabelValues(reason).Inc()
	return nil
}

// acceptWake takes a message of METAL_WAKE.
func (s *server) acceptWake(ctx context.Context, m jetstream.Msg) {
	meta, err := m.Metadata()
	_, uid, ok := lastTokens(m.Subject())
	if err != nil || !ok {
		s.b.log.ErrorContext(ctx, "a wake that is none of ours", keyEvent, m.Subject())
		return
	}
	if name, isTick := strings.CutPrefix(uid, tickPrefix); isTick {
		s.acceptTick(ctx, m, name)
		return
	}
	var data wakeData
	_ = json.Unmarshal(m.Data(), &data) // it only says why
	s.accept(ctx, delivery{msg: m, meta: meta, t: Trigger{
		UID: uid, Wake: true, Reason: data.Reason, At: meta.Timestamp, Seq: meta.Sequence.Stream,
		Deliveries: int(min(meta.NumDelivered, 1<<30)), //nolint:gosec // bounded
	}})
}

// acceptTick runs a tick. It is acknowledged first: if it goes wrong, the next
// one comes soon enough.
func (s *server) acceptTick(ctx context.Context, m jetstream.Msg, name string) {
	if err := m.Ack(); err != nil || ctx.Err() != nil || !s.ticking.begin(name) {
		return
	}
	s.running.Go(func() {
		defer s.ticking.end(name)
		defer func() {
			if p := recover(); p != nil {
				s.b.m.panics.Inc()
				s.b.log.ErrorContext(ctx, "a tick panicked", keyTick, name, keyError, fmt.Sprint(p))
			}
		}()
		if err := s.tick(withLogger(ctx, s.b.log), name); err != nil && ctx.Err() == nil {
			s.b.log.WarnContext(ctx, "a tick went wrong", keyTick, name, keyError, err.Error())
		}
	})
}

func (s *server) tick(ctx context.Context, name string) error {
	if name == TickResync {
		if err := s.resync(ctx); err != nil {
			return err
		}
	}
	return s.h.tick(ctx, name)
}

// ticking keeps two runs of one tick apart in a process.
type ticking struct {
	mu  sync.Mutex
	now map[string]bool
}

func (t *ticking) begin(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now[name] {
		return false
	}
	if t.now == nil {
		t.now = map[string]bool{}
	}
	t.now[name] = true
	return true
}

func (t *ticking) end(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.now, name)
}
