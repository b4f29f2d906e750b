package ironictest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"
)

// Ironic is one Ironic: an API and a conductor, with a database in memory. Its
// methods may be called at the same time from anywhere.
type Ironic struct {
	cfg   Config
	looks looks
	mux   *http.ServeMux
	log   requestLog

	// The threads of the conductor. They are started with mu held and ctx alive, so
	// that Close, which ends ctx and then takes mu, waits for all of them.
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	mu        sync.Mutex
	dice      *rand.Rand
	seq       int
	nodes     map[string]*node
	names     map[string]*node
	instances map[string]*node
	order     []*node // by seq
	ports     map[string]*port
	portSeq   int
	injected  []*injection
	chaos     Chaos
}

// New makes an Ironic with an empty database.
func New(cfg Config) (*Ironic, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	i := &Ironic{
		cfg: cfg, looks: newLooks(),
		dice: rand.New(rand.NewPCG(cfg.Seed, 0)), //nolint:gosec // nothing here is secret, and a seed must give the same run again
	}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	i.forget()
	i.mux = i.newMux()
	if cfg.Delays.PowerSync > 0 {
		i.tasks.Go(i.syncPower)
	}
	return i, nil
}

// Start makes an Ironic that listens on a loopback port of its own, and gives its
// address, which ends without a slash and without /v1. stop ends both.
func Start(cfg Config) (i *Ironic, address string, stop func(), err error) {
	i, err = New(cfg)
	if err != nil {
		return nil, "", nil, err
	}
	server := httptest.NewServer(i.Handler())
	return i, server.URL, func() {
		server.CloseClientConnections()
		server.Close()
		i.Close()
	}, nil
}

// Close ends everything that the conductor does, and waits for it. Machines stay
// as they are.
func (i *Ironic) Close() {
	i.cancel()
	i.mu.Lock()
	i.mu.Unlock() //nolint:staticcheck // whoever held it has started its threads; from here on nobody starts one
	i.tasks.Wait()
}

// Rack holds the machines of this Ironic.
func (i *Ironic) Rack() *Rack { return i.cfg.Rack }

// Forget loses the database: all nodes, ports and whatever was known of them, at
// once and without a word. What the conductor was doing stops where it is. The
// machines stay as they are.
func (i *Ironic) Forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, n := range i.order {
		n.stop()
	}
	i.forget()
}

func (i *Ironic) forget() {
	i.nodes, i.names, i.instances, i.order = map[string]*node{}, map[string]*node{}, map[string]*node{}, nil
	i.ports = map[string]*port{}
}

// find looks a node up by UUID or name. The caller holds i.mu.
func (i *Ironic) find(ident string) *node {
	if n := i.nodes[ident]; n != nil {
		return n
	}
	return i.names[ident]
}

// Node shows a node by UUID or name as the newest API would, and tells whether
// there is one.
func (i *Ironic) Node(ident string) (map[string]any, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := i.find(ident)
	if n == nil {
		return nil, false
	}
	return i.looks.all(n, i.cfg.NewestMinor, ""), true
}

// Nodes counts the nodes by provision state.
func (i *Ironic) Nodes() map[string]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	count := map[string]int{}
	for _, n := range i.order {
		count[n.state.provision]++
	}
	return count
}

// State is what a test may force upon a node.
type State struct {
	Provision, Target string
	Power             string
	LastError         string
	Maintenance       bool
	MaintenanceReason string
	Fault             string
	Reservation       string
}

// Force writes a state into the database, as a conductor with a bug or an operator
// with a SQL prompt would, and ends whatever the conductor was doing with the node.
func (i *Ironic) Force(ident string, s State) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := i.find(ident)
	if n == nil {
		return fmt.Errorf("ironictest: no node %q", ident)
	}
	n.stop()
	n.state.provision, n.state.target, n.state.power = s.Provision, s.Target, s.Power
	n.state.lastError, n.state.reservation = s.LastError, s.Reservation
	n.setMaintenance(s.Maintenance, s.MaintenanceReason, s.Fault)
	return nil
}

// Strand makes the conductor's thread for a node end without a word: now, if there
// is one, else as soon as it starts. The node stays in its busy state for ever,
// with no reservation, no error and no history.
func (i *Ironic) Strand(ident string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := i.find(ident)
	if n == nil {
		return fmt.Errorf("ironictest: no node %q", ident)
	}
	if n.op == nil {
		n.strand = true
		return nil
	}
	n.stop()
	return nil
}

// insert takes a node in. The caller holds i.mu.
func (i *Ironic) insert(n *node) {
	i.seq++
	n.seq = i.seq
	i.nodes[n.uuid] = n
	i.name(n)
	i.order = append(i.order, n)
}

// remove takes a node and its ports out. The caller holds i.mu.
func (i *Ironic) remove(n *node) {
	n.stop()
	delete(i.nodes, n.uuid)
	at, _ := slices.BinarySearchFunc(i.order, n.seq, func(x *node, seq int) int { return x.seq - seq })
	i.order = slices.Delete(i.order, at, at+1)
	i.unname(n)
	for _, p := range n.ports {
		delete(i.ports, p.address)
	}
}

// name makes the node known by its name and its instance, unname forgets them. The
// caller holds i.mu.
func (i *Ironic) name(n *node) {
	if name := n.text("name"); name != "" {
		i.names[name] = n
	}
	if instance := n.text("instance_uuid"); instance != "" {
		i.instances[instance] = n
	}
}

func (i *Ironic) unname(n *node) {
	delete(i.names, n.text("name"))
	delete(i.instances, n.text("instance_uuid"))
}

// newUUID makes the next UUID. The caller holds i.mu.
func (i *Ironic) newUUID() string {
	a, b := i.dice.Uint64(), i.dice.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, 0x8000|b>>48&0x3fff, b&0xffffffffffff)
}

// longer gives a delay with its random share. The caller holds i.mu.
func (i *Ironic) longer(d time.Duration) time.Duration {
	if i.cfg.Delays.Spread <= 0 || d <= 0 {
		return d
	}
	return d + time.Duration(float64(d)*i.cfg.Delays.Spread*i.dice.Float64())
}
