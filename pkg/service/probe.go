package service

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// Probe asks a process that serves its health at address whether it is ready,
// as an image without a shell does for its health check. The error says what
// is not.
func Probe(ctx context.Context, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("health-address %q: want host:port: %w", address, err)
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "localhost"
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("ask for health: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask for health: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return fmt.Errorf("read health: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready:\n%s", strings.TrimSpace(string(text)))
	}
	return nil
}
