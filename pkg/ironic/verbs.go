package ironic

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// Provision is a change of a node's provision state.
type Provision struct {
	Verb string
	// ConfigDrive is for active: meta_data, network_data and user_data.
	ConfigDrive map[string]any
	// Steps are for clean, active and service.
	Steps []Step
}

// Step is one step of cleaning, deployment or service.
type Step struct {
	Interface string         `json:"interface"`
	Name      string         `json:"step"`
	Args      map[string]any `json:"args,omitempty"`
	// Priority is for deployment only.
	Priority int `json:"priority,omitempty"`
}

// Provision asks for a change of a node's provision state. When it returns, the
// node is in the state that the verb begins with. A state that has not this verb
// is an ErrWrongState.
func (c *Client) Provision(ctx context.Context, uuid string, p Provision) error {
	k := call{name: "provision " + p.Verb, about: "node " + uuid, write: true, body: p.secrets(), do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		return nodes.ChangeProvisionState(ctx, s, uuid, p).ExtractErr()
	}}
	err := c.call(ctx, k)
	if e, ok := errors.AsType[*Error](err); ok && errors.Is(e, ErrInvalid) && p.ConfigDrive != nil && contains(e.Detail, "configdrive", "config drive", "schema") {
		e.Detail = "Ironic does not take the config drive; its answer is kept back, since it may quote user data"
	}
	return err
}

// secrets: user data are secret wherever they stand.
func (p Provision) secrets() any { return map[string]any{"secret": p.ConfigDrive["user_data"]} }

// ToProvisionStateMap is the body of the request.
func (p Provision) ToProvisionStateMap() (map[string]any, error) {
	body := map[string]any{"target": p.Verb}
	if p.ConfigDrive != nil {
		body["configdrive"] = p.ConfigDrive
	}
	if len(p.Steps) == 0 {
		return body, nil
	}
	switch p.Verb {
	case VerbClean:
		body["clean_steps"] = p.Steps
	case VerbService:
		body["service_steps"] = p.Steps
	case VerbActive:
		body["deploy_steps"] = p.deploySteps()
	}
	return body, nil
}

// deploySteps: there args must be given, be they empty.
func (p Provision) deploySteps() []map[string]any {
	var steps []map[string]any
	for _, s := range p.Steps {
		args := s.Args
		if args == nil {
			args = map[string]any{}
		}
		steps = append(steps, map[string]any{"interface": s.Interface, "step": s.Name, "args": args, "priority": s.Priority})
	}
	return steps
}

// Power asks for a change of a node's power. timeout is how long a soft power-off
// may take, in seconds; 0 leaves it to Ironic. A driver without soft power-off is
// an ErrInvalid or ErrUnsupported.
func (c *Client) Power(ctx context.Context, uuid, target string, timeout int) error {
	return c.call(ctx, call{name: "power", about: "node " + uuid + " to " + target, write: true, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		return nodes.ChangePowerState(ctx, s, uuid, nodes.PowerStateOpts{Target: nodes.TargetPowerState(target), Timeout: timeout}).ExtractErr()
	}})
}

// SetRAID sets the logical disks that the next cleaning is to make.
func (c *Client) SetRAID(ctx context.Context, uuid string, disks []map[string]any) error {
	body := map[string]any{"logical_disks": disks}
	return c.call(ctx, call{name: "set RAID", about: "of node " + uuid, write: true, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		_, err := send(ctx, s, http.MethodPut, s.ServiceURL("nodes", uuid, "states", "raid"), &gophercloud.RequestOpts{JSONBody: body, OkCodes: []int{http.StatusNoContent}})
		return err
	}})
}

// SetMaintenance puts a node into maintenance: Ironic then does nothing to it by
// itself, does not listen to its agent, and lets it be deleted in any state.
func (c *Client) SetMaintenance(ctx context.Context, uuid, reason string) error {
	return c.call(ctx, call{name: "set maintenance", about: "of node " + uuid, write: true, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		return nodes.SetMaintenance(ctx, s, uuid, nodes.MaintenanceOpts{Reason: reason}).ExtractErr()
	}})
}

// UnsetMaintenance takes a node out of maintenance, with its fault.
func (c *Client) UnsetMaintenance(ctx context.Context, uuid string) error {
	return c.call(ctx, call{name: "unset maintenance", about: "of node " + uuid, write: true, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		return nodes.UnsetMaintenance(ctx, s, uuid).ExtractErr()
	}})
}

// CheckBMC has Ironic ask the node's BMC for its boot device, which fails if the
// BMC cannot be reached or does not take the credentials: an ErrFailed or
// ErrInvalid with the reason. A driver that cannot tell is an ErrUnsupported.
func (c *Client) CheckBMC(ctx context.Context, uuid string) error {
	return c.call(ctx, call{name: "get boot device", about: "of node " + uuid, bmc: true, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		return nodes.GetBootDevice(ctx, s, uuid).Err
	}})
}

// gone: what is not there is removed.
func gone(err error) error {
	if errors.Is(err, ErrNoNode) || errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

func pathPart(s string) string { return url.PathEscape(s) }
