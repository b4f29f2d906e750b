package ironic

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/ironic"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// FirmwareSettings are what is known of a machine's firmware settings.
type FirmwareSettings struct {
	Settings v1alpha1.SettingsMap
	Schema   map[string]v1alpha1.SettingSchema
	// Odd names the settings that were left out, since they have no value.
	Odd []string
}

// FirmwareSettings reads a host's firmware settings and what values they can take.
// Passwords are left out, and what is odd about one setting does not keep the others
// from being told.
func (b *Backend) FirmwareSettings(ctx context.Context, h lifecycle.Host) (FirmwareSettings, error) {
	if h.Registration.Node == "" {
		return FirmwareSettings{}, lifecycle.ErrUnregistered
	}
	all, err := b.client.BIOS(ctx, h.Registration.Node)
	if err != nil {
		return FirmwareSettings{}, registered(err)
	}
	f := FirmwareSettings{Settings: v1alpha1.SettingsMap{}, Schema: map[string]v1alpha1.SettingSchema{}}
	for _, s := range all {
		switch {
		case s.Name == "" || s.AttributeType == v1alpha1.AttributePassword || strings.Contains(s.Name, v1alpha1.AttributePassword):
		case s.Null:
			f.Odd = append(f.Odd, s.Name)
		default:
			f.Settings[s.Name] = s.Value
			f.Schema[s.Name] = schemaOf(s)
		}
	}
	return f, nil
}

func schemaOf(s ironic.BIOSSetting) v1alpha1.SettingSchema {
	return v1alpha1.SettingSchema{
		AttributeType: s.AttributeType, AllowableValues: s.AllowableValues, LowerBound: s.LowerBound, UpperBound: s.UpperBound,
		MinLength: s.MinLength, MaxLength: s.MaxLength, ReadOnly: s.ReadOnly, Unique: s.Unique,
	}
}

// FirmwareComponents reads the versions of a host's firmware: none where this Ironic
// or the driver does not know them.
func (b *Backend) FirmwareComponents(ctx context.Context, h lifecycle.Host) ([]v1alpha1.FirmwareComponentStatus, error) {
	if h.Registration.Node == "" {
		return nil, lifecycle.ErrUnregistered
	}
	all, err := b.client.Firmware(ctx, h.Registration.Node)
	if errors.Is(err, ironic.ErrUnsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, registered(err)
	}
	var list []v1alpha1.FirmwareComponentStatus
	for _, c := range all {
		list = append(list, v1alpha1.FirmwareComponentStatus{
			Component: c.Component, InitialVersion: c.InitialVersion, CurrentVersion: c.CurrentVersion, LastVersionFlashed: c.LastVersionFlashed, UpdatedAt: metav1.NewTime(c.UpdatedAt),
		})
	}
	return list, nil
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
