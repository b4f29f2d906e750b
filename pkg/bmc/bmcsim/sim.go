package bmcsim

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Sim is a rack of simulated machines and their BMCs. Its methods may be called
// at the same time from anywhere.
type Sim struct {
	cfg    Config
	shapes map[string]*profile
	routes *route
	stats  *stats

	// The goroutines of boots and deliveries. They are started with a host's lock
	// held and ctx alive, so that Close, which ends ctx and then takes every
	// host's lock, waits for all of them.
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	push   chan struct{} // bounds deliveries at one time

	mu       sync.RWMutex
	closed   bool
	next     int // number of the next host
	hosts    map[string]*Host
	names    map[string]*Host
	order    []*Host
	logins   map[loginKey][]*Host // whose credentials these are
	sessions *sessions
}

// maxDeliveries bounds how many events are being posted at one time.
const maxDeliveries = 32

// New makes a simulator with cfg.Hosts hosts, all powered off.
func New(cfg Config) (*Sim, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Sim{
		cfg: cfg, shapes: map[string]*profile{}, routes: routes(), stats: newStats(),
		ctx: ctx, cancel: cancel, push: make(chan struct{}, maxDeliveries),
		next: 1, hosts: map[string]*Host{}, names: map[string]*Host{}, logins: map[loginKey][]*Host{}, sessions: newSessions(cfg.Now),
	}
	for range cfg.Hosts {
		if _, err := s.Add(HostSpec{}); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// HostSpec describes a host to add. Empty fields are chosen by the simulator: a
// name by number, the next profile in turn, the user "admin" and a password that
// no other host has.
type HostSpec struct {
	Name     string
	Profile  string
	Username string
	Password string
}

const defaultUser = "admin"

// Add makes one more host, powered off. It fails on a name that is taken or no
// DNS label, on an unknown profile, and after Close.
func (s *Sim) Add(spec HostSpec) (*Host, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("bmcsim: add host %q: the simulator is closed", spec.Name)
	}
	n := s.next
	id := identity{seed: s.cfg.Seed, number: n}
	if spec.Name == "" {
		spec.Name = fmt.Sprintf("%s-%d", s.cfg.NamePrefix, n)
	}
	if spec.Profile == "" {
		spec.Profile = s.cfg.Profiles[(n-1)%len(s.cfg.Profiles)]
	}
	if spec.Username == "" {
		spec.Username = defaultUser
	}
	if spec.Password == "" {
		spec.Password = id.password()
	}
	if err := checkName(spec.Name); err != nil {
		return nil, fmt.Errorf("bmcsim: add host: %w", err)
	}
	if s.names[spec.Name] != nil {
		return nil, fmt.Errorf("bmcsim: add host: the name %q is taken: choose another", spec.Name)
	}
	shape := s.shape(spec.Profile)
	if shape == nil {
		return nil, unknownProfile(spec.Profile)
	}
	h := newHost(s, id, spec, shape)
	s.next++
	s.insert(h)
	return h, nil
}

// insert takes a host in. The caller holds s.mu.
func (s *Sim) insert(h *Host) {
	s.hosts[h.uuid], s.names[h.name] = h, h
	s.order = append(s.order, h)
	s.logins[h.login] = append(s.logins[h.login], h)
}

// shape gives the one copy of a profile that all its hosts share; nil if there is
// none of that name. The caller holds s.mu.
func (s *Sim) shape(name string) *profile {
	p := s.shapes[name]
	if p == nil {
		if p = findProfile(name); p != nil {
			s.shapes[name] = p
		}
	}
	return p
}

// Remove takes a host out of the rack, as if its cables were pulled: its BMC is
// unknown from then on and its machine stops. It tells whether there was one.
func (s *Sim) Remove(nameOrID string) bool {
	s.mu.Lock()
	h := s.find(nameOrID)
	if h != nil {
		delete(s.hosts, h.uuid)
		delete(s.names, h.name)
		s.order = slices.DeleteFunc(s.order, func(x *Host) bool { return x == h })
		s.forgetLogin(h.login, h)
	}
	s.mu.Unlock()
	if h == nil {
		return false
	}
	h.stop()
	return true
}

// forgetLogin drops h from those whose credentials key is. The caller holds s.mu.
func (s *Sim) forgetLogin(key loginKey, h *Host) {
	left := slices.DeleteFunc(s.logins[key], func(x *Host) bool { return x == h })
	if s.logins[key] = left; len(left) == 0 {
		delete(s.logins, key)
		s.sessions.end(key)
	}
}

// Host finds a host by its name or its id; nil if there is none.
func (s *Sim) Host(nameOrID string) *Host {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.find(nameOrID)
}

func (s *Sim) find(nameOrID string) *Host {
	if h := s.hosts[nameOrID]; h != nil {
		return h
	}
	return s.names[nameOrID]
}

// Hosts are all hosts in the order in which they were added.
func (s *Sim) Hosts() []*Host {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.order)
}

// owners are the hosts that the credentials of key open now.
func (s *Sim) owners(key loginKey) []*Host {
	s.mu.RLock()
	all := s.logins[key]
	open := make([]*Host, 0, len(all))
	for _, h := range all {
		if h.opens(key) {
			open = append(open, h)
		}
	}
	s.mu.RUnlock()
	return open
}

// holders are the hosts whose credentials these are, also those that refuse them
// just now.
func (s *Sim) holders(key loginKey) []*Host {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.logins[key])
}

// Close stops all machines where they are and ends streams, boots and deliveries.
// It waits for them.
func (s *Sim) Close() {
	s.mu.Lock()
	s.closed = true
	hosts := slices.Clone(s.order)
	s.mu.Unlock()
	s.cancel()
	for _, h := range hosts {
		h.stop()
	}
	s.tasks.Wait()
}
