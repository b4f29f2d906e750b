package webhook

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldOwner owns what is applied.
const fieldOwner = "metalbus"

// newClient knows the two kinds that the authority writes, and asks the API for
// none.
func newClient(access *rest.Config) (client.WithWatch, error) {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	m.Add(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), meta.RESTScopeRoot)
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(access, client.Options{Scheme: scheme, Mapper: m, FieldOwner: fieldOwner})
	if err != nil {
		return nil, fmt.Errorf("make a Kubernetes client for the webhook: %w", err)
	}
	return c, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, admissionregistrationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("collect the kinds: %w", err)
		}
	}
	return scheme, nil
}
