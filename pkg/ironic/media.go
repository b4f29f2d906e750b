package ironic

import (
	"context"
	"errors"
	"net/http"
	"path"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// VirtualMedia is a virtual drive of a node.
type VirtualMedia struct {
	Inserted   bool     `json:"inserted"`
	Image      string   `json:"image"` // an address of Ironic's own
	MediaTypes []string `json:"media_types"`
}

// VirtualMedia are the virtual drives of a node, and what is in them.
func (c *Client) VirtualMedia(ctx context.Context, uuid string) ([]VirtualMedia, error) {
	if err := c.needs(ctx, FeatureVirtualMediaGet); err != nil {
		return nil, err
	}
	var all []VirtualMedia
	err := c.call(ctx, call{name: "get virtual media", about: "of node " + uuid, bmc: true, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		all = nil
		return c.get(ctx, s, s.ServiceURL("nodes", uuid, "vmedia"), &all)
	}})
	return all, err
}

// AttachMedia begins to put an image into the virtual CD drive of a node. That it
// failed shows in last_error later.
func (c *Client) AttachMedia(ctx context.Context, uuid, url string) error {
	if err := c.needs(ctx, FeatureVirtualMedia); err != nil {
		return err
	}
	return c.call(ctx, call{name: "attach virtual media", about: "to node " + uuid, write: true, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		return nodes.AttachVirtualMedia(ctx, s, uuid, nodes.AttachVirtualMediaOpts{DeviceType: nodes.VirtualMediaCD, ImageURL: url}).ExtractErr()
	}})
}

// DetachMedia begins to empty the virtual CD drive of a node.
func (c *Client) DetachMedia(ctx context.Context, uuid string) error {
	if err := c.needs(ctx, FeatureVirtualMedia); err != nil {
		return err
	}
	return c.call(ctx, call{name: "detach virtual media", about: "of node " + uuid, write: true, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		return nodes.DetachVirtualMedia(ctx, s, uuid, nodes.DetachVirtualMediaOpts{DeviceTypes: []nodes.VirtualMediaDeviceType{nodes.VirtualMediaCD}}).ExtractErr()
	}})
}

func (c *Client) needs(ctx context.Context, f Feature) error {
	v, err := c.Version(ctx)
	if err != nil {
		return err
	}
	return v.Needs(f)
}

// Subscription asks a BMC to send its events to a URL.
type Subscription struct {
	// ID is its name at the BMC, once it is there.
	ID          string
	Destination string
	Context     string
	// Headers are what the BMC sends to log in at the destination; they are secret.
	Headers map[string]string
}

// String hides the headers.
func (s Subscription) String() string { return "subscription of " + scrub(s.Destination) }

// Subscriptions are the subscriptions at a node's BMC. What it is told to send
// along is in none of them.
func (c *Client) Subscriptions(ctx context.Context, uuid string) ([]Subscription, error) {
	var all struct {
		Members []struct {
			ID string `json:"@odata.id"`
		} `json:"Members"`
	}
	err := c.call(ctx, call{name: "get subscriptions", about: "at node " + uuid, bmc: true, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		all.Members = nil
		_, err := send(ctx, s, http.MethodGet, passthru(s, uuid, "get_all_subscriptions"), &gophercloud.RequestOpts{JSONResponse: &all, OkCodes: []int{http.StatusOK}})
		return err
	}})
	if err != nil {
		return nil, err
	}
	var list []Subscription
	for _, m := range all.Members {
		s, err := c.subscription(ctx, uuid, path.Base(m.ID))
		if errors.Is(err, ErrNotFound) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

func (c *Client) subscription(ctx context.Context, uuid, id string) (Subscription, error) {
	var found struct {
		Destination string `json:"Destination"`
		Context     string `json:"Context"`
	}
	err := c.call(ctx, call{name: "get subscription", about: id + " at node " + uuid, bmc: true, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		_, err := send(ctx, s, http.MethodGet, passthru(s, uuid, "get_subscription"), &gophercloud.RequestOpts{
			JSONBody: map[string]any{"id": id}, JSONResponse: &found, OkCodes: []int{http.StatusOK},
		})
		return err
	}})
	return Subscription{ID: id, Destination: found.Destination, Context: found.Context}, err
}

// Subscribe makes a subscription at a node's BMC, and returns its id.
func (c *Client) Subscribe(ctx context.Context, uuid string, s Subscription) (id string, err error) {
	body := map[string]any{"Destination": s.Destination}
	if s.Context != "" {
		body["Context"] = s.Context
	}
	var headers []map[string]string
	for _, name := range sortedKeys(s.Headers) {
		headers = append(headers, map[string]string{name: s.Headers[name]})
	}
	if headers != nil {
		body["HttpHeaders"] = headers
	}
	var made struct {
		ID string `json:"Id"`
	}
	err = c.call(ctx, call{name: "create subscription", about: "at node " + uuid, write: true, bmc: true, body: map[string]any{"secret": headers}, do: func(ctx context.Context, sc *gophercloud.ServiceClient) error {
		_, err := send(ctx, sc, http.MethodPost, passthru(sc, uuid, "create_subscription"), &gophercloud.RequestOpts{JSONBody: body, JSONResponse: &made, OkCodes: []int{http.StatusOK}})
		return err
	}})
	return made.ID, err
}

// Unsubscribe ends a subscription. One that the BMC does not know has ended.
func (c *Client) Unsubscribe(ctx context.Context, uuid, id string) error {
	return gone(c.call(ctx, call{name: "delete subscription", about: id + " at node " + uuid, write: true, bmc: true, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		_, err := send(ctx, s, http.MethodDelete, passthru(s, uuid, "delete_subscription"), &gophercloud.RequestOpts{
			JSONBody: map[string]any{"id": id}, OkCodes: []int{http.StatusOK, http.StatusAccepted, http.StatusNoContent},
		})
		return err
	}}))
}

func passthru(s *gophercloud.ServiceClient, uuid, method string) string {
	return s.ServiceURL("nodes", uuid, "vendor_passthru") + "?method=" + method
}
