package bmcsim

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Config says what a simulator holds and how it behaves.
type Config struct {
	// Now is the clock of logs, sessions and event stamps. Required.
	Now func() time.Time
	// Seed makes the identities of hosts (ids, MAC and serial numbers,
	// passwords): the same seed gives the same rack. May be empty.
	Seed string
	// Hosts is how many hosts New makes; more come with Add.
	Hosts int
	// NamePrefix begins the names of hosts that have none; "sim" if empty, which
	// gives sim-1, sim-2 and so on. It must be a DNS label.
	NamePrefix string
	// Profiles are the vendors' shapes given to hosts in turn; all of Profiles()
	// if empty.
	Profiles []string
	// Delays is how long the machines take. The zero value is "no time at all";
	// DefaultDelays is nearer to hardware.
	Delays Delays
	// Images fetches the images of virtual media and firmware when they are
	// inserted or named; nil means that every address is taken on trust and no
	// connection is made.
	Images *http.Client
	// Events delivers events to subscribers; nil means a plain client with a
	// limit of ten seconds.
	Events *http.Client
	// Boot, if set, is told what a machine boots, each time it does.
	Boot BootFunc
}

// Delays are the lengths of the phases of a machine's life.
type Delays struct {
	PowerOn  time.Duration // from the command until the power is on
	PowerOff time.Duration // from the command until the power is off
	Shutdown time.Duration // of an operating system that was asked to go down
	SelfTest time.Duration // from power on until something is booted
	Boot     time.Duration // from the choice of what to boot until it runs
	Task     time.Duration // of a long operation of the BMC, such as a firmware update
}

// DefaultDelays are short, but long enough that a caller who takes "accepted" for
// "done" is found out.
func DefaultDelays() Delays {
	return Delays{
		PowerOn:  400 * time.Millisecond,
		PowerOff: 300 * time.Millisecond,
		Shutdown: 800 * time.Millisecond,
		SelfTest: 600 * time.Millisecond,
		Boot:     600 * time.Millisecond,
		Task:     500 * time.Millisecond,
	}
}

const (
	defaultPrefix = "sim"
	pushTimeout   = 10 * time.Second
)

// withDefaults gives the config with every choice made, or everything that is
// wrong with it.
func (c Config) withDefaults() (Config, error) {
	var wrong []error
	if c.Now == nil {
		wrong = append(wrong, errors.New("bmcsim: Config.Now is not set: give it a clock"))
	}
	if c.Hosts < 0 {
		wrong = append(wrong, fmt.Errorf("bmcsim: Config.Hosts is %d: give it zero or more", c.Hosts))
	}
	if c.NamePrefix == "" {
		c.NamePrefix = defaultPrefix
	}
	if err := checkName(c.NamePrefix); err != nil {
		wrong = append(wrong, fmt.Errorf("bmcsim: Config.NamePrefix: %w", err))
	}
	if len(c.Profiles) == 0 {
		c.Profiles = Profiles()
	}
	for _, p := range c.Profiles {
		if findProfile(p) == nil {
			wrong = append(wrong, unknownProfile(p))
		}
	}
	if c.Events == nil {
		c.Events = &http.Client{Timeout: pushTimeout}
	}
	c.Profiles = slices.Clone(c.Profiles)
	return c, errors.Join(wrong...)
}

func unknownProfile(name string) error {
	return fmt.Errorf("bmcsim: no hardware profile %q: use one of %s", name, strings.Join(Profiles(), ", "))
}

// checkName holds host names to what a Kubernetes object may be called, since
// manifests are made from them.
func checkName(name string) error {
	ok := name != "" && len(name) <= 63
	for i, r := range name {
		inside := i > 0 && i < len(name)-1
		alnum := r >= 'a' && r <= 'z' || r >= '0' && r <= '9'
		ok = ok && (alnum || inside && r == '-')
	}
	if !ok {
		return fmt.Errorf("name %q: use at most 63 lower-case letters, digits and inner dashes", name)
	}
	return nil
}
