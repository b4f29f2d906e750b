// Command inspector is the service that makes the hardware of hosts known.
package main

import (
	"context"

	"github.com/metalbus/metalbus/pkg/assembly"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/service"
	"github.com/metalbus/metalbus/services/inspector"
)

func main() {
	var stage assembly.Stage
	service.Main(service.Program{
		Name:     "inspector",
		Short:    "Make the hardware of registered hosts known",
		Bind:     stage.Bind,
		Validate: func() error { return stage.Validate("inspector") },
		Run: func(ctx context.Context, f *service.Frame) error {
			return stage.Run(ctx, f, func(s *backend.Set, b *bus.Bus) bus.Worker { return inspector.New(s, b) })
		},
	})
}
