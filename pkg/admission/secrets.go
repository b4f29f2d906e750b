package admission

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// validateHostSecrets refuses Secrets of other namespaces: whoever may only
// make hosts here must not get at them by way of a machine.
func validateHostSecrets(host *v1alpha1.BareMetalHost, spec *field.Path) field.ErrorList {
	return slices.Concat(
		validateSecretNamespace(host.Spec.UserData, host.Namespace, spec, "userData"),
		validateSecretNamespace(host.Spec.NetworkData, host.Namespace, spec, "networkData"),
		validateSecretNamespace(host.Spec.MetaData, host.Namespace, spec, "metaData"),
	)
}

// validateSecretNamespace refuses a Secret of another namespace than the
// object's own.
func validateSecretNamespace(ref *corev1.SecretReference, namespace string, parent *field.Path, name string) field.ErrorList {
	if ref == nil || ref.Namespace == "" || ref.Namespace == namespace {
		return nil
	}
	return field.ErrorList{field.Forbidden(parent.Child(name, "namespace"), fmt.Sprintf(
		"%s: cross-namespace Secret references are not allowed; put the Secret into namespace %s and leave namespace empty", name, namespace))}
}
