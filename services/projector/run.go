package projector

import (
	"context"

	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/service"
)

// Run runs the service in its frame, between a cluster and a bus, until ctx ends.
func Run(ctx context.Context, f *service.Frame, b Bus, access kube.Config, cfg Config) error {
	c, err := kube.Open(access, kube.Options{Log: f.Log, Metrics: f.Metrics, Now: f.Now})
	if err != nil {
		return err
	}
	f.Health.Ready(f.Name+" hosts", c.Hosts.Ready)
	f.Health.Ready(f.Name+" fields", c.FieldsKnown())
	return New(cfg, c, b, Options{Log: f.Log, Metrics: f.Metrics, Now: f.Now}).Run(ctx)
}
