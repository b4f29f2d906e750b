package kube

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// One moment with few writes does not end a busy time, and calm does.
func TestBusyLastsUntilItIsCalm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Cluster{slots: make(chan struct{}, 4), now: time.Now, metrics: newMetrics(prometheus.NewRegistry())}
		write := func(beside int) {
			for range beside {
				c.slots <- struct{}{}
			}
			if err := c.write(t.Context(), writeStatus, "write", func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
			for range beside {
				<-c.slots
			}
		}
		for _, step := range []struct {
			name   string
			beside int
			after  time.Duration
			want   bool
		}{
			{"a few writes", 1, 0, false},
			{"many", 2, 0, true},
			{"a moment later", 0, calm - time.Millisecond, true},
			{"when it has been calm", 0, time.Millisecond, false},
		} {
			write(step.beside)
			time.Sleep(step.after)
			if got := c.Busy(); got != step.want {
				t.Errorf("%s: busy %t, want %t", step.name, got, step.want)
			}
		}
	})
}
