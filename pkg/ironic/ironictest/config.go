package ironictest

import (
	"errors"
	"fmt"
	"time"
)

// Release is a major version of Ironic that the fake can be.
type Release int

// The releases that an [Ironic] can be: the newest API versions are 1.82, 1.96 and
// 1.115.
const (
	Ironic21 Release = 21
	Ironic29 Release = 29
	Ironic39 Release = 39
)

// Releases are all releases, the oldest first.
func Releases() []Release { return []Release{Ironic21, Ironic29, Ironic39} }

// newest is the minor of the newest API version of a release, 0 for one that is
// not known.
func (r Release) newest() int {
	switch r {
	case Ironic21:
		return 82
	case Ironic29:
		return 96
	case Ironic39:
		return 115
	default:
		return 0
	}
}

// Config says what an Ironic is and how it behaves.
type Config struct {
	// Now is the clock of time stamps and logs. Required.
	Now func() time.Time
	// Release is which Ironic this is; Ironic39 if zero.
	Release Release
	// NewestMinor caps the newest API version at 1.N; zero leaves the release's.
	NewestMinor int
	// Rack holds the machines; a new, empty one if nil.
	Rack *Rack
	// Seed makes node UUIDs, the spread of delays and the dice of chaos: the same
	// seed and the same requests in the same order give the same Ironic.
	Seed uint64
	// Delays is how long things take. The zero value is "no time at all", without
	// a power sync.
	Delays Delays
	// Username and Password protect the API by http_basic; nobody is asked if both
	// are empty.
	Username, Password string
	// FastTrack keeps agents up between operations and lets them in while a node
	// is servicing, as `[deploy] fast_track` does.
	FastTrack bool
	// ForcesPower undoes, at the power sync, what others did to the power of a
	// machine, as an Ironic does that is not told otherwise.
	ForcesPower bool
	// HidesPatched makes a node its own parent at each PATCH, as two packaged
	// builds of 29 and 35 do: it then misses in listings and cannot be powered off.
	HidesPatched bool
	// DeploySteps are the steps of the deploy interface that agents offer for
	// custom deploys, beside write_image; "install_os" if nil.
	DeploySteps []string
	// Images tells what is wrong with an image, nil if it can be read and has the
	// checksum that the node says it has, "" if it says none. It is asked whenever
	// the conductor or an agent would fetch something: without a checksum by those
	// who do not check it. Without Images every image is good.
	Images func(address, checksum string) error
	// MaxLimit bounds a page of a listing; 1000 if zero.
	MaxLimit int
}

// Delays are the lengths of what an Ironic and its machines do.
type Delays struct {
	BMC       time.Duration // one exchange with a BMC: a read, a boot device, an inserted image
	Power     time.Duration // of a change of power
	Boot      time.Duration // from power on until the agent or the system runs
	Inspect   time.Duration // of the agent's inventory, or of a BMC's
	Step      time.Duration // one step of cleaning, deployment or service
	Write     time.Duration // of an image to a disk
	Heartbeat time.Duration // between beats of an agent; a second if zero
	PowerSync time.Duration // between power syncs; there are none if zero
	Callback  time.Duration // how long a waiting node waits for its agent; for ever if zero
	// Spread makes each delay longer by a random share of itself up to this one:
	// 0.5 spreads a delay of 2 s over 2 to 3 s.
	Spread float64
}

const (
	defaultHeartbeat = time.Second
	defaultMaxLimit  = 1000
	// conductor is the name of the one conductor, which is also who locks a node.
	conductor = "ironictest"
)

// withDefaults gives the config with every choice made, or everything that is
// wrong with it.
func (c Config) withDefaults() (Config, error) {
	var wrong []error
	if c.Now == nil {
		wrong = append(wrong, errors.New("ironictest: Config.Now is not set: give it a clock"))
	}
	if c.Release == 0 {
		c.Release = Ironic39
	}
	if c.Release.newest() == 0 {
		wrong = append(wrong, fmt.Errorf("ironictest: Config.Release is %d: use one of %d", c.Release, Releases()))
	}
	if c.NewestMinor < 0 || c.NewestMinor > c.Release.newest() {
		wrong = append(wrong, fmt.Errorf("ironictest: Config.NewestMinor is %d: release %d has 1 to %d", c.NewestMinor, c.Release, c.Release.newest()))
	}
	if c.NewestMinor == 0 {
		c.NewestMinor = c.Release.newest()
	}
	if c.Rack == nil && c.Now != nil {
		c.Rack = NewRack(c.Now)
	}
	if c.DeploySteps == nil {
		c.DeploySteps = []string{"install_os"}
	}
	if c.MaxLimit == 0 {
		c.MaxLimit = defaultMaxLimit
	}
	if c.Delays.Heartbeat == 0 {
		c.Delays.Heartbeat = defaultHeartbeat
	}
	return c, errors.Join(wrong...)
}
