package bus_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
)

func small() bus.InitOptions {
	return bus.InitOptions{Replicas: 1, MaxBytes: 64 << 20, Memory: true}
}

func TestInitIsIdempotent(t *testing.T) {
	b := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "admin", Timing: bustest.Timing()}, bus.WithServer(bustest.Server(t)))
	first, err := b.Init(t.Context(), small())
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range first {
		if item.Outcome != bus.Created {
			t.Errorf("first: %+v", item)
		}
	}
	if want := 6 + 2 + 10 + 6; len(first) != want {
		t.Errorf("%d items, want %d: six streams, two buckets, two consumers a service, six ticks", len(first), want)
	}
	h := bustest.Append(t, b, "u1", bustest.The(created("u1")))
	second, err := b.Init(t.Context(), small())
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range second {
		if item.Outcome != bus.Kept {
			t.Errorf("second: %+v", item)
		}
	}
	if got := bustest.Load(t, b, "u1"); got.Epoch != h.Epoch {
		t.Errorf("epoch %q became %q", h.Epoch, got.Epoch)
	}
}

func TestInitUpdatesWhatIsHarmless(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "admin", Timing: bustest.Timing()}, bus.WithServer(s))
	if _, err := b.Init(t.Context(), small()); err != nil {
		t.Fatal(err)
	}
	timing := bustest.Timing()
	timing.AckWait *= 2
	timing.Resume *= 2
	timing.Power *= 2
	other := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "admin", Timing: timing}, bus.WithServer(s))
	bigger := small()
	bigger.MaxBytes *= 2
	report, err := other.Init(t.Context(), bigger)
	if err != nil {
		t.Fatal(err)
	}
	updated := map[string]bool{}
	for _, item := range report {
		updated[item.Kind+" "+item.Name] = item.Outcome == bus.Updated
	}
	for _, name := range []string{"stream METAL_HOST", "stream METAL_HISTORY", "consumer METAL_HOST/registrar-test", "tick powermonitor/power"} {
		if !updated[name] {
			t.Errorf("%s was not updated", name)
		}
	}
	if updated["tick registrar/resync"] {
		t.Error("a tick that is as wanted was updated")
	}
}

func TestInitServesSeveralClustersOnOneNATS(t *testing.T) {
	s := bustest.Server(t)
	var buses []*bus.Bus
	for _, cluster := range []string{"north", "south"} {
		b := bustest.Connect(t, bus.Config{Cluster: cluster, Name: "registrar", Timing: bustest.Timing()}, bus.WithServer(s))
		if _, err := b.Init(t.Context(), small()); err != nil {
			t.Fatal(err)
		}
		buses = append(buses, b)
	}
	bustest.Append(t, buses[0], "u1", bustest.The(created("u1")))
	if h := bustest.Load(t, buses[1], "u1"); h.Exists() {
		t.Error("a host of the other cluster is seen")
	}
	for range buses[1].Hosts(t.Context()) {
		t.Error("a host of the other cluster is listed")
	}
}

func TestInitRefusesWhatWouldLoseData(t *testing.T) {
	for name, c := range map[string]struct {
		before func(*testing.T, *bus.Bus, jetstream.JetStream)
		after  bus.InitOptions
		field  string
	}{
		"another stream of that name": {
			before: func(t *testing.T, _ *bus.Bus, js jetstream.JetStream) {
				t.Helper()
				if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: bus.StreamHost, Subjects: []string{"theirs.>"}, Storage: jetstream.MemoryStorage}); err != nil {
					t.Fatal(err)
				}
			}, after: small(), field: "subjects",
		},
		"another storage": {before: initialized, after: bus.InitOptions{Replicas: 1, MaxBytes: 64 << 20}, field: "storage"},
		"fewer bytes than there are": {
			before: func(t *testing.T, b *bus.Bus, _ jetstream.JetStream) {
				t.Helper()
				initialized(t, b, nil)
				for uid := range strings.FieldsSeq("u1 u2 u3 u4 u5 u6 u7 u8") {
					bustest.Append(t, b, uid, bustest.The(created(uid)))
				}
			}, after: bus.InitOptions{Replicas: 1, MaxBytes: 4 << 10, Memory: true}, field: "max bytes",
		},
		"less history of a section": {
			before: func(t *testing.T, b *bus.Bus, js jetstream.JetStream) {
				t.Helper()
				initialized(t, b, nil)
				s, err := js.Stream(t.Context(), bus.StreamHost)
				if err != nil {
					t.Fatal(err)
				}
				cfg := s.CachedInfo().Config
				cfg.MaxMsgsPerSubject *= 2
				if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
					t.Fatal(err)
				}
			}, after: small(), field: "messages per subject",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := bustest.Server(t)
			b := bustest.Connect(t, bus.Config{Cluster: bustest.Cluster, Name: "admin", Timing: bustest.Timing()}, bus.WithServer(s))
			_, js := raw(t, s)
			c.before(t, b, js)
			_, err := b.Init(t.Context(), c.after)
			if err == nil || !strings.Contains(err.Error(), c.field) || !strings.Contains(err.Error(), bus.StreamHost) {
				t.Errorf("error %v, want one that names %s and %s", err, bus.StreamHost, c.field)
			}
		})
	}
}

func initialized(t *testing.T, b *bus.Bus, _ jetstream.JetStream) {
	t.Helper()
	if _, err := b.Init(t.Context(), small()); err != nil {
		t.Fatal(err)
	}
}

func TestANewEpochIsSeenOnEachEvent(t *testing.T) {
	s := bustest.Server(t)
	b := bustest.On(t, s, "admin")
	old := bustest.Append(t, b, "u1", bustest.The(created("u1"))).Epoch
	o := bus.InitOptions{Replicas: 1, MaxBytes: 1 << 30, Memory: true, NewEpoch: true}
	if _, err := b.Init(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	fresh := bustest.On(t, s, "test")
	if got := bustest.Load(t, fresh, "u1").Epoch; got == old || got == "" {
		t.Errorf("epoch %q after %q", got, old)
	}
}
