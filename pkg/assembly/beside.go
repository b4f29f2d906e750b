package assembly

import (
	"context"
	"errors"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bus"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// secrets gives backends what is in Secrets. What is wrong with a Secret is the
// host's own problem.
type secrets struct{ secrets *kube.Secrets }

// Credentials are the user name and password of a Secret.
func (s secrets) Credentials(ctx context.Context, namespace, name string) (username, password string, err error) {
	found, err := s.secrets.Get(ctx, namespace, name)
	if err == nil {
		username, password, err = found.Login()
	}
	return username, password, ownProblem(err)
}

// Get is all that is in a Secret, and its version.
func (s secrets) Get(ctx context.Context, namespace, name string) (data map[string][]byte, version string, err error) {
	found, err := s.secrets.Get(ctx, namespace, name)
	if err != nil {
		return nil, "", ownProblem(err)
	}
	return found.Data(), found.Version, nil
}

// ownProblem makes what is wrong with a Secret a problem of the host that names it.
func ownProblem(err error) error {
	wrong, ok := errors.AsType[*kube.SecretError](err)
	if !ok {
		return err
	}
	p := lifecycle.NewProblem(v1alpha1.RegistrationError, event.ClassCredentials, wrong.Error())
	p.Local = true
	return &lifecycle.ProblemError{Problem: p}
}

// Documents are what is too large for an event.
type Documents interface {
	GetData(ctx context.Context, uid, name, digest string, value any) error
}

// inventories gives backends what is known of hosts' hardware.
type inventories struct{ documents Documents }

// Hardware is what is known of a host's hardware; nil for nothing, also where
// the bus has lost it.
func (i inventories) Hardware(ctx context.Context, h lifecycle.Host) (*v1alpha1.HardwareDetails, error) {
	if h.Inspection.Digest == "" {
		return nil, nil //nolint:nilnil // nil is nothing known
	}
	var d v1alpha1.HardwareDetails
	err := i.documents.GetData(ctx, h.UID, event.DataHardware, h.Inspection.Digest, &d)
	switch {
	case errors.Is(err, bus.ErrNoData):
		return nil, nil //nolint:nilnil // as above
	case err != nil:
		return nil, err
	default:
		return &d, nil
	}
}
