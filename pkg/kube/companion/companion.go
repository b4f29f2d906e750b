package companion

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/kube/hostclaim"
	"github.com/metalbus/metalbus/pkg/kube/preprov"
	"github.com/metalbus/metalbus/pkg/kube/switches"
)

// Config are the settings for companion kinds.
type Config struct {
	// HostClaims has claims served.
	HostClaims bool
	// Switches are the settings of the switches' configuration.
	Switches switches.Config
	// Ramdisks are the settings of PreprovisioningImages.
	Ramdisks preprov.Config
}

// Bind adds the settings to the flags of a program, with their defaults.
func (c *Config) Bind(fs *pflag.FlagSet) {
	fs.BoolVar(&c.HostClaims, "hostclaims", false, "give HostClaims their hosts")
	c.Switches.Bind(fs)
	c.Ramdisks.Bind(fs)
}

// Validate reports everything that is wrong.
func (c *Config) Validate() error { return errors.Join(c.Switches.Validate(), c.Ramdisks.Validate()) }

// Companions are the controllers of companion kinds.
type Companions struct {
	// Ramdisks are the PreprovisioningImages, nil if they are not kept.
	Ramdisks *preprov.Images

	parts []part
}

// part works until its context ends.
type part interface {
	Run(ctx context.Context) error
}

// New are the controllers for the namespaces that c watches. It must be called
// before the hosts are watched.
func New(cfg Config, c *kube.Cluster, log *slog.Logger, now func() time.Time) (*Companions, error) {
	all := &Companions{}
	if cfg.HostClaims {
		claims, err := hostclaim.New(c, log, now)
		if err != nil {
			return nil, err
		}
		all.parts = append(all.parts, claims)
	}
	if cfg.Switches.Enabled {
		written, err := switches.New(cfg.Switches, c, log, now)
		if err != nil {
			return nil, err
		}
		all.parts = append(all.parts, written)
	}
	if cfg.Ramdisks.Enabled {
		images, err := preprov.New(cfg.Ramdisks, c, log, now)
		if err != nil {
			return nil, err
		}
		all.Ramdisks = images
		all.parts = append(all.parts, images)
	}
	n, err := newNotices(cfg, c, log, now)
	if err != nil {
		return nil, err
	}
	all.parts = append(all.parts, n)
	return all, nil
}

// Run works until ctx ends, again if it is called again. Only the replica that
// leads runs it, to save requests; that two do for moments does no harm.
func (a *Companions) Run(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	for _, p := range a.parts {
		all.Go(func() error { return p.Run(ctx) })
	}
	return all.Wait()
}
