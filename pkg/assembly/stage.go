package assembly

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/lifecycle"
	"github.com/metalbus/metalbus/pkg/service"
	"github.com/metalbus/metalbus/pkg/slots"
)

// Stage are the settings of a stage service: registrar, inspector, provisioner
// or powermonitor.
type Stage struct {
	Bus      bus.Config
	Kube     kube.Access
	Backends Backends
	// Slots are how many long operations each backend is asked for at once.
	Slots slots.Limits
}

// Bind adds the settings to the flags of a program, with their defaults.
func (s *Stage) Bind(fs *pflag.FlagSet) {
	s.Bus.Bind(fs)
	s.Kube.Bind(fs)
	s.Backends.Bind(fs)
	BindSlots(&s.Slots, fs)
}

// Validate reports everything that is wrong. The bus is named after the service.
func (s *Stage) Validate(name string) error {
	s.Bus.Name = name
	return errors.Join(s.Bus.Validate(), s.Backends.Validate(), s.Slots.Validate())
}

// Run runs the service that newWorker makes until ctx ends.
func (s *Stage) Run(ctx context.Context, f *service.Frame, newWorker func(*backend.Set, *bus.Bus) bus.Worker) error {
	secrets, err := kube.OpenSecrets(s.Kube)
	if err != nil {
		return err
	}
	b, closeBus, err := Connect(ctx, f, s.Bus)
	if err != nil {
		return err
	}
	defer closeBus()
	backends, closeBackends, err := s.Backends.Open(ctx, Around{Secrets: secrets, Documents: b, Metrics: f.Metrics, Now: f.Now})
	if err != nil {
		return err
	}
	defer closeBackends(ctx)
	if err := CheckSlots(s.Slots, backends); err != nil {
		return err
	}
	return b.Serve(ctx, Queued(newWorker(backends, b), s.Slots, b, f.Now))
}

// BindSlots adds the setting of slots to the flags of a program.
func BindSlots(l *slots.Limits, fs *pflag.FlagSet) {
	fs.StringToIntVar((*map[string]int)(l), "slots", nil, "`BACKEND=NUMBER` of inspections, preparations, deployments and cleanings that a backend is asked for at once, separated by commas, the same for inspector and provisioner; one that is not named has no limit")
}

// CheckSlots reports slots of a backend that there is not.
func CheckSlots(l slots.Limits, backends *backend.Set) error {
	for name := range l {
		if !slices.Contains(backends.Names(), name) {
			return fmt.Errorf("slots %s=%d: there is no such backend; there are %s", name, l[name], strings.Join(backends.Names(), ", "))
		}
	}
	return nil
}

// Queued has a worker ask for a slot where it begins a long operation.
func Queued(w bus.Worker, l slots.Limits, b *bus.Bus, now func() time.Time) bus.Worker {
	if sec := w.Section(); len(l) == 0 || (sec != event.SectionInspection && sec != event.SectionProvisioning) {
		return w
	}
	return queued{w, slots.New(b, l, now)}
}

// queued is a worker that waits its turn.
type queued struct {
	bus.Worker
	queue *slots.Queue
}

func (w queued) Step(ctx context.Context, h lifecycle.Host) (lifecycle.Step, error) {
	return w.queue.Step(ctx, h, w.Section(), w.Worker.Step)
}

// Serve connects a stage service to the bus and runs it until ctx ends; then
// what is in hand is finished.
func Serve(ctx context.Context, f *service.Frame, cfg bus.Config, newWorker func(*bus.Bus) bus.Worker, opts ...bus.Option) error {
	b, closeBus, err := Connect(ctx, f, cfg, opts...)
	if err != nil {
		return err
	}
	defer closeBus()
	return b.Serve(ctx, newWorker(b))
}

// Connect connects a service to the bus, in its frame: its clock, logger and
// tracer, and with the bus's health and metrics among the service's. What it
// returns second ends the connection, and must be called.
func Connect(ctx context.Context, f *service.Frame, cfg bus.Config, opts ...bus.Option) (*bus.Bus, func(), error) {
	cfg.Name = f.Name
	f.Health.Ready(f.Name+" bus", unconnected)
	opts = append([]bus.Option{bus.WithClock(f.Now), bus.WithLogger(f.Log), bus.WithTracer(f.Tracer)}, opts...)
	b, err := bus.Connect(ctx, cfg, opts...)
	if err != nil {
		return nil, nil, err
	}
	if err := f.Metrics.Register(b); err != nil {
		return nil, nil, errors.Join(err, b.Close())
	}
	f.Health.Alive(f.Name+" bus", b.Healthy)
	f.Health.Ready(f.Name+" bus", b.Ready)
	return b, func() {
		if err := b.Close(); err != nil {
			f.Log.Warn("close the bus", keyError, err.Error())
		}
	}, nil
}

// unconnected is what readiness says while nobody has answered.
func unconnected(context.Context) error { return errors.New("no NATS server has answered yet") }

// keyError is the key of an error in a log line.
const keyError = "error"
