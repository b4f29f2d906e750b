package ironictest

import (
	"maps"
	"time"
)

// node is Ironic's record of a machine. All of it is guarded by Ironic.mu. Maps
// within it are never changed once they are there, only replaced, so that an
// answer may be written after the lock is gone.
type node struct {
	uuid     string
	seq      int // grows with each node made: listings are in this order
	settings obj // by name; all of them are there
	state    state
	records  records
	history  []event
	ports    []*port
	op       *operation // that takes the node through its states
	side     *operation // a short one beside it
	phantom  *Machine   // of a driver without a BMC
	strand   bool       // the next thread of the conductor ends without a word
	failed   int        // power syncs in a row without an answer
}

// state is what the conductor knows.
type state struct {
	provision, target    string
	power, targetPower   string
	lastError            string
	maintenanceReason    string
	fault                string
	reservation          string
	health               string
	step                 obj // of cleaning, deployment or service, as provision says
	raid, targetRAID     obj
	created              time.Time
	updated, provisioned time.Time
	inspectStarted       time.Time
	inspectFinished      time.Time
}

// records are what the conductor has read of the machine.
type records struct {
	inventory obj
	bios      []any
	firmware  []any
}

func (n *node) text(name string) string {
	s, _ := n.settings[name].(string)
	return s
}

func (n *node) flag(name string) bool {
	b, _ := n.settings[name].(bool)
	return b
}

func (n *node) object(name string) obj {
	o, _ := n.settings[name].(obj)
	return o
}

// put changes a setting.
func (n *node) put(name string, v any) { n.settings[name] = v }

// putIn changes one key of a setting that is an object.
func (n *node) putIn(name, key string, v any) {
	o := maps.Clone(n.object(name))
	if o == nil {
		o = obj{}
	}
	o[key] = v
	n.put(name, o)
}

func (n *node) maintenance() bool { return n.flag("maintenance") }

// setMaintenance puts the node into maintenance, or takes it out, with its fault.
func (n *node) setMaintenance(on bool, reason, fault string) {
	n.put("maintenance", on)
	n.state.maintenanceReason, n.state.fault = reason, fault
}

// orNull is null for an empty text.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000+00:00")
}

func orEmpty(o obj) obj {
	if o == nil {
		return obj{}
	}
	return o
}
