// Command projector is the service between Kubernetes and the bus: it turns
// what users ask into intents, and events into the status of hosts.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/metalbus/metalbus/pkg/assembly"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/service"
	"github.com/metalbus/metalbus/services/projector"
)

// identity is a name that no other replica has: in a container its own, elsewhere
// that of the process. "" if the machine has no name.
func identity() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s-%d", name, os.Getpid())
}

func main() {
	var busCfg bus.Config
	var settings projector.Settings
	service.Main(service.Program{
		Name:  "projector",
		Short: "Turn what users ask of hosts into intents, and events into their status",
		Bind: func(fs *pflag.FlagSet) {
			busCfg.Bind(fs)
			settings.Bind(fs)
		},
		Validate: func() error {
			busCfg.Name = "projector"
			if settings.Kube.Identity == "" {
				settings.Kube.Identity = identity()
			}
			return errors.Join(busCfg.Validate(), settings.Validate())
		},
		Run: func(ctx context.Context, f *service.Frame) error {
			b, closeBus, err := assembly.Connect(ctx, f, busCfg)
			if err != nil {
				return err
			}
			defer closeBus()
			return projector.Run(ctx, f, b, settings)
		},
	})
}
