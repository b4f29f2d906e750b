package stories_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/backend/fixture"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/bus/bustest"
	"github.com/metalbus/metalbus/pkg/lifecycle"
	"github.com/metalbus/metalbus/services/inspector"
	"github.com/metalbus/metalbus/services/powermonitor"
	"github.com/metalbus/metalbus/services/provisioner"
	"github.com/metalbus/metalbus/services/registrar"
)

func TestSmoke(t *testing.T) {
	server := bustest.Server(t)
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	world := fixture.NewWorld(time.Now, fixture.Delays{Default: 50 * time.Millisecond})
	set := backend.NewSet(fixture.New(world))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	user := bustest.On(t, server, "projector", bus.WithLogger(log))
	serve := func(name string, worker func(*bus.Bus) bus.Worker) {
		b := bustest.On(t, server, name, bus.WithLogger(log.With("service", name)))
		go func() {
			if err := b.Serve(ctx, worker(b)); err != nil {
				t.Error(err)
			}
		}()
	}
	serve("registrar", func(*bus.Bus) bus.Worker { return registrar.New(set, time.Now, registrar.DefaultConfig()) })
	serve("inspector", func(b *bus.Bus) bus.Worker { return inspector.New(set, b) })
	serve("provisioner", func(*bus.Bus) bus.Worker { return provisioner.New(set, provisioner.DefaultConfig()) })
	serve("powermonitor", func(*bus.Bus) bus.Worker { return powermonitor.New(set, powermonitor.DefaultConfig()) })

	i := event.Intent{Namespace: "lab", Name: "host-a", UID: "uid-1", CreatedAt: time.Now(), Credentials: event.SecretRef{Namespace: "lab", Name: "s", Version: "1"}}
	i.Spec.Online = true
	i.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish://192.0.2.1", CredentialsName: "s"}
	i.Spec.Image = &v1alpha1.Image{URL: "http://192.0.2.2/a.iso"}
	h := lifecycle.Host{UID: "uid-1"}
	if _, err := user.Append(ctx, h, lifecycle.Wish{Fact: event.Created, Intent: i}); err != nil {
		t.Fatal(err)
	}
	want := func(s v1alpha1.ProvisioningState) {
		t.Helper()
		begin := time.Now()
		for {
			h, err := user.Load(ctx, "uid-1")
			if err != nil {
				t.Fatal(err)
			}
			if lifecycle.Stage(h) == s {
				t.Log(s, "after", time.Since(begin))
				return
			}
			if time.Since(begin) > 20*time.Second {
				t.Fatalf("still %q: %+v", lifecycle.Stage(h), h)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	change := func(fact string, f func(*event.Intent)) {
		for {
			h, err := user.Load(ctx, "uid-1")
			if err != nil {
				t.Fatal(err)
			}
			f(&h.Intent)
			if _, err := user.Append(ctx, h, lifecycle.Wish{Fact: fact, Intent: h.Intent}); err == nil {
				return
			}
		}
	}
	want(v1alpha1.StateProvisioned)
	change(event.Changed, func(i *event.Intent) { i.Spec.Image = nil })
	want(v1alpha1.StateAvailable)
	change(event.Deleting, func(i *event.Intent) { i.DeletedAt = time.Now() })
	want(v1alpha1.StateDeleting)
	time.Sleep(time.Second)
	hist, err := user.Snapshots(ctx, "uid-1", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hist {
		s, m := h.NewestFact()
		t.Log(h.Rev, s, m.Fact, lifecycle.Stage(h))
	}
	t.Log(world.Commands(""))
}
