package ironic

import (
	"context"
	"encoding/json"
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
	return listed[Node](ctx, c, "nodes", fields, func(page []Node) {
		at := c.serverTime(c.now())
		for i := range page {
			page[i].SeenAt = at
		}
	})
}

// listed reads a whole collection, page by page, with the given fields. Each page is
// shown to see as it comes.
func listed[T any](ctx context.Context, c *Client, what string, fields []string, see func([]T)) ([]T, error) {
	for range maxRestarts {
		all, err := listedOnce(ctx, c, what, fields, see)
		if !errors.Is(err, ErrNoNode) && !errors.Is(err, ErrNotFound) {
			return all, err
		}
		// What marks where the next page begins is gone.
	}
	return nil, &Error{Reason: ErrBusy, Ironic: c.cfg.Name, Op: "list " + what, Detail: "they are deleted faster than they can be listed"}
}

func listedOnce[T any](ctx context.Context, c *Client, what string, fields []string, see func([]T)) ([]T, error) {
	first := url.Values{"fields": {strings.Join(fields, ",")}, "limit": {strconv.Itoa(pageSize)}}
	var all []T
	query := first.Encode()
	for range maxPages {
		page, next, err := pageOf[T](ctx, c, what, query)
		if err != nil {
			return nil, err
		}
		see(page)
		all = append(all, page...)
		if next == "" || len(page) == 0 {
			return all, nil
		}
		query = next
	}
	return nil, fmt.Errorf("ironic %s: a listing of %s did not end after %d pages", c.cfg.Name, what, maxPages)
}

// pageOf reads one page, and the query of the next, "" after the last. Ironic
// writes an address of its own into next, which need not be one that we can reach.
func pageOf[T any](ctx context.Context, c *Client, what, query string) ([]T, string, error) {
	var p map[string]json.RawMessage
	err := c.call(ctx, call{name: "list " + what, listing: true, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		p = nil
		return c.get(ctx, s, s.ServiceURL(what)+"?"+query, &p)
	}})
	if err != nil {
		return nil, "", err
	}
	var items []T
	if err := json.Unmarshal(p[what], &items); err != nil || items == nil {
		return nil, "", c.empty("list " + what)
	}
	var address string
	if raw, ok := p["next"]; ok {
		if err := json.Unmarshal(raw, &address); err != nil {
			return nil, "", c.noNextPage(what)
		}
	}
	next, err := url.Parse(address)
	if err != nil {
		return nil, "", c.noNextPage(what)
	}
	return items, next.RawQuery, nil
}

func (c *Client) noNextPage(what string) error {
	return &Error{Reason: ErrNotReady, Ironic: c.cfg.Name, Op: "list " + what, Detail: "the address of the next page is no URL"}
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
