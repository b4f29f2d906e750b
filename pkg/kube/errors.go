package kube

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// What went wrong with a read or a write, where a caller acts on it.
var (
	// ErrGone: the object does not exist, or is another one of the same name.
	ErrGone = errors.New("the object is gone")
	// ErrConflict: somebody else changed the object meanwhile; read it again.
	ErrConflict = errors.New("the object was changed by somebody else")
	// ErrTerminating: the namespace is being deleted and takes nothing new.
	ErrTerminating = errors.New("the namespace is being deleted")
)

// translate puts an error of the API into our words.
func translate(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: %w", doing, ErrGone)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: %w", doing, ErrConflict)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("%s: %w", doing, ErrTerminating)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}
