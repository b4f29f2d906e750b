package ironic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bmcaddress"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Firmware reads a machine's firmware: its settings, what values they can take, and
// the versions of its components. Passwords are left out, and what is odd about one
// setting does not keep the others from being told. It is nil where the BMC, or this
// Ironic, tells nothing of it.
func (b *Backend) Firmware(ctx context.Context, h lifecycle.Host) (*event.Firmware, error) {
	if h.Registration.Node == "" {
		return nil, lifecycle.ErrUnregistered
	}
	address, err := bmcaddress.Parse(h.Intent.Spec.BMC.Address, false)
	if err != nil || !address.Family().Capabilities.Firmware {
		return nil, nil //nolint:nilerr,nilnil // such a BMC tells nothing
	}
	f, err := b.firmwareSettings(ctx, h.Registration.Node)
	if err == nil {
		f.Components, err = b.firmwareComponents(ctx, h.Registration.Node)
	}
	switch {
	case err != nil:
		return nil, registered(err)
	case len(f.Settings)+len(f.Odd)+len(f.Components) == 0:
		return nil, nil //nolint:nilnil // nothing is known
	default:
		return f, nil
	}
}

func (b *Backend) firmwareSettings(ctx context.Context, node string) (*event.Firmware, error) {
	all, err := b.client.BIOS(ctx, node)
	if err != nil {
		return nil, err
	}
	f := &event.Firmware{Settings: map[string]string{}, Schema: map[string]v1alpha1.SettingSchema{}}
	for _, s := range all {
		switch {
		case s.Name == "" || s.AttributeType == v1alpha1.AttributePassword || strings.Contains(s.Name, v1alpha1.AttributePassword):
		case s.Null || strings.ContainsFunc(s.Name, unicode.IsSpace):
			f.Odd = append(f.Odd, s.Name)
		default:
			f.Settings[s.Name] = s.Value
			f.Schema[s.Name] = schemaOf(s)
		}
	}
	slices.Sort(f.Odd)
	return f, nil
}

func schemaOf(s ironic.BIOSSetting) v1alpha1.SettingSchema {
	return v1alpha1.SettingSchema{
		AttributeType: s.AttributeType, AllowableValues: s.AllowableValues, LowerBound: s.LowerBound, UpperBound: s.UpperBound,
		MinLength: s.MinLength, MaxLength: s.MaxLength, ReadOnly: s.ReadOnly, Unique: s.Unique,
	}
}

// firmwareComponents are none where this Ironic or the driver does not know them.
func (b *Backend) firmwareComponents(ctx context.Context, node string) ([]v1alpha1.FirmwareComponentStatus, error) {
	all, err := b.client.Firmware(ctx, node)
	if errors.Is(err, ironic.ErrUnsupported) {
		return nil, nil
	}
	var list []v1alpha1.FirmwareComponentStatus
	for _, c := range all {
		list = append(list, v1alpha1.FirmwareComponentStatus{
			Component: c.Component, InitialVersion: c.InitialVersion, CurrentVersion: c.CurrentVersion, LastVersionFlashed: c.LastVersionFlashed, UpdatedAt: metav1.NewTime(c.UpdatedAt),
		})
	}
	return list, err
}

// MediumInserted reports whether there is a medium in the host's virtual drive. While
// Ironic is at work on the node that is lifecycle.ErrBusy.
func (b *Backend) MediumInserted(ctx context.Context, h lifecycle.Host) (bool, error) {
	n, err := b.free(ctx, h)
	if err != nil {
		return false, err
	}
	drives, err := b.client.VirtualMedia(ctx, n.UUID)
	for _, d := range drives {
		if d.Inserted {
			return true, nil
		}
	}
	return false, registered(err)
}

// InsertMedium begins to put an image into the host's virtual drive. It is there, or
// not, once the node is free again.
func (b *Backend) InsertMedium(ctx context.Context, h lifecycle.Host, url string) error {
	n, err := b.free(ctx, h)
	if err != nil {
		return err
	}
	return registered(b.client.AttachMedia(ctx, n.UUID, url))
}

// EjectMedium begins to empty the host's virtual drive.
func (b *Backend) EjectMedium(ctx context.Context, h lifecycle.Host) error {
	n, err := b.free(ctx, h)
	if err != nil {
		return err
	}
	return registered(b.client.DetachMedia(ctx, n.UUID))
}

// free is the host's node, if nobody is at work on it.
func (b *Backend) free(ctx context.Context, h lifecycle.Host) (ironic.Node, error) {
	if h.Registration.Node == "" {
		return ironic.Node{}, lifecycle.ErrUnregistered
	}
	n, err := b.reader.Node(ctx, h.Registration.Node)
	switch {
	case err != nil:
		return n, registered(err)
	case n.Reservation != "":
		return n, fmt.Errorf("node %s is held by conductor %s: %w", n.UUID, n.Reservation, lifecycle.ErrBusy)
	default:
		return n, nil
	}
}

// Subscribe has the host's BMC send its events to a URL, and returns the BMC's name
// for that. The headers are secret.
func (b *Backend) Subscribe(ctx context.Context, h lifecycle.Host, destination, note string, headers map[string]string) (id string, err error) {
	if h.Registration.Node == "" {
		return "", lifecycle.ErrUnregistered
	}
	id, err = b.client.Subscribe(ctx, h.Registration.Node, ironic.Subscription{Destination: destination, Context: note, Headers: headers})
	return id, registered(err)
}

// Unsubscribe ends that.
func (b *Backend) Unsubscribe(ctx context.Context, h lifecycle.Host, id string) error {
	if h.Registration.Node == "" {
		return nil
	}
	err := b.client.Unsubscribe(ctx, h.Registration.Node, id)
	if errors.Is(err, ironic.ErrNoNode) {
		return nil
	}
	return err
}

// registered says of a node that is gone that the host is not registered.
func registered(err error) error {
	if errors.Is(err, ironic.ErrNoNode) {
		return fmt.Errorf("%w: %w", lifecycle.ErrUnregistered, err)
	}
	return err
}
