package bmcsim

import (
	"crypto/sha256"
	"net/http"
	"slices"
	"sync"
	"time"
)

// loginKey stands for a user name and a password.
type loginKey [sha256.Size]byte

func keyOf(user, password string) loginKey {
	return sha256.Sum256([]byte(user + "\x00" + password))
}

// Host is one simulated machine with its BMC.
type Host struct {
	sim   *Sim
	id    identity
	uuid  string
	name  string
	shape *profile

	mu       sync.Mutex
	user     string
	password string
	login    loginKey
	faults   Faults
	machine  machine
	media    []slot
	settings map[string]any // firmware settings that differ from the profile's
	pending  map[string]any // and those that wait for a boot
	volumes  []volume
	jobs     []*job
	versions versions
	ledger   ledger
	fans     fans
	health   string
	secure   bool
	rev      uint64
	timers   map[*time.Timer]struct{} // of jobs
}

// versions are of the firmware, as far as an update changed it.
type versions struct {
	BIOS string `json:"bios,omitempty"`
	BMC  string `json:"bmc,omitempty"`
	NIC  string `json:"nic,omitempty"`
}

const initialNIC = "22.31.6"

func newHost(s *Sim, id identity, spec HostSpec, shape *profile) *Host {
	return &Host{
		sim: s, id: id, uuid: id.uuid(), name: spec.Name, shape: shape,
		user: spec.Username, password: spec.Password, login: keyOf(spec.Username, spec.Password),
		machine:  newMachine(),
		media:    make([]slot, len(shape.media)),
		versions: versions{BIOS: shape.biosVersion, BMC: shape.bmcVersion, NIC: initialNIC},
		health:   "OK",
	}
}

// ID is the host's UUID, and the id of its system at the common address.
func (h *Host) ID() string { return h.uuid }

// Name is the host's name.
func (h *Host) Name() string { return h.name }

// Profile is the name of the host's hardware profile.
func (h *Host) Profile() string { return h.shape.name }

// MACs are the addresses of the machine's own network cards, in lower case. The
// first one is meant for provisioning.
func (h *Host) MACs() []string {
	var macs []string
	for i, n := range h.shape.nics {
		if n.mac == "" {
			macs = append(macs, h.id.mac(i))
		}
	}
	return macs
}

// SystemPath is the path of the host's system at the common address.
func (h *Host) SystemPath() string { return root + "/Systems/" + h.uuid }

// OwnSystemPath is the path of the host's system at an address of its own.
func (h *Host) OwnSystemPath() string { return root + "/Systems/" + h.shape.systemID }

// Credentials are the user name and password of the BMC.
func (h *Host) Credentials() (user, password string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.user, h.password
}

// SetCredentials changes the BMC's user name and password. Sessions that were
// opened with the old ones end.
func (h *Host) SetCredentials(user, password string) {
	s := h.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	h.mu.Lock()
	old := h.login
	h.user, h.password, h.login = user, password, keyOf(user, password)
	h.touch()
	h.mu.Unlock()
	if s.hosts[h.uuid] == h && old != h.login {
		s.forgetLogin(old, h)
		s.logins[h.login] = append(s.logins[h.login], h)
	}
}

// opens tells whether the credentials of key open this BMC now.
func (h *Host) opens(key loginKey) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.login == key && !h.faults.WrongPassword
}

// Handler answers for this host's BMC alone, with the ids that its vendor uses:
// give it an address of its own. Its faults hold for every path.
func (h *Host) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.sim.serve(w, r, h) })
}

// Faults are the misbehaviours in force.
func (h *Host) Faults() Faults {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.faults
}

// SetFaults puts misbehaviours in force in place of all earlier ones; Faults{}
// heals the host. A BMC that goes down drops its event streams.
func (h *Host) SetFaults(f Faults) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = f
	h.touch()
	if f.Down {
		h.fans.drop()
	}
}

// SetHealth sets what the system says of its health: OK, Warning or Critical.
func (h *Host) SetHealth(health string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.health = health
	h.touch()
}

// Commands are the state-changing requests that the BMC was given, oldest first;
// only the last ones if there were very many.
func (h *Host) Commands() []Command {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.ledger.commands)
}

// Requests counts the requests to this BMC by kind, like "GET Systems/{}".
func (h *Host) Requests() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ledger.countsCopy()
}

// FailedLogins counts the times that wrong credentials were given to this BMC, as
// far as it could be told which BMC was meant.
func (h *Host) FailedLogins() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ledger.failedLogins
}

// touch notes that something changed that a snapshot holds. The caller holds h.mu.
func (h *Host) touch() {
	h.rev++
	h.sim.stats.touch()
}

// stop ends all that goes on by itself in this host.
func (h *Host) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.machine.halt()
	for t := range h.timers {
		t.Stop()
	}
	h.timers = nil
	h.fans.drop()
}
