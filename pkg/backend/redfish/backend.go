package redfish

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Name is how users call this backend.
const Name = "redfish"

// Secrets reads BMC credentials, and what BMCs send along with events.
type Secrets interface {
	// Credentials are the user name and password of a Secret. What is wrong
	// with the Secret itself is a *lifecycle.ProblemError.
	Credentials(ctx context.Context, namespace, name string) (username, password string, err error)
	// Get is all that is in a Secret, and its version; errors as those of Credentials.
	Get(ctx context.Context, namespace, name string) (data map[string][]byte, version string, err error)
}

// Limits are how long a machine may take.
type Limits struct {
	// Power is for a power action to show.
	Power time.Duration
	// SoftOff is for an operating system to shut down before the power is cut.
	SoftOff time.Duration
	// Boot is for a machine that was switched on to take up the image.
	Boot time.Duration
}

// DefaultLimits suit most hardware.
func DefaultLimits() Limits {
	return Limits{Power: 2 * time.Minute, SoftOff: 3 * time.Minute, Boot: 5 * time.Minute}
}

// Backend speaks Redfish to BMCs.
type Backend struct {
	pool    *bmc.Pool
	secrets Secrets
	logins  *logins
	limits  Limits
	now     func() time.Time
}

var _ backend.Backend = (*Backend)(nil)

// New is a Backend over a pool of BMCs.
func New(pool *bmc.Pool, s Secrets, limits Limits, now func() time.Time) *Backend {
	return &Backend{pool: pool, secrets: s, logins: newLogins(s, now), limits: limits, now: now}
}

// Name is "redfish".
func (*Backend) Name() string { return Name }

// Firmware is nil: this backend reads and changes none.
func (*Backend) Firmware(context.Context, lifecycle.Host) (*event.Firmware, error) {
	return nil, nil //nolint:nilnil // nil says so
}

// controller is a BMC of any protocol, as far as power goes.
type controller interface {
	fmt.Stringer
	State(ctx context.Context) (bmc.State, error)
	SetPower(ctx context.Context, a bmc.Action) error
}

// view is what a look is about: a host, its BMC, and the operation.
type view struct {
	host lifecycle.Host
	bmc  controller
	kind event.Kind
}

// op is the operation of the view's kind, nil if it has not begun.
func (v view) op() *event.Op { return v.host.OpOf(v.kind) }

// step is the write that was claimed last, "" before the first.
func (v view) step() string {
	if op := v.op(); op != nil {
		return op.Step
	}
	return ""
}

// Look reads how an operation stands.
func (b *Backend) Look(ctx context.Context, k event.Kind, h lifecycle.Host) (lifecycle.Outlook, error) {
	look := map[event.Kind]func(context.Context, view) (lifecycle.Outlook, error){
		event.Enroll: b.enroll, event.Adopt: b.enroll, event.Inspect: b.inspect, event.Prepare: b.prepare,
		event.Deploy: b.deploy, event.Undeploy: b.undeploy, event.PowerOn: b.powerOn, event.PowerOff: b.powerOff, event.Reboot: b.reboot, event.Subscribe: b.subscription,
	}[k]
	switch {
	case k == event.Detach || k == event.Remove:
		return lifecycle.Finished{}, nil // there are no records to remove
	case k == event.Media:
		return refuse(lifecycle.ErrorTypeOf(k), fmt.Sprintf("the %s backend cannot attach a data image: it boots live images from the virtual CD drive", Name)), nil
	case look == nil:
		return refuse(lifecycle.ErrorTypeOf(k), fmt.Sprintf("the %s backend cannot %s a host", Name, k)), nil
	}
	machine, err := b.machine(ctx, k, h)
	if err != nil {
		return b.broken(k, err)
	}
	o, err := look(ctx, view{host: h, bmc: machine, kind: k})
	if err != nil {
		return b.broken(k, err)
	}
	return o, nil
}

// refuse names the backend that can do what this one cannot.
func refuse(t v1alpha1.ErrorType, what string) lifecycle.Broken {
	return lifecycle.Broken{Problem: event.Problem{
		Type: t, Class: event.ClassUnsupported, Message: what, Local: true,
		Next: "Use the ironic backend for this host (annotation metalbus.io/backend: ironic), or remove the setting",
	}}
}

func (b *Backend) enroll(ctx context.Context, v view) (lifecycle.Outlook, error) {
	if v.host.Intent.Spec.BootMode == v1alpha1.UEFISecureBoot {
		return refuse(v1alpha1.RegistrationError, fmt.Sprintf("the %s backend cannot switch secure boot", Name)), nil
	}
	machine, ok := v.bmc.(*bmc.BMC)
	if !ok { // IPMI: a BMC that tells the power has taken the credentials
		_, err := v.bmc.State(ctx)
		return lifecycle.Finished{Result: lifecycle.Result{Node: identity(v.bmc.String())}}, err
	}
	system, err := machine.Check(ctx)
	if err != nil {
		return nil, err
	}
	address, err := parse(v.host)
	if err != nil {
		return nil, err
	}
	return lifecycle.Finished{Result: lifecycle.Result{Node: identity(address.BaseURL() + system.Path)}}, nil
}

// identity is a host's id at this backend, which keeps no records: the same for
// the same machine, wherever its host object lives.
func identity(where string) string { return uuid.NewSHA1(uuid.NameSpaceURL, []byte(where)).String() }

func (b *Backend) inspect(ctx context.Context, v view) (lifecycle.Outlook, error) {
	machine, ok := v.bmc.(*bmc.BMC)
	if !ok {
		return refuse(v1alpha1.InspectionError, fmt.Sprintf("the %s backend cannot inspect a host over IPMI (or set spec.inspectionMode: disabled)", Name)), nil
	}
	found, err := machine.Inventory(ctx)
	if err != nil {
		return nil, err
	}
	return lifecycle.Finished{Result: lifecycle.Result{Hardware: &found.Details}}, nil
}

// prepare has nothing to apply; what it would have to it refuses.
func (b *Backend) prepare(_ context.Context, v view) (lifecycle.Outlook, error) {
	target := lifecycle.TargetRAID(v.host)
	if target != nil && len(target.HardwareRAIDVolumes)+len(target.SoftwareRAIDVolumes) > 0 {
		return refuse(v1alpha1.PreparationError, fmt.Sprintf("the %s backend cannot set up RAID (spec.raid)", Name)), nil
	}
	return lifecycle.Finished{}, nil
}

// Do makes a write.
func (b *Backend) Do(ctx context.Context, h lifecycle.Host, w lifecycle.Write) error {
	machine, err := b.machine(ctx, w.Kind, h)
	if err != nil {
		return b.failed(w.Kind, err)
	}
	write := map[string]func(context.Context, lifecycle.Host, controller) error{
		writeBoot: withMedia(boot), writeEject: withMedia(eject), writeOn: command(bmc.TurnOn), writeHard: command(bmc.TurnOff), writeSoft: shutDown, writeReboot: command(bmc.Cycle),
	}[w.Name]
	if w.Kind == event.Subscribe {
		write = b.subscribe
	}
	if write == nil {
		return fmt.Errorf("the %s backend knows no write %q", Name, w.Name)
	}
	if err := write(ctx, h, machine); err != nil {
		return b.failed(w.Kind, err)
	}
	return nil
}

// Power reads a host's power. That its BMC cannot be asked is a fault of that
// host, not trouble of the backend.
func (b *Backend) Power(ctx context.Context, h lifecycle.Host) (backend.PowerState, error) {
	machine, err := b.machine(ctx, event.PowerOn, h)
	if err == nil {
		var s bmc.State
		if s, err = machine.State(ctx); err == nil {
			return powerState(s), nil
		}
	}
	if p, ok := b.problem(event.PowerOn, err); ok {
		return backend.PowerState{Fault: p.Message, On: h.Power.On, Health: h.Power.Health}, nil
	}
	return backend.PowerState{}, err
}

// powerState: a machine on its way has not arrived.
func powerState(s bmc.State) backend.PowerState {
	p := backend.PowerState{Health: string(s.Health)}
	switch s.Power {
	case bmc.PowerOn, bmc.PoweringOff:
		on := true
		p.On = &on
	case bmc.PowerOff, bmc.PoweringOn:
		on := false
		p.On = &on
	case bmc.PowerUnknown:
	}
	return p
}
