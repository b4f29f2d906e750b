package ironic_test

import (
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/ironic"
)

func TestIdle(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := map[string]struct {
		created, updated, provisioned time.Duration // before now; 0 for never
		want                          time.Duration
	}{
		"nothing but its making":         {created: time.Hour, want: time.Hour},
		"a state of an hour ago":         {created: 9 * time.Hour, provisioned: time.Hour, want: time.Hour},
		"a heartbeat since":              {created: 9 * time.Hour, provisioned: time.Hour, updated: time.Minute, want: time.Minute},
		"a clock that is behind":         {created: -time.Hour, want: 0},
		"a change of a clock behind":     {created: time.Hour, updated: -time.Minute, want: 0},
		"an older change than the state": {created: 9 * time.Hour, provisioned: time.Hour, updated: 2 * time.Hour, want: time.Hour},
		"no times at all":                {want: 0},
	}
	before := func(d time.Duration) time.Time {
		if d == 0 {
			return time.Time{}
		}
		return now.Add(-d)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := ironic.Node{CreatedAt: before(tc.created), UpdatedAt: before(tc.updated), ProvisionUpdatedAt: before(tc.provisioned), SeenAt: now}
			if got := n.Idle(); got != tc.want {
				t.Errorf("idle for %s, want %s", got, tc.want)
			}
		})
	}
}
