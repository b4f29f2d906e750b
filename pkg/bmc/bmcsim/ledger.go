package bmcsim

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Command is one state-changing request that a BMC was given. It carries no
// credentials.
type Command struct {
	Time   time.Time         `json:"time"`
	Method string            `json:"method"`
	Path   string            `json:"path"`
	Action string            `json:"action"` // "Reset", "InsertMedia", "SetBoot" and so on
	Args   map[string]string `json:"args,omitempty"`
	Status int               `json:"status"` // of the answer; from 400 on nothing was done
}

// maxCommands bounds the log of one host.
const maxCommands = 128

// ledger is what a host remembers of the requests to its BMC.
type ledger struct {
	commands     []Command
	counts       map[string]int
	failedLogins int
}

func (l *ledger) add(c Command) {
	if len(l.commands) >= maxCommands {
		l.commands = append(l.commands[:0], l.commands[1:]...)
	}
	l.commands = append(l.commands, c)
}

func (l *ledger) count(kind string) {
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	l.counts[kind]++
}

func (l *ledger) countsCopy() map[string]int {
	return maps.Clone(l.counts)
}

// stats counts what happens to the whole simulator.
type stats struct {
	revision atomic.Uint64

	mu           sync.Mutex
	counts       map[string]int
	failedLogins int
}

func newStats() *stats { return &stats{counts: map[string]int{}} }

func (s *stats) touch() { s.revision.Add(1) }

func (s *stats) count(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[kind]++
}

func (s *stats) failedLogin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failedLogins++
}

// Requests counts all requests by kind, like "GET Systems/{}". Kinds are methods
// and paths below /redfish/v1 with {} in place of ids.
func (s *Sim) Requests() map[string]int {
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	return maps.Clone(s.stats.counts)
}

// FailedLogins counts all logins with wrong credentials.
func (s *Sim) FailedLogins() int {
	s.stats.mu.Lock()
	defer s.stats.mu.Unlock()
	return s.stats.failedLogins
}

// Revision grows whenever something changes that a snapshot holds: who saves
// snapshots can tell by it whether there is anything to save.
func (s *Sim) Revision() uint64 { return s.stats.revision.Load() }
