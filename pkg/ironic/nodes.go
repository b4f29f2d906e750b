package ironic

import (
	"context"
	"maps"
	"slices"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/baremetal/v1/nodes"
)

// Get reads a node by its UUID or name. A node that there is not is an ErrNoNode,
// one that is its own parent an ErrHidden together with what is known of it.
func (c *Client) Get(ctx context.Context, id string) (Node, error) {
	var n Node
	err := c.call(ctx, call{name: "get node", about: id, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		n = Node{}
		return c.get(ctx, s, s.ServiceURL("nodes", pathPart(id)), &n)
	}})
	return c.seen(n, err)
}

// seen dates a node that was just read. An answer without one is no answer.
func (c *Client) seen(n Node, err error) (Node, error) {
	switch {
	case err != nil:
		return Node{}, err
	case n.UUID == "":
		return Node{}, c.empty("read node")
	}
	n.SeenAt = c.serverTime(c.now())
	if n.Hidden() {
		return n, c.hiddenNode(n)
	}
	return n, nil
}

// Create makes a node of the given fields. A name that is taken is an ErrConflict.
func (c *Client) Create(ctx context.Context, fields map[string]any) (Node, error) {
	name, _ := fields["name"].(string)
	var n Node
	err := c.call(ctx, call{name: "create node", about: name, write: true, body: fields, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		return nodes.Create(ctx, s, rawCreate(fields)).ExtractInto(&n)
	}})
	return c.seen(n, err)
}

// empty is the error of an answer in which there is nothing, as proxies and broken
// servers give them: what it should be about may be there all the same.
func (c *Client) empty(op string) error {
	return &Error{Reason: ErrNotReady, Ironic: c.cfg.Name, Op: op, Detail: "the answer is none of Ironic's: there is nothing in it"}
}

// rawCreate are the fields of a new node as they are to be sent.
type rawCreate map[string]any

// ToNodeCreateMap is the body of the request.
func (r rawCreate) ToNodeCreateMap() (map[string]any, error) { return r, nil }

// Update changes a node, and returns it as it is then.
func (c *Client) Update(ctx context.Context, uuid string, p Patch) (Node, error) {
	var n Node
	err := c.call(ctx, call{name: "update node", about: uuid, write: true, body: p, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		return nodes.Update(ctx, s, uuid, p.options()).ExtractInto(&n)
	}})
	return c.seen(n, err)
}

// Delete removes a node. One that is not there any more is removed already.
func (c *Client) Delete(ctx context.Context, uuid string) error {
	return gone(c.call(ctx, call{name: "delete node", about: uuid, write: true, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		return nodes.Delete(ctx, s, uuid).ExtractErr()
	}}))
}

// Validate asks whether a node's boot and deploy interfaces have all that they
// need, and returns what they miss. Ironic asks no BMC for that.
func (c *Client) Validate(ctx context.Context, uuid string) (missing []string, err error) {
	var v struct{ Boot, Deploy validation }
	err = c.call(ctx, call{name: "validate node", about: uuid, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		return nodes.Validate(ctx, s, uuid).ExtractInto(&v)
	}})
	if err != nil {
		return nil, err
	}
	for _, d := range []validation{v.Boot, v.Deploy} {
		if d.Result != nil && !*d.Result {
			missing = append(missing, Scrub(d.Reason))
		}
	}
	return missing, nil
}

// validation is what an interface of a node lacks; a node that has no such interface
// lacks nothing.
type validation struct {
	Result *bool  `json:"result"`
	Reason string `json:"reason"`
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
