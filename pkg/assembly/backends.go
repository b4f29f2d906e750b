package assembly

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/backend"
	"github.com/metalbus/metalbus/pkg/backend/fixture"
	"github.com/metalbus/metalbus/pkg/backend/redfish"
	"github.com/metalbus/metalbus/pkg/bmc"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Fixture is the name of the backend that pretends.
const Fixture = "fixture"

// Backends are the settings of the backends.
type Backends struct {
	// Names of the backends that there are; the first is for hosts that name none.
	Names []string
	// CAFile holds the certificates that BMCs are checked against; "" is the
	// system's.
	CAFile string
	// FixtureDelay is how long an operation of the fixture backend takes.
	FixtureDelay time.Duration
}

// Bind adds the settings to the flags of a program, with their defaults.
func (b *Backends) Bind(fs *pflag.FlagSet) {
	fs.StringSliceVar(&b.Names, "backend", []string{redfish.Name}, "`backends` that there are, separated by commas: redfish, or fixture to pretend; the first is for hosts that name none")
	fs.StringVar(&b.CAFile, "bmc-ca-file", "", "`file` with the certificates that BMCs are checked against; empty for the system's")
	fs.DurationVar(&b.FixtureDelay, "fixture-delay", 2*time.Second, "`time` that an operation of the fixture backend takes")
}

// Validate reports everything that is wrong.
func (b Backends) Validate() error {
	var errs []error
	if len(b.Names) == 0 {
		errs = append(errs, errors.New("backend: name at least one"))
	}
	known := []string{redfish.Name, Fixture}
	for i, name := range b.Names {
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("backend %q: want one of %s", name, strings.Join(known, ", ")))
		}
		if slices.Contains(b.Names[:i], name) {
			errs = append(errs, fmt.Errorf("backend %q is named twice", name))
		}
	}
	return errors.Join(errs...)
}

// closeTime bounds the logging out of BMC sessions at the end.
const closeTime = 5 * time.Second

// Open makes the backends. What it returns second lets go of them, and must be
// called, at the latest when its context has ended.
func (b Backends) Open(secrets *kube.Secrets, now func() time.Time) (*backend.Set, func(context.Context), error) {
	roots, err := b.roots()
	if err != nil {
		return nil, nil, err
	}
	pool, err := bmc.New(bmc.Config{Now: now, RootCAs: roots})
	if err != nil {
		return nil, nil, err
	}
	var list []backend.Backend
	for _, name := range b.Names {
		switch name {
		case Fixture:
			list = append(list, fixture.New(fixture.NewWorld(now, fixture.Delays{Default: b.FixtureDelay})))
		default:
			list = append(list, redfish.New(pool, logins{secrets}, redfish.DefaultLimits(), now))
		}
	}
	return backend.NewSet(list[0], list[1:]...), func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		pool.Close(ctx)
	}, nil
}

func (b Backends) roots() (*x509.CertPool, error) {
	if b.CAFile == "" {
		return nil, nil //nolint:nilnil // nil is the system's pool
	}
	pem, err := os.ReadFile(b.CAFile)
	if err != nil {
		return nil, fmt.Errorf("bmc-ca-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("bmc-ca-file %q holds no certificate in PEM format", b.CAFile)
	}
	return pool, nil
}

// logins gives backends the credentials in Secrets. What is wrong with a
// Secret is the host's own problem.
type logins struct{ secrets *kube.Secrets }

// Credentials are the user name and password of a Secret.
func (l logins) Credentials(ctx context.Context, namespace, name string) (username, password string, err error) {
	s, err := l.secrets.Get(ctx, namespace, name)
	if err == nil {
		username, password, err = s.Login()
	}
	if wrong, ok := errors.AsType[*kube.SecretError](err); ok {
		p := lifecycle.NewProblem(v1alpha1.RegistrationError, event.ClassCredentials, wrong.Error())
		p.Local = true
		return "", "", &lifecycle.ProblemError{Problem: p}
	}
	return username, password, err
}
