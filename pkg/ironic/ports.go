package ironic

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
)

// Port is a network interface of a node.
type Port struct {
	UUID string `json:"uuid"`
	Node string `json:"node_uuid"`
	MAC  string `json:"address"`
}

func portFields() []string { return []string{"uuid", "node_uuid", "address"} }

// ports are those that a query names: few enough for one page.
func (c *Client) ports(ctx context.Context, query url.Values) ([]Port, error) {
	query.Set("fields", strings.Join(portFields(), ","))
	var list struct{ Ports []Port }
	err := c.call(ctx, call{name: "list ports", do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		list.Ports = nil
		return c.get(ctx, s, s.ServiceURL("ports")+"?"+query.Encode(), &list)
	}})
	if err == nil && list.Ports == nil {
		err = c.empty("list ports")
	}
	return list.Ports, err
}

// AddPort gives a node a port. A MAC address that has one is an ErrConflict.
func (c *Client) AddPort(ctx context.Context, uuid, mac string, pxe bool) error {
	body := map[string]any{"node_uuid": uuid, "address": strings.ToLower(mac), "pxe_enabled": pxe}
	return c.call(ctx, call{name: "create port", about: mac + " of node " + uuid, write: true, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		_, err := send(ctx, s, http.MethodPost, s.ServiceURL("ports"), &gophercloud.RequestOpts{JSONBody: body, OkCodes: []int{http.StatusCreated}})
		return err
	}})
}
