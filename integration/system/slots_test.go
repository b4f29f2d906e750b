package system_test

import (
	"strings"
	"testing"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/integration/internal/plant"
	"github.com/metalbus/metalbus/pkg/bus"
)

// Two slots, two replicas of each service, and more hosts than that: at no time
// are more than two inspected, prepared or deployed at once, and all get there.
func TestHostsTakeTurns(t *testing.T) {
	const slots, hosts = 2, 12
	p := newPlant(t)
	for _, service := range plant.Services() {
		for range 2 {
			var args []string
			if service == "inspector" || service == "provisioner" {
				args = []string{"--slots=redfish=2"}
			}
			p.StartOne(t, service, args...)
		}
	}
	var names []string
	for range hosts {
		h, _ := p.Declare(t, plant.WithImage)
		names = append(names, h.Name)
	}
	p.AwaitAll(t, names, "in use", plant.InUse)

	busy, waited := map[string]bool{}, 0
	for _, e := range history(t, p.Bus(t), bus.HistoryFilter{Sections: []event.Section{event.SectionInspection, event.SectionProvisioning}}) {
		switch phase := phaseOf(e.Type()); phase {
		case "awaited":
			waited++
		case "started":
			busy[e.Subject()] = true
		case "succeeded", "failed", "aborted":
			delete(busy, e.Subject())
		}
		if len(busy) > slots {
			t.Fatalf("%s is the third at once: %v", e.Subject(), busy)
		}
	}
	if waited < hosts-slots {
		t.Errorf("%d waits were recorded, want one for each of %d hosts at least", waited, hosts-slots)
	}
}

// phaseOf is the last word of the fact in an event's type, before its version.
func phaseOf(eventType string) string {
	parts := strings.Split(eventType, ".")
	return parts[len(parts)-2]
}
