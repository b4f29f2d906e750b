package ironic

import (
	"context"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

// HistoryEntry is something that happened to a node: an error, or a change of its
// health.
type HistoryEntry struct {
	At       time.Time `json:"created_at"`
	Severity string    `json:"severity"`
	Event    string    `json:"event"`
	Type     string    `json:"event_type"`
}

// History is a node's history, newest first, as far as Ironic keeps it.
func (c *Client) History(ctx context.Context, uuid string) ([]HistoryEntry, error) {
	var h struct {
		History []HistoryEntry `json:"history"`
	}
	err := c.call(ctx, call{name: "get history", about: "of node " + uuid, do: func(ctx context.Context, s *gophercloud.ServiceClient) error {
		h.History = nil
		return c.get(ctx, s, s.ServiceURL("nodes", uuid, "history")+"?detail=true", &h)
	}})
	newestFirst(h.History)
	return h.History, err
}

// clockGrain is how well Ironic's clock is known: by time stamps of whole seconds,
// and against the clock of whichever replica asked for the write.
const clockGrain = 5 * time.Second

// LastErrorSince is the text of the newest error of a node since a moment of our
// clock, "" if there is none. It outlives last_error, which a power sync clears.
func (c *Client) LastErrorSince(ctx context.Context, uuid string, since time.Time) (string, error) {
	all, err := c.History(ctx, uuid)
	if err != nil {
		return "", err
	}
	from := c.serverTime(since).Add(-clockGrain)
	for _, e := range all {
		if e.Severity == "ERROR" && !e.At.Before(from) {
			return e.Event, nil
		}
	}
	return "", nil
}
