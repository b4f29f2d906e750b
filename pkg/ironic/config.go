package ironic

import (
	"errors"
	"fmt"
	"time"
)

// Config says how one Ironic is reached. Zero values take the defaults.
type Config struct {
	// Name is how users, logs and metrics call this Ironic.
	Name string
	// Endpoint is the URL of the API, with or without its version:
	// http://192.0.2.5:6385, https://ironic.example.com/v1/.
	Endpoint string
	Auth     Auth
	TLS      TLS
	// Timeout is for one request, from its turn to the end of the answer; 30 s.
	Timeout time.Duration
	// Concurrency is how many requests may be under way; 16.
	Concurrency int
	// Rate is how many requests may begin in a second; 200.
	Rate float64
	// Discovery is how long the version found is trusted without asking again; 5 min.
	Discovery time.Duration
}

// Auth is how the API is entered: by http_basic, or by nothing at all if there
// are no credentials.
type Auth struct {
	// Dir holds the files username and password. They are read again when they
	// change. A directory that does not exist means no credentials.
	Dir string
	// Username and Password are the credentials themselves; they win over Dir.
	Username string
	Password string
}

// String hides what is in it.
func (a Auth) String() string {
	switch {
	case a.Username != "":
		return "http_basic as " + a.Username
	case a.Dir != "":
		return "http_basic from " + a.Dir
	default:
		return "none"
	}
}

// GoString hides what is in it.
func (a Auth) GoString() string { return a.String() }

// TLS are certificates, as files or by their content; content wins. Files are
// read again when they change, and those that do not exist count as not given.
type TLS struct {
	// CAFile and CA are the authorities that vouch for Ironic; the system's without.
	CAFile string
	CA     []byte
	// CertFile and KeyFile, Cert and Key are for an Ironic that asks its clients for
	// a certificate. One without the other is not used.
	CertFile, KeyFile string
	Cert, Key         []byte
	// Insecure accepts any certificate.
	Insecure bool
}

// String hides what is in it.
func (t TLS) String() string {
	return fmt.Sprintf("TLS(CA file %q, certificate file %q, insecure %v)", t.CAFile, t.CertFile, t.Insecure)
}

// GoString hides what is in it.
func (t TLS) GoString() string { return t.String() }

const (
	defaultTimeout     = 30 * time.Second
	defaultConcurrency = 16
	defaultRate        = 200
	defaultDiscovery   = 5 * time.Minute
)

// Validate reports everything that is wrong.
func (c Config) Validate() error {
	var errs []error
	if _, err := endpoint(c.Endpoint); err != nil {
		errs = append(errs, err)
	}
	if c.Timeout < 0 || c.Concurrency < 0 || c.Rate < 0 || c.Discovery < 0 {
		errs = append(errs, errors.New("timeout, concurrency, rate and discovery must not be negative"))
	}
	if (c.Auth.Username == "") != (c.Auth.Password == "") {
		errs = append(errs, errors.New("give both user name and password, or none"))
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("ironic %q: %w", c.Name, errors.Join(errs...))
}

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Concurrency == 0 {
		c.Concurrency = defaultConcurrency
	}
	if c.Rate == 0 {
		c.Rate = defaultRate
	}
	if c.Discovery == 0 {
		c.Discovery = defaultDiscovery
	}
	return c
}
