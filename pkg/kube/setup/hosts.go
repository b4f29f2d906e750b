package setup

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Hosts are the hosts of a namespace, or of all for "", as Kubernetes shows them.
func (c *Cluster) Hosts(ctx context.Context, namespace string) ([]v1alpha1.BareMetalHost, error) {
	var list v1alpha1.BareMetalHostList
	if err := c.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list hosts: %w", err)
	}
	return list.Items, nil
}

// Host is one host as Kubernetes shows it; nil if there is none of that name.
func (c *Cluster) Host(ctx context.Context, namespace, name string) (*v1alpha1.BareMetalHost, error) {
	var h v1alpha1.BareMetalHost
	err := c.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &h)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no such host is an answer, not an error
	}
	if err != nil {
		return nil, fmt.Errorf("read host %s/%s: %w", namespace, name, err)
	}
	return &h, nil
}
