package assembly

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/backend/fixture"
	"github.com/metalbus/metalbus/pkg/backend/ironic"
	"github.com/metalbus/metalbus/pkg/backend/redfish"
	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/kube"
)

// Fixture is the name of the backend that pretends.
const Fixture = "fixture"

// Backends are the settings of the backends.
type Backends struct {
	// Names of the backends that there are; the first is for hosts that name none.
	// ironic stands for every Ironic that is configured.
	Names []string
	// CAFile holds the certificates that BMCs are checked against; "" is the
	// system's.
	CAFile string
	// FixtureDelay is how long an operation of the fixture backend takes.
	FixtureDelay time.Duration
	// Ironic says which Ironics there are, if ironic is one of the names.
	Ironic ironic.Config
}

// Bind adds the settings to the flags of a program, with their defaults.
func (b *Backends) Bind(fs *pflag.FlagSet) {
	fs.StringSliceVar(&b.Names, "backend", []string{redfish.Name}, "`backends` that there are, separated by commas: redfish, ironic, or fixture to pretend; the first is for hosts that name none")
	fs.StringVar(&b.CAFile, "bmc-ca-file", "", "`file` with the certificates that BMCs are checked against, read again when it changes; empty for the system's")
	fs.DurationVar(&b.FixtureDelay, "fixture-delay", 2*time.Second, "`time` that an operation of the fixture backend takes")
	b.Ironic.Bind(fs)
}

// Validate reports everything that is wrong.
func (b Backends) Validate() error {
	var errs []error
	if len(b.Names) == 0 {
		errs = append(errs, errors.New("backend: name at least one"))
	}
	known := []string{redfish.Name, ironic.Name, Fixture}
	for i, name := range b.Names {
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("backend %q: want one of %s", name, strings.Join(known, ", ")))
		}
		if slices.Contains(b.Names[:i], name) {
			errs = append(errs, fmt.Errorf("backend %q is named twice", name))
		}
	}
	if slices.Contains(b.Names, ironic.Name) {
		errs = append(errs, b.Ironic.Validate())
	}
	return errors.Join(errs...)
}

// Around is what backends find around them.
type Around struct {
	Secrets *kube.Secrets
	// Documents hold the inventories of hosts.
	Documents Documents
	// Metrics take what the backends count; nil for nothing.
	Metrics prometheus.Registerer
	Now     func() time.Time
}

// closeTime bounds the logging out of BMC sessions at the end.
const closeTime = 5 * time.Second

// Open makes the backends. What it returns second lets go of them, and must be
// called, at the latest when its context has ended.
func (b Backends) Open(ctx context.Context, around Around) (*backend.Set, func(context.Context), error) {
	o := opening{Backends: b, Around: around}
	for _, name := range b.Names {
		if err := o.open(name); err != nil {
			o.close(ctx)
			return nil, nil, err
		}
	}
	return backend.NewSet(o.list[0], o.list[1:]...), o.close, nil
}

// opening is the making of the backends.
type opening struct {
	Backends
	Around
	list    []backend.Backend
	closers []func(context.Context)
}

func (o *opening) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	for _, f := range o.closers {
		f(ctx)
	}
}

func (o *opening) open(name string) error {
	switch name {
	case Fixture:
		o.list = append(o.list, fixture.New(fixture.NewWorld(o.Now, fixture.Delays{Default: o.FixtureDelay})))
		return nil
	case ironic.Name:
		return o.openIronics()
	default:
		return o.openRedfish()
	}
}

func (o *opening) openRedfish() error {
	roots, err := openRoots(o.CAFile, o.Now)
	if err != nil {
		return err
	}
	pool, err := bmc.New(bmc.Config{Now: o.Now, RootCAs: roots.current})
	if err != nil {
		return err
	}
	o.closers = append(o.closers, pool.Close)
	o.list = append(o.list, redfish.New(pool, secrets{o.Secrets}, redfish.DefaultLimits(), o.Now))
	return nil
}

func (o *opening) openIronics() error {
	all, closeAll, err := o.Ironic.Open(ironic.Beside{
		Secrets: secrets{o.Secrets}, Inventories: inventories{o.Documents}, Now: o.Now,
	}, o.Metrics)
	if err != nil {
		return err
	}
	o.closers = append(o.closers, func(context.Context) { closeAll() })
	for _, b := range all {
		if slices.Contains([]string{Fixture, redfish.Name}, b.Name()) {
			return fmt.Errorf("ironics-file %s: an Ironic must not be called %s: another backend is", o.Ironic.File, b.Name())
		}
		o.list = append(o.list, b)
	}
	return nil
}
