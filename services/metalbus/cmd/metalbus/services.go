package main

import (
	"context"

	"github.com/metalbus/metalbus/pkg/assembly"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/kube/companion"
	"github.com/metalbus/metalbus/pkg/service"
	"github.com/metalbus/metalbus/services/inspector"
	"github.com/metalbus/metalbus/services/metalbus"
	"github.com/metalbus/metalbus/services/powermonitor"
	"github.com/metalbus/metalbus/services/projector"
	"github.com/metalbus/metalbus/services/provisioner"
	"github.com/metalbus/metalbus/services/registrar"
)

// services are those of metalbus, as `metalbus up` runs them.
func services() []metalbus.Service {
	return []metalbus.Service{
		{Name: "projector", Run: runProjector},
		stage("registrar", func(f *service.Frame, s metalbus.Shared, b *bus.Bus) bus.Worker {
			return registrar.New(s.Backends, b, f.Now, registrar.DefaultConfig())
		}),
		stage("inspector", func(_ *service.Frame, s metalbus.Shared, b *bus.Bus) bus.Worker {
			return inspector.New(s.Backends, b)
		}),
		stage("provisioner", func(f *service.Frame, s metalbus.Shared, b *bus.Bus) bus.Worker {
			return provisioner.New(s.Backends, b, f.Now, provisioner.DefaultConfig())
		}),
		stage("powermonitor", func(f *service.Frame, s metalbus.Shared, _ *bus.Bus) bus.Worker {
			return powermonitor.New(s.Backends, f.Now, powermonitor.DefaultConfig())
		}),
	}
}

func runProjector(ctx context.Context, f *service.Frame, s metalbus.Shared) error {
	b, closeBus, err := assembly.Connect(ctx, f, s.Bus, s.Server...)
	if err != nil {
		return err
	}
	defer closeBus()
	settings := projector.Settings{Config: projector.DefaultConfig(), Kube: s.Kube, Companions: companion.Config{HostClaims: true, Ramdisks: s.Ramdisks}}
	return projector.Run(ctx, f, b, settings)
}

// openBackends makes the backends that hosts go to.
func openBackends(ctx context.Context, d metalbus.Doors) (*backend.Set, func(context.Context), error) {
	secrets, err := kube.OpenSecrets(d.Secrets)
	if err != nil {
		return nil, nil, err
	}
	settings := assembly.Backends{Names: []string{d.Name}, FixtureDelay: d.Delay, Ironic: d.Ironic}
	set, closeAll, err := settings.Open(ctx, assembly.Around{Secrets: secrets, Documents: d.Bus, Metrics: d.Metrics, Now: d.Now})
	if err != nil {
		return nil, nil, err
	}
	if err := assembly.CheckSlots(d.Slots, set); err != nil {
		closeAll(ctx)
		return nil, nil, err
	}
	return set, closeAll, nil
}

// stage is a stage service with the worker that newWorker makes.
func stage(name string, newWorker func(*service.Frame, metalbus.Shared, *bus.Bus) bus.Worker) metalbus.Service {
	return metalbus.Service{Name: name, Run: func(ctx context.Context, f *service.Frame, s metalbus.Shared) error {
		queued := func(b *bus.Bus) bus.Worker { return assembly.Queued(newWorker(f, s, b), s.Slots, b, f.Now) }
		return assembly.Serve(ctx, f, s.Bus, queued, s.Server...)
	}}
}
