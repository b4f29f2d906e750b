package bus

import (
	"testing"
	"time"
)

func TestDoubled(t *testing.T) {
	for name, c := range map[string]struct {
		first, limit time.Duration
		n            int
		want         time.Duration
	}{
		"not at all":            {time.Second, time.Minute, 0, time.Second},
		"not less than at all":  {time.Second, time.Minute, -3, time.Second},
		"three times":           {time.Second, time.Minute, 3, 8 * time.Second},
		"up to the limit":       {time.Second, time.Minute, 7, time.Minute},
		"far beyond the limit":  {time.Second, time.Minute, 1 << 30, time.Minute},
		"a limit below the one": {time.Second, time.Millisecond, 2, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			if got := doubled(c.first, c.limit, c.n); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestWaits(t *testing.T) {
	timing := DefaultTiming()
	near := func(t *testing.T, got, want time.Duration) {
		t.Helper()
		if got < want*9/10 || got > want*11/10 {
			t.Errorf("%s, want about %s", got, want)
		}
	}
	t.Run("a problem backs off from 20 s to 15 min", func(t *testing.T) {
		near(t, timing.backOff(1), 20*time.Second)
		near(t, timing.backOff(3), 80*time.Second)
		near(t, timing.backOff(50), 15*time.Minute)
	})
	t.Run("a busy backend is asked after 1 s to 15 s", func(t *testing.T) {
		near(t, timing.busy(1), time.Second)
		near(t, timing.busy(3), 4*time.Second)
		near(t, timing.busy(9), 15*time.Second)
	})
	t.Run("a wait polls from 200 ms up to what it says", func(t *testing.T) {
		near(t, timing.poll(10*time.Second, 1), 200*time.Millisecond)
		near(t, timing.poll(10*time.Second, 3), 800*time.Millisecond)
		near(t, timing.poll(10*time.Second, 99), 10*time.Second)
		near(t, timing.poll(0, 99), 3*time.Second)
	})
	t.Run("a lost race is run again within 50 to 200 ms", func(t *testing.T) {
		for range 100 {
			if got := timing.conflict(); got < 50*time.Millisecond || got > 200*time.Millisecond {
				t.Errorf("%s", got)
			}
		}
	})
}

func TestTimingHangsTogether(t *testing.T) {
	if err := DefaultTiming().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
	for name, change := range map[string]func(*Timing){
		"a window as long as the quarantine":           func(t *Timing) { t.Window = t.Quarantine },
		"a quarantine that a crash would cut short":    func(t *Timing) { t.AckWait = t.Quarantine - 1 },
		"a handling that outlives the ack wait":        func(t *Timing) { t.Handling = t.AckWait },
		"a resume that cuts a quarantine short":        func(t *Timing) { t.Resume = t.AckWait },
		"a handling that is shorter than the window's": func(t *Timing) { t.Handling = t.Window },
	} {
		t.Run(name, func(t *testing.T) {
			timing := DefaultTiming()
			change(&timing)
			if timing.Validate() == nil {
				t.Error("was taken")
			}
		})
	}
}

func TestHeldUpByEitherClock(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		to   time.Time
		want time.Duration
	}{
		"both agree":                               {now.Add(3 * time.Second), 3 * time.Second},
		"the monotonic clock stood still":          {now.Round(0).Add(9 * time.Second), 9 * time.Second},
		"the wall clock alone, and it is set back": {now.Round(0).Add(-time.Hour), -time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if got := heldUp(now, c.to); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestLongWaitsEndOnASecond(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 300e6, time.UTC)
	for name, c := range map[string]struct{ wait, want time.Duration }{
		"a short one stays":         {9999 * time.Millisecond, 9999 * time.Millisecond},
		"a long one is made longer": {60 * time.Second, 60*time.Second + 700*time.Millisecond},
		"one that ends there stays": {59*time.Second + 700*time.Millisecond, 59*time.Second + 700*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			if got := onASecond(at, c.wait); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
