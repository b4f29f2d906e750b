package bus

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// Config says how a service reaches the bus.
type Config struct {
	// URLs are the NATS servers, nats://host:4222 or tls://host:4222; none for
	// a server on this machine.
	URLs []string
	// Cluster is the token that sets this installation apart on a shared NATS.
	// It is chosen once: everything on the bus is named after it.
	Cluster string
	// Name is the service's name. It is shown by NATS and on metrics.
	Name string
	Auth Auth
	TLS  TLS
	// APIPrefix is the subject prefix of the JetStream API where an account
	// imports it under another name; "" for $JS.API.
	APIPrefix string
	// StateDir is a directory of this process alone, which outlives a crash
	// of it but need not outlive more. There is noted which messages are in
	// hand. "" turns that off: a message that kills processes is then never
	// set aside.
	StateDir string
	// Workers is how many hosts are handled at once; 256 if 0. They mostly wait
	// for BMCs, and a slow one holds one worker.
	Workers int
	// Timing are the waits of the protocol; the zero Timing is DefaultTiming.
	Timing Timing
}

// Auth are the credentials: at most one kind of them. All are files, read
// again at each connect, so that they can be rotated.
type Auth struct {
	// CredsFile holds a user JWT and its seed.
	CredsFile string
	// NKeyFile holds an NKey seed; with JWTFile the seed of that JWT.
	NKeyFile string
	JWTFile  string
	// UserFile and PasswordFile hold a user name and its password.
	UserFile     string
	PasswordFile string
}

// TLS are the certificates. Empty CAFile is the system's pool. The key pair is
// for servers that verify their clients.
type TLS struct {
	CAFile   string
	CertFile string
	KeyFile  string
}

func (t TLS) used() bool { return t != TLS{} }

// Timing are the waits of the protocol. They hang together: see Validate.
// Services of one cluster must agree on them.
type Timing struct {
	// Window is how long after it began its claim a service may write to the outside.
	Window time.Duration
	// Quarantine is how long nobody acts upon a claim that was not answered.
	Quarantine time.Duration
	// AckWait is when a message that a process took and did not answer for is
	// given to another.
	AckWait time.Duration
	// Handling bounds the handling of one message.
	Handling time.Duration
	// Reply bounds one request to NATS.
	Reply time.Duration

	// Stale is the wait after a read that was older than its trigger.
	Stale time.Duration
	// Conflict is the least wait after a lost race; the most is four times that.
	Conflict time.Duration
	// Refused is the wait after an append that the table does not allow.
	Refused time.Duration
	// Poll is the first wait of a step that waits; it doubles up to what the step says.
	Poll time.Duration
	// Busy and BusyMax are the waits after a write that was answered "not now".
	Busy, BusyMax time.Duration
	// BackOff and BackOffMax are the waits between tries after a problem of
	// the host: 2^failures times BackOff at most BackOffMax.
	BackOff, BackOffMax time.Duration
	// Retry and RetryMax are the waits after trouble on our own side.
	Retry, RetryMax time.Duration
	// Panic is the wait after a handler panicked.
	Panic time.Duration
	// Resume is how old the newest event of an operation must be before a wake
	// makes a new work token for it.
	Resume time.Duration
	// Forgotten is how long nothing must have happened to a host with work
	// under way before a resync wakes it.
	Forgotten time.Duration
	// Resync and Power are the intervals of the ticks, in whole seconds.
	Resync, Power time.Duration
}

// DefaultTiming are the waits in production.
func DefaultTiming() Timing {
	return Timing{
		Window: 10 * time.Second, Quarantine: 30 * time.Second, AckWait: 30 * time.Second,
		Handling: 20 * time.Second, Reply: 5 * time.Second,
		Stale: 150 * time.Millisecond, Conflict: 50 * time.Millisecond, Refused: 5 * time.Second,
		Poll: 200 * time.Millisecond,
		Busy: time.Second, BusyMax: 15 * time.Second,
		BackOff: 10 * time.Second, BackOffMax: 15 * time.Minute,
		Retry: time.Second, RetryMax: time.Minute, Panic: 30 * time.Second,
		Resume: 5 * time.Minute, Forgotten: 45 * time.Minute,
		Resync: 10 * time.Minute, Power: 30 * time.Second,
	}
}

// Validate reports everything that is wrong.
func (t Timing) Validate() error {
	var errs []error
	if t.Window >= t.Quarantine {
		errs = append(errs, fmt.Errorf("window %s: must be shorter than the quarantine of %s, or a claim could be acted upon twice", t.Window, t.Quarantine))
	}
	if t.Quarantine > t.AckWait {
		errs = append(errs, fmt.Errorf("quarantine %s: must not be longer than the ack wait of %s, or a crash would cut it short", t.Quarantine, t.AckWait))
	}
	if t.Handling >= t.AckWait || t.Window >= t.Handling {
		errs = append(errs, fmt.Errorf("handling %s: must lie between the window of %s and the ack wait of %s", t.Handling, t.Window, t.AckWait))
	}
	if t.Resume <= t.AckWait {
		errs = append(errs, fmt.Errorf("resume %s: must be longer than the ack wait of %s, or a claim in use would be taken up again", t.Resume, t.AckWait))
	}
	return errors.Join(errs...)
}

// withDefaults fills in what was left out.
func (c Config) withDefaults() Config {
	if c.Workers == 0 {
		c.Workers = 256
	}
	if c.Timing == (Timing{}) {
		c.Timing = DefaultTiming()
	}
	return c
}

// Validate reports everything that is wrong.
func (c Config) Validate() error {
	var errs []error
	if !clusterToken.MatchString(c.Cluster) {
		errs = append(errs, fmt.Errorf("cluster %q: want 1 to 40 of a-z, 0-9 and '-'", c.Cluster))
	}
	if err := checkToken("name", c.Name); err != nil {
		errs = append(errs, err)
	}
	if c.Workers < 0 {
		errs = append(errs, fmt.Errorf("workers %d: want at least 1", c.Workers))
	}
	for i, text := range c.URLs {
		errs = append(errs, checkURL(i, text))
	}
	errs = append(errs, c.Auth.validate(), c.TLS.validate())
	if c.Timing != (Timing{}) {
		errs = append(errs, c.Timing.Validate())
	}
	return errors.Join(errs...)
}

// checkURL names the address by its place, since it may hold a password.
func checkURL(i int, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
		return fmt.Errorf("NATS address number %d: want nats://host:port or tls://host:port", i+1)
	}
	return nil
}

func (a Auth) validate() error {
	var errs []error
	kinds := 0
	for _, used := range []bool{a.CredsFile != "", a.NKeyFile != "", a.UserFile != ""} {
		if used {
			kinds++
		}
	}
	if kinds > 1 {
		errs = append(errs, errors.New("credentials of several kinds are given: choose one of a creds file, an NKey file and a user file"))
	}
	if a.JWTFile != "" && a.NKeyFile == "" {
		errs = append(errs, fmt.Errorf("JWT file %q needs an NKey file with its seed", a.JWTFile))
	}
	if (a.UserFile == "") != (a.PasswordFile == "") {
		errs = append(errs, errors.New("user file and password file go together: give both"))
	}
	return errors.Join(errs...)
}

func (t TLS) validate() error {
	if (t.CertFile == "") != (t.KeyFile == "") {
		return errors.New("TLS certificate file and key file go together: give both")
	}
	return nil
}
