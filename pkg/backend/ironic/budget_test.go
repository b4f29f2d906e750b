package ironic_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/metalbus/metalbus/pkg/ironic/ironictest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// counted are the requests that f makes, in all and by kind.
func (l *lab) counted(f func()) (total int, kinds string) {
	l.Helper()
	before := l.ironic.Counts()
	f()
	after := l.ironic.Counts()
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(after)) {
		if n := after[kind] - before[kind]; n > 0 {
			total += n
			list = append(list, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return total, strings.Join(list, ", ")
}

// B33: what a host costs an Ironic from its declaration until it is available, with
// an Ironic that takes no time, so that nothing is polled in vain.
func TestB33RequestsOfOneHost(t *testing.T) {
	l := newLab(t, ironictest.Config{}, nil)
	l.available(l.host()) // finds out the version for all
	n, kinds := l.counted(func() { l.available(l.host()) })
	t.Logf("to available: %d requests: %s", n, kinds)
	if n > 25 {
		t.Errorf("%d requests for one host to be available: %s", n, kinds)
	}
}

// Many hosts at once share the reads that they need.
func TestB33RequestsOfManyHosts(t *testing.T) {
	const many = 60
	l := newLab(t, ironictest.Config{}, nil)
	var hosts []lifecycle.Host
	for range many {
		hosts = append(hosts, l.host())
	}
	var all sync.WaitGroup
	n, kinds := l.counted(func() {
		for i := range hosts {
			all.Go(func() { hosts[i] = l.available(hosts[i]) })
		}
		all.Wait()
	})
	t.Logf("to available: %.1f requests a host: %s", float64(n)/many, kinds)
	if n > 10*many {
		t.Errorf("%.1f requests a host to be available, want 10 at most: %s", float64(n)/many, kinds)
	}
	n, kinds = l.counted(func() {
		for i := range hosts {
			all.Go(func() { hosts[i] = l.deploy(hosts[i]) })
		}
		all.Wait()
	})
	t.Logf("to provisioned: %.1f requests a host: %s", float64(n)/many, kinds)
	if n > 12*many {
		t.Errorf("%.1f requests a host to be provisioned, want 12 at most: %s", float64(n)/many, kinds)
	}
}
