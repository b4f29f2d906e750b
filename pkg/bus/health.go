package bus

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// unreadyAfter is how long NATS may be away before a service is not ready. It
// goes on by itself, so it is never unhealthy for that.
const unreadyAfter = 30 * time.Second

// health is the state of the connection.
type health struct {
	mu        sync.Mutex
	since     time.Time // of the outage, zero while connected
	forced    time.Time // of the newest forced reconnect
	attaching map[string]bool
}

func (s *health) connected(time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = time.Time{}
}

func (s *health) disconnected(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		s.since = now
	}
}

func (s *health) down() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.since.IsZero()
}

// mayReconnect allows one forced reconnect per pause.
func (s *health) mayReconnect(now time.Time, pause time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.since.IsZero() || now.Sub(s.forced) < pause {
		return false
	}
	s.forced = now
	return true
}

// waiting notes that a consumer is looked for, or was found.
func (s *health) waiting(consumer string, yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attaching == nil {
		s.attaching = map[string]bool{}
	}
	s.attaching[consumer] = yes
}

// Healthy reports whether the process can go on by itself: always, unless the
// bus was closed.
func (b *Bus) Healthy(context.Context) error {
	if b.nc.IsClosed() {
		return fmt.Errorf("the connection of %s to NATS is closed", b.cfg.Name)
	}
	return nil
}

// Ready reports whether the service hears and speaks: connected, or away from
// NATS for a short while only, and its consumers are there.
func (b *Bus) Ready(ctx context.Context) error {
	if err := b.Healthy(ctx); err != nil {
		return err
	}
	s := &b.state
	s.mu.Lock()
	defer s.mu.Unlock()
	if away := b.clock().Sub(s.since); !s.since.IsZero() && away > unreadyAfter {
		return fmt.Errorf("no connection to NATS for %s", away.Round(time.Second))
	}
	for consumer, waiting := range s.attaching {
		if waiting {
			return fmt.Errorf("consumer %s is not there: %w", consumer, ErrNotInitialized)
		}
	}
	return nil
}
