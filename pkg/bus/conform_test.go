package bus_test

import (
	"testing"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/bus/embedded"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

func TestConform(t *testing.T) {
	for name, memory := range map[string]bool{"in memory": true, "on disk": false} {
		t.Run(name, func(t *testing.T) {
			s := bustest.Server(t)
			connect := func(tb testing.TB, name string) *bus.Bus {
				tb.Helper()
				return bustest.Connect(tb, bus.Config{Cluster: bustest.Cluster, Name: name, Timing: bustest.Timing()}, bus.WithServer(s))
			}
			o := bus.InitOptions{Replicas: 1, MaxBytes: 1 << 30, Memory: memory}
			if _, err := connect(t, "admin").Init(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			bustest.Conform(t, bustest.Timing(), connect)
		})
	}
}

func TestWorkGoesOnAfterTheServerCameBack(t *testing.T) {
	cfg := embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", SyncAlways: true}
	s, err := embedded.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	url := s.URL()
	b := bustest.Connect(t, bus.Config{URLs: []string{url}, Cluster: bustest.Cluster, Name: "registrar", Timing: bustest.Timing()})
	if _, err := b.Init(t.Context(), bus.InitOptions{Replicas: 1, MaxBytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	w := bustest.Registrar(enrollIn("create", "manage"))
	first := true
	w.OnStep = func(h lifecycle.Host) (lifecycle.Step, error) {
		if op := h.Registration.Op; op != nil && op.Step == "manage" && first {
			return lifecycle.Wait{For: "the server to go", Every: lifecycle.Quick}, nil
		}
		return enrollIn("create", "manage")(h)
	}
	stop := bustest.Serve(t, b, w)
	bustest.Append(t, b, "u1", bustest.The(created("u1")))
	bustest.Await(t, "both writes", func() bool { return len(w.Writes()) == 2 })
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.accepted")
	s.Stop()
	stop() // a service that is to end need not wait for the bus

	first = false
	cfg.Listen = url[len("nats://"):]
	again, err := embedded.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Stop)
	bustest.Serve(t, b, w)
	bustest.AwaitFact(t, b, "u1", event.SectionRegistration, "enroll.succeeded")
	if got := names(w.Writes()); got != "create manage" {
		t.Errorf("writes %q", got)
	}
	bustest.Clean(t, b)
}
