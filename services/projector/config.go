package projector

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// Config are the settings of the projector.
type Config struct {
	// StatusDelay is how long a change waits for company that neither moves the
	// host to another state nor tells of trouble or of a power-off, while the
	// host is at rest. While it is on its way to another state such changes
	// wait ten times as long, since that state is company soon.
	StatusDelay time.Duration
	// LeastVisible is how long a state is shown at least before the next one
	// is, for consumers that look only now and then.
	LeastVisible time.Duration
	// Looks is how many hosts are turned into intents at once.
	Looks int
	// KeepForgotten is how long the events of a host are kept after its object
	// has gone.
	KeepForgotten time.Duration
}

// DefaultConfig are the settings if none are given.
func DefaultConfig() Config {
	return Config{StatusDelay: 500 * time.Millisecond, Looks: 16, KeepForgotten: 7 * 24 * time.Hour}
}

// Bind adds the settings to the flags of a program; what c holds are the defaults.
func (c *Config) Bind(fs *pflag.FlagSet) {
	fs.DurationVar(&c.StatusDelay, "status-delay", c.StatusDelay, "`time` that small changes of a host's status wait for others, to be written together")
	fs.DurationVar(&c.LeastVisible, "least-visible", c.LeastVisible, "least `time` that each provisioning state of a host stays visible")
	fs.IntVar(&c.Looks, "looks", c.Looks, "`number` of hosts that are read from Kubernetes at once")
	fs.DurationVar(&c.KeepForgotten, "keep-forgotten", c.KeepForgotten, "`time` that the events of a host are kept after its object has gone")
}

// Validate reports everything that is wrong.
func (c *Config) Validate() error {
	var errs []error
	for name, d := range map[string]time.Duration{"status-delay": c.StatusDelay, "least-visible": c.LeastVisible, "keep-forgotten": c.KeepForgotten} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s %s: want 0 or more", name, d))
		}
	}
	if c.Looks < 1 {
		errs = append(errs, fmt.Errorf("looks %d: want at least 1", c.Looks))
	}
	return errors.Join(errs...)
}
