package bus_test

import (
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/metalbus/metalbus/pkg/bus"
)

func errReset() error { return syscall.ECONNRESET }

// counter is the sum of a counter's values over its labels.
func counter(tb testing.TB, b *bus.Bus, name string) float64 {
	tb.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(b)
	families, err := reg.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue()
		}
	}
	return sum
}
