package ironic

import (
	"context"
	"net"
)

// Dial has a client make its connections by f.
func Dial(c *Client, f func(ctx context.Context, network, address string) (net.Conn, error)) {
	c.wire.http.DialContext = f
}
