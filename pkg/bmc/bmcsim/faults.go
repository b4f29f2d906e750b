package bmcsim

import "time"

// Faults are misbehaviours of one BMC and its machine. At the common address those
// that concern the service (Down, Unavailable, Latency, the logins) hold for
// requests that can be told to be for this host: by its path, by its session, or
// by its credentials.
type Faults struct {
	Down           bool          `json:"down,omitempty"`           // the connection is closed without an answer
	Unavailable    bool          `json:"unavailable,omitempty"`    // 503
	RetryAfter     time.Duration `json:"retryAfter,omitempty"`     // sent along with the 503
	Latency        time.Duration `json:"latency,omitempty"`        // added to every answer
	Drop           bool          `json:"drop,omitempty"`           // carries the request out, but the connection breaks in the middle of the answer
	WrongPassword  bool          `json:"wrongPassword,omitempty"`  // refuses its own credentials
	NoSessions     bool          `json:"noSessions,omitempty"`     // has no session service: basic authentication only
	SessionsFull   bool          `json:"sessionsFull,omitempty"`   // has no session left
	Lost           bool          `json:"lost,omitempty"`           // 404 for the system and all under it
	RefusePower    bool          `json:"refusePower,omitempty"`    // 400 to every reset
	IgnorePower    bool          `json:"ignorePower,omitempty"`    // accepts resets and does nothing
	RefuseShutdown bool          `json:"refuseShutdown,omitempty"` // 400 to graceful resets
	IgnoreShutdown bool          `json:"ignoreShutdown,omitempty"` // the operating system does not listen
	RefuseMedia    bool          `json:"refuseMedia,omitempty"`    // 400 to inserted images
	NoBoot         bool          `json:"noBoot,omitempty"`         // finds nothing to boot
	FailTasks      bool          `json:"failTasks,omitempty"`      // long operations end with an exception
}
