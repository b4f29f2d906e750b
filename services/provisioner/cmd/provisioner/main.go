// Command provisioner is the service that brings images onto hosts, and takes
// them off again.
package main

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/metalbus/metalbus/pkg/assembly"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/service"
	"github.com/metalbus/metalbus/services/provisioner"
)

func main() {
	var stage assembly.Stage
	cfg := provisioner.DefaultConfig()
	service.Main(service.Program{
		Name:  "provisioner",
		Short: "Prepare hosts, bring images onto them, and take them off again",
		Bind: func(fs *pflag.FlagSet) {
			stage.Bind(fs)
			fs.IntVar(&cfg.MaxAttempts, "max-provisioning-attempts", cfg.MaxAttempts, "`times` that one image may fail on a host before another one is waited for; 0 is no limit")
		},
		Validate: func() error { return stage.Validate("provisioner") },
		Run: func(ctx context.Context, f *service.Frame) error {
			return stage.Run(ctx, f, func(s *backend.Set, b *bus.Bus) bus.Worker { return provisioner.New(s, b, f.Now, cfg) })
		},
	})
}
