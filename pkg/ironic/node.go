package ironic

import (
	"slices"
	"time"
)

// Node is Ironic's record of a machine, as far as it is of use here. What Ironic
// has as null is empty.
type Node struct {
	UUID   string `json:"uuid"`
	Name   string `json:"name"`
	Driver string `json:"driver"`

	ProvisionState       string `json:"provision_state"`
	TargetProvisionState string `json:"target_provision_state"`
	PowerState           string `json:"power_state"`
	TargetPowerState     string `json:"target_power_state"`
	// LastError is the text of something that went wrong: now, long ago, or in
	// between. It says why, never that something failed.
	LastError         string `json:"last_error"`
	Fault             string `json:"fault"`
	Health            string `json:"health"`
	Maintenance       bool   `json:"maintenance"`
	MaintenanceReason string `json:"maintenance_reason"`
	// Reservation is the conductor that holds the node's lock.
	Reservation string `json:"reservation"`

	// DriverInfo has masks in the place of passwords.
	DriverInfo       map[string]any `json:"driver_info"`
	Properties       map[string]any `json:"properties"`
	Extra            map[string]any `json:"extra"`
	InstanceInfo     map[string]any `json:"instance_info"`
	InstanceUUID     string         `json:"instance_uuid"`
	NetworkData      map[string]any `json:"network_data"`
	RAIDConfig       map[string]any `json:"raid_config"`
	TargetRAIDConfig map[string]any `json:"target_raid_config"`

	BootInterface    string `json:"boot_interface"`
	DeployInterface  string `json:"deploy_interface"`
	InspectInterface string `json:"inspect_interface"`
	RAIDInterface    string `json:"raid_interface"`

	// AutomatedClean is nil for "as Ironic is configured".
	AutomatedClean  *bool  `json:"automated_clean"`
	DisablePowerOff bool   `json:"disable_power_off"`
	Protected       bool   `json:"protected"`
	ProtectedReason string `json:"protected_reason"`
	ParentNode      string `json:"parent_node"`
	// Owner and Lessee are projects, or whatever else Ironic was told.
	Owner  string `json:"owner"`
	Lessee string `json:"lessee"`

	// CreatedAt and UpdatedAt are not told in listings.
	CreatedAt            time.Time `json:"created_at"`
	UpdatedAt            time.Time `json:"updated_at"`
	ProvisionUpdatedAt   time.Time `json:"provision_updated_at"`
	InspectionFinishedAt time.Time `json:"inspection_finished_at"`

	// SeenAt is Ironic's own time when it was read.
	SeenAt time.Time `json:"-"`
}

// InState is how long the node has been in its provision state, by Ironic's clock.
func (n Node) InState() time.Duration {
	since := n.ProvisionUpdatedAt
	if since.IsZero() {
		since = n.CreatedAt
	}
	if since.IsZero() || n.SeenAt.Before(since) {
		return 0
	}
	return n.SeenAt.Sub(since)
}

// Idle is how long nothing at all has changed about the node, by Ironic's clock. Of
// a node in a listing it is the most that it can be.
func (n Node) Idle() time.Duration {
	if n.UpdatedAt.IsZero() {
		return n.InState()
	}
	return max(0, min(n.InState(), n.SeenAt.Sub(n.UpdatedAt)))
}

// Hidden reports whether the node is its own parent.
func (n Node) Hidden() bool { return n.ParentNode != "" && n.ParentNode == n.UUID }

// fields are what is asked of nodes in listings. To ask for one that the version
// does not have would be an error.
func (v Version) fields() []string {
	all := []string{
		"uuid", "name", "driver", "provision_state", "target_provision_state", "power_state", "target_power_state", "last_error", "fault",
		"maintenance", "maintenance_reason", "reservation", "driver_info", "properties", "extra", "instance_info", "instance_uuid", "network_data",
		"raid_config", "target_raid_config", "boot_interface", "deploy_interface", "inspect_interface", "raid_interface", "automated_clean", "protected", "protected_reason",
		"provision_updated_at", "inspection_finished_at",
	}
	return slices.Concat(all, v.fieldsOf(map[Feature]string{
		FeatureParent: "parent_node", FeatureDisablePowerOff: "disable_power_off", FeatureHealth: "health",
	}))
}

// restFields are what is asked of nodes that nothing is being done to.
func (v Version) restFields() []string {
	all := []string{"uuid", "name", "provision_state", "power_state", "target_power_state", "fault", "maintenance", "maintenance_reason", "last_error", "owner", "lessee"}
	return slices.Concat(all, v.fieldsOf(map[Feature]string{FeatureParent: "parent_node", FeatureHealth: "health"}))
}

func (v Version) fieldsOf(since map[Feature]string) []string {
	var has []string
	for f, name := range since {
		if v.Has(f) {
			has = append(has, name)
		}
	}
	slices.Sort(has)
	return has
}
