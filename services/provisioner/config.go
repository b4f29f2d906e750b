package provisioner

// Config is what the provisioner can be told.
type Config struct {
	// MaxAttempts is how often the deployment of one image may fail before the
	// host waits for another one; 0 is no limit.
	MaxAttempts int
}

// DefaultConfig is the Config that serves most.
func DefaultConfig() Config { return Config{MaxAttempts: 5} }
