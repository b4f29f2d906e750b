package ironictest

import (
	"maps"
	"strings"
)

// field is something that a node shows beside its settings.
type field struct {
	name  string
	since int
	get   func(*node) any
}

func stateFields() []field {
	step := func(states ...string) func(*node) any {
		return func(n *node) any {
			for _, s := range states {
				if strings.HasPrefix(n.state.provision, s) {
					return orEmpty(n.state.step)
				}
			}
			return obj{}
		}
	}
	null := func(*node) any { return nil }
	return []field{
		{"uuid", 1, func(n *node) any { return n.uuid }},
		{"allocation_uuid", 52, null},
		{"boot_mode", 75, null},
		{"clean_step", 7, step("clean")},
		{"conductor", 49, func(*node) any { return conductor }},
		{"console_enabled", 1, func(*node) any { return false }},
		{"created_at", 1, func(n *node) any { return stamp(n.state.created) }},
		{"deploy_step", 44, step("deploy", "wait call-back")},
		{"driver_internal_info", 3, func(*node) any { return obj{} }},
		{"fault", 42, func(n *node) any { return orNull(n.state.fault) }},
		{"health", 109, func(n *node) any { return orNull(n.state.health) }},
		{"inspection_finished_at", 6, func(n *node) any { return stamp(n.state.inspectFinished) }},
		{"inspection_started_at", 6, func(n *node) any { return stamp(n.state.inspectStarted) }},
		{"last_error", 1, func(n *node) any { return orNull(n.state.lastError) }},
		{"maintenance_reason", 1, func(n *node) any { return orNull(n.state.maintenanceReason) }},
		{"power_state", 1, func(n *node) any { return orNull(n.state.power) }},
		{"provision_state", 1, func(n *node) any { return n.state.provision }},
		{"provision_updated_at", 1, func(n *node) any { return stamp(n.state.provisioned) }},
		{"raid_config", 12, func(n *node) any { return orEmpty(n.state.raid) }},
		{"reservation", 1, func(n *node) any { return orNull(n.state.reservation) }},
		{"secure_boot", 75, null},
		{"service_step", 87, step("servic")},
		{"target_power_state", 1, func(n *node) any { return orNull(n.state.targetPower) }},
		{"target_provision_state", 1, func(n *node) any { return orNull(n.state.target) }},
		{"target_raid_config", 12, func(n *node) any { return orEmpty(n.state.targetRAID) }},
		{"traits", 37, func(*node) any { return []any{} }},
		{"updated_at", 1, func(n *node) any { return stamp(n.state.updated) }},
	}
}

// looks is how nodes are shown: what of them, and since which minor.
type looks struct {
	since map[string]int
	get   map[string]func(*node) any
}

func newLooks() looks {
	l := looks{since: map[string]int{}, get: map[string]func(*node) any{}}
	for _, s := range settings() {
		l.since[s.name], l.get[s.name] = s.since, settingGetter(s)
	}
	for _, f := range stateFields() {
		l.since[f.name], l.get[f.name] = f.since, f.get
	}
	return l
}

func settingGetter(s setting) func(*node) any {
	switch s.name {
	case "driver_info":
		return func(n *node) any { return maskPasswords(n.object(s.name)) }
	case "instance_info":
		return func(n *node) any { return maskInstance(n.object(s.name)) }
	default:
		return func(n *node) any { return n.settings[s.name] }
	}
}

const masked = "******"

func maskPasswords(info obj) obj {
	out := maps.Clone(info)
	for k := range out {
		if strings.Contains(k, "password") || strings.Contains(k, "secret") {
			out[k] = masked
		}
	}
	return out
}

func maskInstance(info obj) obj {
	out := maskPasswords(info)
	for _, k := range []string{"configdrive", "image_url", "image_pull_secret"} {
		if _, there := out[k]; there {
			out[k] = masked
		}
	}
	return out
}

// all shows everything that a minor of the API has.
func (l looks) all(n *node, minor int, base string) obj {
	out := obj{}
	for name, get := range l.get {
		if l.since[name] <= minor {
			out[name] = get(n)
		}
	}
	out["links"] = links(base, "nodes", n.uuid)
	for _, sub := range []string{"ports", "portgroups", "states", "volume"} {
		out[sub] = links(base, "nodes", n.uuid+"/"+sub)
	}
	return out
}

// some shows the wanted fields.
func (l looks) some(n *node, want []string, base string) obj {
	out := obj{"links": links(base, "nodes", n.uuid)}
	for _, name := range want {
		if get := l.get[name]; get != nil {
			out[name] = get(n)
		}
	}
	return out
}

func links(base, kind, id string) []any {
	return []any{
		obj{"href": base + "/v1/" + kind + "/" + id, "rel": "self"},
		obj{"href": base + "/" + kind + "/" + id, "rel": "bookmark"},
	}
}
