package kube

import (
	"context"
	"errors"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// Credentials are the user name and password of a BMC, read from a Secret.
// What is wrong with the Secret is the host's own problem, a
// *lifecycle.ProblemError.
func (s *Secrets) Credentials(ctx context.Context, namespace, name string) (user, password string, err error) {
	secret, err := s.Get(ctx, namespace, name)
	if err == nil {
		user, password, err = secret.Login()
	}
	wrong, is := errors.AsType[*SecretError](err)
	if !is {
		return user, password, err
	}
	return "", "", &lifecycle.ProblemError{Problem: event.Problem{
		Type: v1alpha1.RegistrationError, Class: event.ClassCredentials, Message: wrong.Error(), Local: true,
	}}
}
