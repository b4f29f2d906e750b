package projector

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/kube/companion"
	"github.com/metalbus/metalbus/pkg/kube/firmware"
	"github.com/metalbus/metalbus/pkg/kube/hostwish"
	"github.com/metalbus/metalbus/pkg/kube/webhook"
	"github.com/metalbus/metalbus/pkg/service"
)

// Settings are those of the service and of all that it does in Kubernetes.
type Settings struct {
	Config
	Kube       kube.Config
	Webhook    webhook.Config
	Companions companion.Config
}

// Bind adds the settings to the flags of a program, with their defaults.
func (s *Settings) Bind(fs *pflag.FlagSet) {
	s.Config = DefaultConfig()
	s.Config.Bind(fs)
	s.Kube.Bind(fs)
	s.Webhook.Bind(fs)
	s.Companions.Bind(fs)
}

// Validate reports everything that is wrong.
func (s *Settings) Validate() error {
	return errors.Join(s.Config.Validate(), s.Kube.Validate(), s.Webhook.Validate(), s.Companions.Validate())
}

// Run runs the service in its frame, between a cluster and a bus, until ctx ends.
func Run(ctx context.Context, f *service.Frame, b Bus, s Settings) error {
	c, err := kube.Open(s.Kube, kube.Options{Log: f.Log, Metrics: f.Metrics, Now: f.Now})
	if err != nil {
		return err
	}
	f.Health.Ready(f.Name+" hosts", c.Hosts.Ready)
	f.Health.Ready(f.Name+" fields", c.FieldsKnown())
	o := Options{Log: f.Log, Metrics: f.Metrics, Now: f.Now}
	companions, err := companion.New(s.Companions, c, f.Log, f.Now)
	if err != nil {
		return err
	}
	fw, err := firmware.New(c, b, f.Log, f.Now)
	if err != nil {
		return err
	}
	o.Firmware = fw
	o.Leading = append(o.Leading, companions.Run, fw.Run)
	if companions.Ramdisks != nil {
		o.Ramdisks = companions.Ramdisks
	}
	wishes, err := hostwish.New(c, f.Log)
	if err != nil {
		return err
	}
	o.Wishes, o.Beside = wishes, append(o.Beside, wishes.Run)
	o.Leading = append(o.Leading, wishes.Lead)
	if s.Webhook.Port != 0 {
		hook, err := webhook.New(s.Webhook, c, webhook.Options{Log: f.Log, Metrics: f.Metrics, Now: f.Now})
		if err != nil {
			return err
		}
		f.Health.Ready(f.Name+" webhook", hook.Ready)
		o.Beside = append(o.Beside, hook.Start)
	}
	return New(s.Config, c, b, o).Run(ctx)
}
