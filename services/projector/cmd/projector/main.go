// Command projector is the service between Kubernetes and the bus: it turns
// what users ask into intents, and events into the status of hosts.
package main

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/metalbus/metalbus/pkg/assembly"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/service"
	"github.com/metalbus/metalbus/services/projector"
)

func main() {
	var busCfg bus.Config
	var kubeCfg kube.Config
	cfg := projector.DefaultConfig()
	service.Main(service.Program{
		Name:  "projector",
		Short: "Turn what users ask of hosts into intents, and events into their status",
		Bind: func(fs *pflag.FlagSet) {
			busCfg.Bind(fs)
			kubeCfg.Bind(fs)
			cfg.Bind(fs)
		},
		Validate: func() error {
			busCfg.Name = "projector"
			return errors.Join(busCfg.Validate(), kubeCfg.Validate(), cfg.Validate())
		},
		Run: func(ctx context.Context, f *service.Frame) error {
			cluster, err := kube.Open(kubeCfg, kube.Options{Log: f.Log, Metrics: f.Metrics, Now: f.Now})
			if err != nil {
				return err
			}
			b, closeBus, err := assembly.Connect(ctx, f, busCfg)
			if err != nil {
				return err
			}
			defer closeBus()
			return projector.New(cfg, cluster, b, projector.Options{Log: f.Log, Metrics: f.Metrics, Now: f.Now}).Run(ctx)
		},
	})
}
