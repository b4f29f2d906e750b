package ironic

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

const (
	// pageSize is how many nodes are asked for at once: the most that Ironic gives
	// as it comes.
	pageSize = 1000
	// maxRestarts bounds how often a listing is begun anew because a node went
	// while it ran.
	maxRestarts = 3
	// maxPages bounds a listing whose pages do not end.
	maxPages = 1000
)

// list reads all nodes, page by page, with the given fields.
func (c *Client) list(ctx context.Context, fields []string) ([]Node, error) {
	for range maxRestarts {
		all, err := c.listOnce(ctx, fields)
		if !errors.Is(err, ErrNoNode) {
			return all, err
		}
		// The node that marks where the next page begins is gone.
	}
	return nil, &Error{Reason: ErrBusy, Ironic: c.cfg.Name, Op: "list nodes", Detail: "nodes are deleted faster than they can be listed"}
}

func (c *Client) listOnce(ctx context.Context, fields []string) ([]Node, error) {
	first := url.Values{"fields": {strings.Join(fields, ",")}, "limit": {strconv.Itoa(pageSize)}}
	var all []Node
	query := first.Encode()
	for range maxPages {
		page, next, err := c.page(ctx, query)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if next == "" || len(page) == 0 {
			return all, nil
		}
		query = next
	}
	return nil, fmt.Errorf("ironic %s: a listing of nodes did not end after %d pages", c.cfg.Name, maxPages)
}

// page reads one page, and the query of the next, "" after the last. Ironic
// writes an address of its own into next, which need not be one that we can reach.
func (c *Client) page(ctx context.Context, query string) ([]Node, string, error) {
	var p struct {
		Nodes []Node `json:"nodes"`
		Next  string `json:"next"`
	}
	err := c.call(ctx, call{name: "list nodes", listing: true, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		p.Nodes, p.Next = nil, ""
		return c.get(ctx, s, s.ServiceURL("nodes")+"?"+query, &p)
	}})
	if err != nil {
		return nil, "", err
	}
	if p.Nodes == nil {
		return nil, "", c.empty("list nodes")
	}
	at := c.serverTime(c.now())
	for i := range p.Nodes {
		p.Nodes[i].SeenAt = at
	}
	next, err := url.Parse(p.Next)
	if err != nil {
		return nil, "", &Error{Reason: ErrNotReady, Ironic: c.cfg.Name, Op: "list nodes", Detail: "the address of the next page is no URL"}
	}
	return p.Nodes, next.RawQuery, nil
}

// Fleet is all nodes as they were at one time, with what is known of nodes at rest:
// states, power, faults and health.
type Fleet struct {
	// Began is when Ironic was asked, by our clock.
	Began time.Time
	Nodes []Node
}

// Fleet lists all nodes.
func (c *Client) Fleet(ctx context.Context) (Fleet, error) {
	v, err := c.Version(ctx)
	if err != nil {
		return Fleet{}, err
	}
	began := c.now()
	all, err := c.list(ctx, v.restFields())
	return Fleet{Began: began, Nodes: all}, err
}
