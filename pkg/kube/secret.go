package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What can be wrong with a Secret. A *SecretError wraps one of them.
var (
	ErrSecretMissing   = errors.New("the Secret does not exist")
	ErrSecretForbidden = errors.New("this service may not read the Secret")
	ErrKeyMissing      = errors.New("the key is missing")
	ErrKeyEmpty        = errors.New("the value is empty")
)

// SecretError says what is wrong with which Secret, and what to do about it;
// never what is in it.
type SecretError struct {
	Namespace, Name string
	// Key is the key in question, "" if it is the Secret as a whole.
	Key string
	Err error
}

func (e *SecretError) Error() string {
	name := e.Namespace + "/" + e.Name
	switch {
	case errors.Is(e.Err, ErrSecretMissing):
		return fmt.Sprintf("the Secret %s does not exist; create it", name)
	case errors.Is(e.Err, ErrSecretForbidden):
		return fmt.Sprintf("the Secret %s may not be read by this service; grant it get on Secrets in namespace %s", name, e.Namespace)
	case errors.Is(e.Err, ErrKeyMissing):
		return fmt.Sprintf("the Secret %s has no key %q; add it", name, e.Key)
	case errors.Is(e.Err, ErrKeyEmpty):
		return fmt.Sprintf("the key %q of the Secret %s is empty or blank; give it a value", e.Key, name)
	default:
		return fmt.Sprintf("read the Secret %s: %v", name, e.Err)
	}
}

func (e *SecretError) Unwrap() error { return e.Err }

// Secrets reads Secrets, each time from the API and none of them kept.
type Secrets struct{ reader client.Reader }

// OpenSecrets is for services that read Secrets and do nothing else in
// Kubernetes. It makes no request yet.
func OpenSecrets(a Access) (*Secrets, error) {
	access, err := a.rest()
	if err != nil {
		return nil, err
	}
	c, err := newClient(unlimited(access), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return &Secrets{reader: c}, nil
}

// Get reads a Secret. What is wrong with the Secret itself is a *SecretError;
// any other error is trouble of the API.
func (s *Secrets) Get(ctx context.Context, namespace, name string) (Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	var o corev1.Secret
	err := s.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &o)
	wrong := &SecretError{Namespace: namespace, Name: name}
	switch {
	case err == nil:
		return Secret{Namespace: namespace, Name: name, Version: o.ResourceVersion, Type: string(o.Type), data: o.Data}, nil
	case apierrors.IsNotFound(err):
		wrong.Err = ErrSecretMissing
		return Secret{}, wrong
	case apierrors.IsForbidden(err):
		wrong.Err = ErrSecretForbidden
		return Secret{}, wrong
	default:
		return Secret{}, fmt.Errorf("read the Secret %s/%s: %w", namespace, name, err)
	}
}

// Secret is the content of one version of a Secret. It does not show its
// content when it is printed or logged.
type Secret struct {
	Namespace, Name string
	// Version is its resourceVersion.
	Version string
	// Type is its type, such as kubernetes.io/dockerconfigjson.
	Type string
	data map[string][]byte
}

func (s Secret) String() string { return fmt.Sprintf("Secret %s/%s", s.Namespace, s.Name) }

// GoString hides the content too.
func (s Secret) GoString() string { return s.String() }

// LogValue hides the content too.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Value is the value of the first of the keys that is there, as it is. If none
// is, the error is a *SecretError that names the first.
func (s Secret) Value(keys ...string) ([]byte, error) {
	for _, k := range keys {
		if v, ok := s.data[k]; ok {
			return v, nil
		}
	}
	wrong := &SecretError{Namespace: s.Namespace, Name: s.Name, Err: ErrKeyMissing}
	if len(keys) > 0 {
		wrong.Key = keys[0]
	}
	return nil, wrong
}

// Data is all that is in it.
func (s Secret) Data() map[string][]byte { return maps.Clone(s.data) }

// Login is the user name and password of a BMC. White space and control
// characters around each are dropped: a line feed at the end of an encoded
// value is a common slip, and no BMC takes one. What is wrong is a
// *SecretError.
func (s Secret) Login() (user, password string, err error) {
	if user, err = s.trimmed("username"); err != nil {
		return "", "", err
	}
	if password, err = s.trimmed("password"); err != nil {
		return "", "", err
	}
	return user, password, nil
}

func (s Secret) trimmed(key string) (string, error) {
	raw, err := s.Value(key)
	if err != nil {
		return "", err
	}
	text := strings.TrimFunc(string(raw), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	if text == "" {
		return "", &SecretError{Namespace: s.Namespace, Name: s.Name, Key: key, Err: ErrKeyEmpty}
	}
	return text, nil
}
