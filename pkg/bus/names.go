package bus

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/metalbus/metalbus/api/event"
)

// The streams and the buckets of the bus.
const (
	StreamHost     = "METAL_HOST"       // the log of all hosts, and their state
	StreamData     = "METAL_DATA"       // documents too big for an event
	StreamWake     = "METAL_WAKE"       // nudges and ticks
	StreamDead     = "METAL_DLQ"        // messages that no service could handle
	StreamAdvisory = "METAL_ADVISORY"   // what the server says about consumers and streams
	StreamHistory  = "METAL_HISTORY"    // a long copy of the log, for people
	BucketCrashed  = "metal_quarantine" // messages that were in hand when a process died
	BucketSlots    = "metal_slots"      // the queues for slots, one for each backend
)

// tickPrefix marks the wakes that are ticks. No uid begins like this.
const tickPrefix = "tick-"

// TickResync is the tick on which a service looks for hosts that were forgotten.
const TickResync = "resync"

// TickPower is the tick on which powermonitor reads the power of all hosts.
const TickPower = "power"

// subjects builds the subjects of one cluster.
type subjects struct{ cluster string }

func (s subjects) root() string     { return "metal." + s.cluster }
func (s subjects) allHosts() string { return s.root() + ".host.*.*" }

// host covers all events of a host. This literal, and no other spelling, is
// what every append is checked against: servers guard appends in flight by the
// text of the filter.
func (s subjects) host(uid string) string { return s.root() + ".host." + uid + ".>" }

func (s subjects) sections(uid string) string { return s.root() + ".host." + uid + ".*" }

func (s subjects) section(uid string, sec event.Section) string {
	return s.root() + ".host." + uid + "." + string(sec)
}

func (s subjects) data(uid, name string) string { return s.root() + ".data." + uid + "." + name }

func (s subjects) wakes(service string) string { return s.root() + ".wake." + service + ".*" }

func (s subjects) wake(service, uid string) string { return s.root() + ".wake." + service + "." + uid }

func (s subjects) tick(service, name string) string {
	return s.root() + ".tick." + service + "-" + name
}

func (s subjects) dead(service, uid string) string { return s.root() + ".dlq." + service + "." + uid }

func (s subjects) allDead() string { return s.root() + ".dlq.*.*" }

// consumer is the durable consumer of a service, on METAL_HOST and METAL_WAKE alike.
func (s subjects) consumer(service string) string { return service + "-" + s.cluster }

// lastTokens are the last two parts of a five-part subject of ours.
func lastTokens(subject string) (fourth, fifth string, ok bool) {
	parts := strings.Split(subject, ".")
	if len(parts) != 5 {
		return "", "", false
	}
	return parts[3], parts[4], true
}

var (
	clusterToken = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)
	subjectToken = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)
)

func checkToken(what, value string) error {
	if !subjectToken.MatchString(value) {
		return fmt.Errorf("%s %q: want letters, digits, '-' and '_' only", what, value)
	}
	return nil
}
