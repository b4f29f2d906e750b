// Command registrar is the service that makes declared hosts nodes of their backend.
package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/metalbus/metalbus/pkg/assembly"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/service"
	"github.com/metalbus/metalbus/services/registrar"
)

func main() {
	var stage assembly.Stage
	cfg := registrar.DefaultConfig()
	service.Main(service.Program{
		Name:  "registrar",
		Short: "Make declared hosts nodes of their backend, and check their BMC credentials",
		Bind: func(fs *pflag.FlagSet) {
			stage.Bind(fs)
			fs.DurationVar(&cfg.SecretGrace, "secret-grace", cfg.SecretGrace, "`time` that a host waits in silence for a Secret that is not there yet")
		},
		Validate: func() error { return stage.Validate("registrar") },
		Run: func(ctx context.Context, f *service.Frame) error {
			return stage.Run(ctx, f, func(s *backend.Set, b *bus.Bus) bus.Worker { return registrar.New(s, b, f.Now, cfg) })
		},
	})
}
