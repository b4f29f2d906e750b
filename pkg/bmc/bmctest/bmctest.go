// Package bmctest puts simulated BMCs on the network for tests, and gives the
// targets by which package bmc finds them.
package bmctest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

// Rack makes a simulator that is closed at the end of the test. Without delays in
// cfg its machines take no time.
func Rack(tb testing.TB, cfg bmcsim.Config) *bmcsim.Sim {
	tb.Helper()
	if cfg.Now == nil {
		cfg.Now = time.Now //nolint:forbidigo // tests run by the real clock
	}
	s, err := bmcsim.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// Serve lets all hosts answer at one address, and gives that.
func Serve(tb testing.TB, s *bmcsim.Sim) string {
	tb.Helper()
	return serve(tb, s.Handler())
}

// ServeAlone gives a host's BMC an address of its own.
func ServeAlone(tb testing.TB, h *bmcsim.Host) string {
	tb.Helper()
	return serve(tb, h.Handler())
}

func serve(tb testing.TB, h http.Handler) string {
	tb.Helper()
	srv := httptest.NewServer(h)
	tb.Cleanup(srv.Close)
	return srv.URL
}

// Pool makes a pool that is closed at the end of the test.
func Pool(tb testing.TB, cfg bmc.Config) *bmc.Pool {
	tb.Helper()
	if cfg.Now == nil {
		cfg.Now = time.Now //nolint:forbidigo // tests run by the real clock
	}
	p, err := bmc.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { p.Close(context.WithoutCancel(tb.Context())) })
	return p
}

// Target is a host at the common address.
func Target(base string, h *bmcsim.Host) bmc.Target {
	return bmc.Target{BaseURL: base, SystemPath: h.SystemPath(), Credentials: bmc.NewCredentials(h.Credentials())}
}

// TargetAlone is a host at an address of its own.
func TargetAlone(base string, h *bmcsim.Host) bmc.Target {
	return bmc.Target{BaseURL: base, SystemPath: h.OwnSystemPath(), Credentials: bmc.NewCredentials(h.Credentials())}
}

// Open gives a handle on a target.
func Open(tb testing.TB, p *bmc.Pool, t bmc.Target) *bmc.BMC {
	tb.Helper()
	b, err := p.BMC(t)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
