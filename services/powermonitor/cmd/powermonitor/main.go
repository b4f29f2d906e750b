// Command powermonitor is the service that watches the power of hosts and
// brings about what is asked for.
package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/metalbus/metalbus/pkg/assembly"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/service"
	"github.com/metalbus/metalbus/services/powermonitor"
)

func main() {
	var stage assembly.Stage
	cfg := powermonitor.DefaultConfig()
	service.Main(service.Program{
		Name:  "powermonitor",
		Short: "Watch the power of hosts, and switch it as asked",
		Bind: func(fs *pflag.FlagSet) {
			stage.Bind(fs)
			fs.DurationVar(&cfg.Every, "power-interval", cfg.Every, "longest `time` between two looks at a host's power")
		},
		Validate: func() error { return stage.Validate("powermonitor") },
		Run: func(ctx context.Context, f *service.Frame) error {
			return stage.Run(ctx, f, func(s *backend.Set, _ *bus.Bus) bus.Worker { return powermonitor.New(s, f.Now, cfg) })
		},
	})
}
