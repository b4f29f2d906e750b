package lab

import (
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/programs"
)

// kubePatience is how long an API may take to be ready: it takes three seconds
// when nobody else is at work.
const kubePatience = 2 * time.Minute

// A Kube is a Kubernetes API with our CRDs in it.
type Kube struct {
	Config     *rest.Config // the administrator's
	Kubeconfig string       // path; of the same
	Client     client.Client

	process *Process
}

// StartKube runs an API of the test's own, with its state in dir. After Stop
// or Kill, another one in the same dir goes on from there under the same
// kubeconfig. Args are further flags of kubeapi.
func (l *Lab) StartKube(tb testing.TB, dir string, args ...string) *Kube {
	tb.Helper()
	k, err := l.startKube(dir, nextLog(tb, programs.Kubeapi), args...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		k.process.end()
		k.process.report(tb)
	})
	return k
}

func (l *Lab) startKube(dir, log string, args ...string) (*Kube, error) {
	root, err := programs.Root(".")
	if err != nil {
		return nil, err
	}
	crds := filepath.Join(root, "deploy", "crds")
	out, in := io.Pipe()
	process, err := start(l.Program(programs.Kubeapi), log, nil, in,
		append([]string{"-dir", dir, "-apply", crds, "-stop-at-eof"}, args...)...)
	if err != nil {
		return nil, err
	}
	go func() {
		<-process.Done()
		_ = in.Close()
	}()
	kubeconfig, err := process.awaitLine(out, "ready KUBECONFIG=", kubePatience)
	if err != nil {
		return nil, err
	}
	k := &Kube{Kubeconfig: kubeconfig, process: process}
	if k.Config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return nil, err
	}
	k.Config.QPS, k.Config.Burst = -1, -1
	k.Client, err = client.New(k.Config, client.Options{Scheme: Scheme()})
	return k, err
}

// Scheme has the kinds that tests write: Kubernetes' own, CRDs and ours.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two types under one name: the program is wrong
		}
	}
	return s
}

// Process is the API's process.
func (k *Kube) Process() *Process { return k.process }

// Namespace makes a namespace for the test, and deletes it afterwards.
func (k *Kube) Namespace(tb testing.TB) string {
	tb.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := k.Client.Create(tb.Context(), namespace); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := cleanupContext(tb)
		defer cancel()
		if err := k.Client.Delete(ctx, namespace); err != nil {
			tb.Logf("delete namespace %s: %v", namespace.Name, err)
		}
	})
	return namespace.Name
}

// As is a client with the rights of another user, by impersonation.
func (k *Kube) As(tb testing.TB, user string, groups ...string) client.Client {
	tb.Helper()
	config := rest.CopyConfig(k.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return newClient(tb, config)
}

// WithToken is a client that shows another user's token.
func (k *Kube) WithToken(tb testing.TB, token string) client.Client {
	tb.Helper()
	config := rest.CopyConfig(k.Config)
	config.BearerToken = token
	return newClient(tb, config)
}

func newClient(tb testing.TB, config *rest.Config) client.Client {
	tb.Helper()
	c, err := client.New(config, client.Options{Scheme: Scheme()})
	if err != nil {
		tb.Fatal(fmt.Errorf("make a client: %w", err))
	}
	return c
}
