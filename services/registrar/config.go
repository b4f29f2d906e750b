package registrar

import "time"

// Config is what the registrar can be told.
type Config struct {
	// SecretGrace is how long a host waits in silence for a Secret that it
	// names and that is not there yet.
	SecretGrace time.Duration
}

// DefaultConfig is the Config that serves most.
func DefaultConfig() Config { return Config{SecretGrace: 5 * time.Second} }
