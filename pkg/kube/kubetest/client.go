package kubetest

import (
	"log/slog"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// Client is a user's client of an API that has the kinds of this package.
func Client(tb testing.TB, access *rest.Config) client.Client {
	tb.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			tb.Fatal(err)
		}
	}
	m := apimeta.NewDefaultRESTMapper(nil)
	for plural, k := range kinds() {
		gv, err := schema.ParseGroupVersion(k.version)
		if err != nil {
			tb.Fatal(err)
		}
		m.AddSpecific(gv.WithKind(k.kind), gv.WithResource(plural), gv.WithResource(plural), apimeta.RESTScopeNamespace)
	}
	access = rest.CopyConfig(access)
	access.QPS = -1
	c, err := client.New(access, client.Options{Scheme: s, Mapper: m, Log: logr.FromSlogHandler(slog.DiscardHandler)})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}
