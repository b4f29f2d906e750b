package bmc_test

import (
	"sync"
	"testing"

	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
	"github.com/metalbus/metalbus/pkg/bmc/bmctest"
)

// BenchmarkFleet takes hosts of all shapes from the first check to a live image that
// runs, all at once, with client and simulator in one process.
func BenchmarkFleet(b *testing.B) {
	const hosts = 250
	for b.Loop() {
		s := bmctest.Rack(b, bmcsim.Config{Hosts: hosts})
		base, pool := bmctest.Serve(b, s), bmctest.Pool(b, bmc.Config{})
		var all sync.WaitGroup
		for _, h := range s.Hosts() {
			all.Go(func() {
				if err := provision(b, bmctest.Open(b, pool, bmctest.Target(base, h))); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		requests := 0
		for _, n := range s.Requests() {
			requests += n
		}
		b.ReportMetric(float64(requests)/hosts, "requests/host")
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/hosts/1000, "ms/host")
}

// provision is what the services ask of a BMC on the straight path.
func provision(tb testing.TB, m *bmc.BMC) error {
	tb.Helper()
	ctx := tb.Context()
	if _, err := m.Check(ctx); err != nil {
		return err
	}
	if _, err := m.Inventory(ctx); err != nil {
		return err
	}
	if err := m.InsertMedia(ctx, iso); err != nil {
		return err
	}
	if err := m.SetBootOnce(ctx, bmc.Cd, bmc.UEFI); err != nil {
		return err
	}
	if err := m.SetPower(ctx, bmc.TurnOn); err != nil {
		return err
	}
	_, err := m.State(ctx)
	return err
}
