package bmcsim

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// snapshotVersion changes when old snapshots can no longer be read.
const snapshotVersion = 1

// snapshot is the whole rack. Sessions, counters of requests and event streams are
// not in it.
type snapshot struct {
	Version int         `json:"version"`
	Seed    string      `json:"seed"`
	Next    int         `json:"next"`
	Hosts   []hostState `json:"hosts"`
}

type hostState struct {
	Number   int             `json:"number"`
	Name     string          `json:"name"`
	Profile  string          `json:"profile"`
	User     string          `json:"user"`
	Password string          `json:"password"`
	Faults   Faults          `json:"faults,omitzero"`
	On       bool            `json:"on"`
	Step     step            `json:"step,omitempty"`
	Action   string          `json:"action,omitempty"`
	Chosen   Running         `json:"chosen,omitzero"`
	Running  Running         `json:"running"`
	Boots    int             `json:"boots"`
	Disk     string          `json:"disk,omitempty"`
	Boot     override        `json:"boot"`
	Media    []slot          `json:"media"`
	Settings map[string]any  `json:"settings,omitempty"`
	Pending  map[string]any  `json:"pending,omitempty"`
	Volumes  []volume        `json:"volumes,omitempty"`
	Jobs     []job           `json:"jobs,omitempty"`
	Versions versions        `json:"versions"`
	Health   string          `json:"health"`
	Secure   bool            `json:"secure,omitempty"`
	Commands []Command       `json:"commands,omitempty"`
	Subs     []*subscription `json:"subscriptions,omitempty"`
	LastSub  int             `json:"lastSubscription,omitempty"`
}

// Snapshot gives the whole rack as JSON, from which Restore makes it again. It holds
// the passwords of the simulated BMCs: write it where only its owner reads.
func (s *Sim) Snapshot() ([]byte, error) {
	s.mu.RLock()
	out := snapshot{Version: snapshotVersion, Seed: s.cfg.Seed, Next: s.next}
	hosts := slices.Clone(s.order)
	s.mu.RUnlock()
	for _, h := range hosts {
		out.Hosts = append(out.Hosts, h.state())
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("bmcsim: snapshot: %w", err)
	}
	return b, nil
}

// state copies what a snapshot holds of a host.
func (h *Host) state() hostState {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := &h.machine
	st := hostState{
		Number: h.id.number, Name: h.name, Profile: h.shape.name, User: h.user, Password: h.password, Faults: h.faults,
		On: m.on, Step: m.step, Action: m.action, Chosen: m.chosen, Running: m.running, Boots: m.boots, Disk: m.disk, Boot: m.boot,
		Media: slices.Clone(h.media), Settings: maps.Clone(h.settings), Pending: maps.Clone(h.pending), Volumes: slices.Clone(h.volumes), Versions: h.versions,
		Health: h.health, Secure: h.secure, Commands: slices.Clone(h.ledger.commands), Subs: slices.Clone(h.fans.subs), LastSub: h.fans.lastSub,
	}
	for _, j := range h.jobs {
		st.Jobs = append(st.Jobs, *j)
	}
	return st
}

// Restore makes the rack that a snapshot was taken of, with every machine as it was:
// what ran runs on without a boot, and what was on its way starts that phase again.
// cfg.Hosts and cfg.Seed are the snapshot's; the rest of cfg holds. Boots of
// machines that run on are told to cfg.Boot as resumed.
func Restore(cfg Config, data []byte) (*Sim, error) {
	var in snapshot
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("bmcsim: restore: the snapshot is damaged: %w: remove it to start with a fresh rack", err)
	}
	if in.Version != snapshotVersion {
		return nil, fmt.Errorf("bmcsim: restore: the snapshot has version %d, this program reads version %d: remove it to start with a fresh rack", in.Version, snapshotVersion)
	}
	cfg.Hosts, cfg.Seed = 0, in.Seed
	s, err := New(cfg)
	if err != nil {
		return nil, err
	}
	for _, st := range in.Hosts {
		if err := s.restore(st); err != nil {
			s.Close()
			return nil, err
		}
	}
	s.mu.Lock()
	s.next = in.Next
	s.mu.Unlock()
	return s, nil
}

func (s *Sim) restore(st hostState) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	shape := s.shape(st.Profile)
	if shape == nil {
		return unknownProfile(st.Profile)
	}
	if s.names[st.Name] != nil || len(st.Media) != len(shape.media) {
		return errors.New("bmcsim: restore: the snapshot is damaged: host " + st.Name + " is not as it should be: remove it to start with a fresh rack")
	}
	h := newHost(s, identity{seed: s.cfg.Seed, number: st.Number}, HostSpec{Name: st.Name, Username: st.User, Password: st.Password}, shape)
	s.insert(h)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults, h.media, h.settings, h.pending, h.volumes = st.Faults, st.Media, st.Settings, st.Pending, st.Volumes
	h.versions, h.health, h.secure, h.ledger.commands = st.Versions, st.Health, st.Secure, st.Commands
	h.fans.subs, h.fans.lastSub = st.Subs, st.LastSub
	h.machine = machine{on: st.On, step: st.Step, action: st.Action, chosen: st.Chosen, running: st.Running, boots: st.Boots, disk: st.Disk, boot: st.Boot}
	for _, j := range st.Jobs {
		h.jobs = append(h.jobs, &j)
		if j.State == jobRunning {
			h.run(h.jobs[len(h.jobs)-1])
		}
	}
	h.resume()
	return nil
}
