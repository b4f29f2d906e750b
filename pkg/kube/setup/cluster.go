package setup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// fieldManager owns what is applied.
const fieldManager = "metalbus-setup"

// Cluster is a Kubernetes API. Its methods are safe for concurrent use.
type Cluster struct {
	client client.Client
}

// Open reaches the API that a kubeconfig file names. It makes one request, for
// what kinds there are, so it tells at once if nobody answers.
func Open(ctx context.Context, kubeconfig string) (*Cluster, error) {
	access, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	access.QPS, access.UserAgent = -1, fieldManager
	c, err := client.New(access, client.Options{Scheme: Scheme()})
	if err != nil {
		return nil, fmt.Errorf("make a Kubernetes client from %s: %w", kubeconfig, err)
	}
	cluster := New(c)
	if err := cluster.answers(ctx); err != nil {
		return nil, fmt.Errorf("reach Kubernetes by %s: %w", kubeconfig, err)
	}
	return cluster, nil
}

// New is a Cluster over a client whose scheme is Scheme.
func New(c client.Client) *Cluster { return &Cluster{client: c} }

// Scheme has the kinds that the package reads and writes.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two types under one name: the program is wrong
		}
	}
	return s
}

// answers fails if the API is not there, or does not know who we are.
func (c *Cluster) answers(ctx context.Context) error {
	return c.client.List(ctx, &corev1.NamespaceList{}, client.Limit(1))
}

// EnsureNamespace makes a namespace if it is not there.
func (c *Cluster) EnsureNamespace(ctx context.Context, name string) error {
	var n corev1.Namespace
	err := c.client.Get(ctx, client.ObjectKey{Name: name}, &n)
	if apierrors.IsNotFound(err) {
		n.Name = name
		err = c.client.Create(ctx, &n)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	return nil
}
