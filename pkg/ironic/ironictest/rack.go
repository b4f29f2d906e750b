package ironictest

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Rack is the machines that an Ironic can reach. It belongs to no Ironic and loses
// nothing when one forgets everything. Its methods may be called at the same time
// from anywhere.
type Rack struct {
	now func() time.Time

	mu    sync.Mutex
	order []*Machine
	byBMC map[string][]*Machine // by host and port of the BMC
	names map[string]*Machine
}

// NewRack makes an empty rack with a clock for what its machines log.
func NewRack(now func() time.Time) *Rack {
	return &Rack{now: now, byBMC: map[string][]*Machine{}, names: map[string]*Machine{}}
}

// Spec describes a machine. Empty fields are chosen: a name by number, an address
// of its own, "admin" and "password", two network cards.
type Spec struct {
	Name string
	// Address is the BMC's: https://host[:port] for Redfish, ipmi://host[:port] for
	// IPMI.
	Address string
	// SystemID is the path of the system at a Redfish BMC. One that is empty, here
	// or at the node, is whatever system the BMC has.
	SystemID           string
	Username, Password string
	MACs               []string
}

// Add puts a machine into the rack, powered off, with nothing on its disk. It
// fails on an address that cannot be read, and on a name or a system that is there
// already.
func (r *Rack) Add(s Spec) (*Machine, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.order) + 1
	s = s.withDefaults(n)
	bmc, err := bmcKey(s.Address)
	if err != nil {
		return nil, fmt.Errorf("ironictest: add machine %q: %w", s.Name, err)
	}
	if r.names[s.Name] != nil {
		return nil, fmt.Errorf("ironictest: add machine %q: the name is taken: choose another", s.Name)
	}
	if at(r.byBMC[bmc], s.SystemID) != nil {
		return nil, fmt.Errorf("ironictest: add machine %q: %s has the system %q already: give another Address or SystemID", s.Name, s.Address, s.SystemID)
	}
	m := newMachine(n, s, r.now)
	r.order = append(r.order, m)
	r.byBMC[bmc] = append(r.byBMC[bmc], m)
	r.names[s.Name] = m
	return m, nil
}

func (s Spec) withDefaults(n int) Spec {
	if s.Name == "" {
		s.Name = fmt.Sprintf("machine-%d", n)
	}
	if s.Address == "" {
		s.Address = fmt.Sprintf("https://bmc-%d.test", n)
	}
	if s.Username == "" {
		s.Username = "admin"
	}
	if s.Password == "" {
		s.Password = "password"
	}
	if len(s.MACs) == 0 {
		for i := range 2 {
			s.MACs = append(s.MACs, fmt.Sprintf("52:54:%02x:%02x:%02x:%02x", n>>16&255, n>>8&255, n&255, i+1))
		}
	}
	s.MACs = slices.Clone(s.MACs)
	return s
}

// Machine finds a machine by its name; nil if there is none.
func (r *Rack) Machine(name string) *Machine {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[name]
}

// Machines are all machines in the order in which they were added.
func (r *Rack) Machines() []*Machine {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.order)
}

// Changes counts what was done to all machines: see [Machine.Changes].
func (r *Rack) Changes() int {
	sum := 0
	for _, m := range r.Machines() {
		sum += m.Changes()
	}
	return sum
}

// find looks a machine up by what a node says of its BMC. known tells whether
// there is anything at that address.
func (r *Rack) find(address, systemID string) (m *Machine, known bool) {
	bmc, err := bmcKey(address)
	if err != nil {
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.byBMC[bmc]
	return at(all, systemID), len(all) > 0
}

// at picks the machine with a system id, or the only one if either does not say.
func at(all []*Machine, systemID string) *Machine {
	systemID = strings.TrimRight(systemID, "/")
	for _, m := range all {
		own := strings.TrimRight(m.spec.SystemID, "/")
		if own == systemID || len(all) == 1 && (own == "" || systemID == "") {
			return m
		}
	}
	return nil
}

// bmcKey reads the address of a BMC: its host and port.
func bmcKey(address string) (string, error) {
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return "", errors.New("the address " + strconv.Quote(address) + " has no host: give https://host[:port] or ipmi://host[:port]")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "ipmi": "623"}[u.Scheme]
	}
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port), nil
}
