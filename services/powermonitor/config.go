package powermonitor

import "time"

// Config is what the powermonitor can be told.
type Config struct {
	// Every is the longest time between two looks at a host's power.
	Every time.Duration
}

// DefaultConfig is the Config that serves most.
func DefaultConfig() Config { return Config{Every: time.Minute} }
