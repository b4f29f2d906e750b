package kube

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What went wrong with a read or a write, where a caller acts on it.
var (
	// ErrGone: the object does not exist, or is another one of the same name.
	ErrGone = errors.New("the object is gone")
	// ErrConflict: somebody else changed the object meanwhile; read it again.
	ErrConflict = errors.New("the object was changed by somebody else")
	// ErrUnseen: the watch of this replica has not brought an object yet that another
	// replica has seen.
	ErrUnseen = errors.New("an object has not been seen yet")
	// ErrTerminating: the namespace is being deleted and takes nothing new.
	ErrTerminating = errors.New("the namespace is being deleted")
)

// translate puts an error of the API into our words.
func translate(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err), refuses(err, "metadata.uid"):
		return fmt.Errorf("%s: %w", doing, ErrGone)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: %w", doing, ErrConflict)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("%s: %w", doing, ErrTerminating)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

// refuses reports whether the API refuses a field. A patch that names the uid
// of an object that has been made anew is refused for that field.
func refuses(err error, field string) bool {
	status, is := errors.AsType[*apierrors.StatusError](err)
	if !is || status.ErrStatus.Details == nil {
		return false
	}
	return slices.ContainsFunc(status.ErrStatus.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == field })
}

// Refused is what the API says against an object that it does not take since
// a field has a wrong value; nil for any other error.
func Refused(err error) error {
	status, is := errors.AsType[*apierrors.StatusError](err)
	if !is || !apierrors.IsInvalid(status) {
		return nil
	}
	return status
}
