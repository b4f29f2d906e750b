package webhook

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// cluster is an API that holds the configurations as they are installed.
func cluster(t *testing.T, objects ...client.Object) *fake.ClientBuilder {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, admissionregistrationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
}

func installed() []client.Object {
	all, guard := Configurations(Door{Service: defaultService, Namespace: "metalbus-system"})
	all.Webhooks = append(all.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: "somebody.else"})
	return []client.Object{all, guard}
}

func replica(c client.WithWatch, now time.Time) *authority {
	return &authority{
		cfg:    Config{Service: defaultService, Namespace: "metalbus-system", Secret: defaultSecret},
		client: c, log: slog.New(slog.DiscardHandler), now: func() time.Time { return now },
	}
}

// bundles are the authorities that the API would trust, by webhook.
func bundles(t *testing.T, c client.Client) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	var list admissionregistrationv1.ValidatingWebhookConfigurationList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for _, configuration := range list.Items {
		for _, w := range configuration.Webhooks {
			found[w.Name] = w.ClientConfig.CABundle
		}
	}
	return found
}

func TestReplicasAgree(t *testing.T) {
	t.Parallel()
	c := cluster(t, installed()...).Build()
	leaves := make([][]byte, 6)
	var all sync.WaitGroup
	for i := range leaves {
		all.Go(func() {
			shown, err := replica(c, birth).fetch(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			leaves[i] = shown.Leaf.Raw
		})
	}
	all.Wait()
	for _, leaf := range leaves {
		if !bytes.Equal(leaf, leaves[0]) {
			t.Fatal("two replicas show different certificates")
		}
	}
	var secret corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "metalbus-system", Name: defaultSecret}, &secret); err != nil {
		t.Fatal(err)
	}
	for name, bundle := range bundles(t, c) {
		want := secret.Data[authorityKey]
		if name == "somebody.else" {
			want = nil
		}
		if !bytes.Equal(bundle, want) {
			t.Errorf("the authority of %s is %q, want that of the Secret", name, bundle)
		}
	}
}

func TestWhatIsThereIsUsed(t *testing.T) {
	t.Parallel()
	c := cluster(t, installed()...).Build()
	first, err := replica(c, birth).fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	writes := 0
	quiet := interceptor.NewClient(c, interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			writes++
			return nil
		},
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			writes++
			return nil
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			writes++
			return nil
		},
	})
	again, err := replica(quiet, birth.Add(day)).fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Leaf.Raw, again.Leaf.Raw) || writes > 0 {
		t.Errorf("%d writes though nothing was to be done", writes)
	}
}

func TestUselessSecretIsReplaced(t *testing.T) {
	t.Parallel()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "metalbus-system", Name: defaultSecret}, Data: map[string][]byte{"tls.crt": []byte("x")}}
	c := cluster(t, append(installed(), secret)...).Build()
	shown, err := replica(c, birth).fetch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k, err := parseKeys(secretData(t, c))
	if err != nil || !k.serving.Leaf.Equal(shown.Leaf) {
		t.Errorf("the Secret does not hold what is shown: %v", err)
	}
}

func secretData(t *testing.T, c client.Client) map[string][]byte {
	t.Helper()
	var secret corev1.Secret
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "metalbus-system", Name: defaultSecret}, &secret); err != nil {
		t.Fatal(err)
	}
	return secret.Data
}

// Whoever installs the configuration anew leaves no authority in it. It comes
// back without waiting.
func TestConfigurationIsWatched(t *testing.T) {
	t.Parallel()
	c := cluster(t, installed()...).Build()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changed := make(chan struct{}, 100)
	a := replica(c, birth)
	var all sync.WaitGroup
	all.Go(func() { a.watch(ctx, func() { changed <- struct{}{} }) })
	anew, _ := Configurations(Door{Service: defaultService, Namespace: "metalbus-system"})
	deadline := time.After(30 * time.Second)
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for told := false; !told; { // until the watch has begun and tells
		if err := c.Delete(ctx, anew); err != nil {
			t.Fatal(err)
		}
		anew.ResourceVersion = ""
		if err := c.Create(ctx, anew); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
			told = true
		case <-ticks.C:
		case <-deadline:
			t.Fatal("nobody tells of it")
		}
	}
	if _, err := a.fetch(ctx); err != nil {
		t.Fatal(err)
	}
	for name, bundle := range bundles(t, c) {
		if len(bundle) == 0 {
			t.Errorf("%s has no authority", name)
		}
	}
	cancel()
	all.Wait()
}

func TestWhatStandsInTheWay(t *testing.T) {
	t.Parallel()
	fromCertManager := installed()
	fromCertManager[0].SetAnnotations(map[string]string{injectAnnotation: "metalbus-system/webhook"})
	denied := apierrors.NewForbidden(corev1.Resource("secrets"), defaultSecret, errors.New("no"))
	for name, tt := range map[string]struct {
		objects []client.Object
		funcs   interceptor.Funcs
		says    []string // none: it is all right
	}{
		"nothing is installed":            {},
		"cert-manager has its hand in it": {objects: fromCertManager, says: []string{ConfigurationName, "webhook-cert-dir"}},
		"the Secret may not be read": {objects: installed(), says: []string{"read the Secret metalbus-system/" + defaultSecret}, funcs: interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return denied
			},
		}},
		"the Secret may not be written": {objects: installed(), says: []string{"write the Secret metalbus-system/" + defaultSecret}, funcs: interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return denied },
		}},
		"the configuration may not be written": {objects: installed(), says: []string{"patch the configuration " + ConfigurationName, GuardName}, funcs: interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return denied
			},
		}},
		"somebody else is always faster": {objects: installed(), says: []string{"write the Secret"}, funcs: interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				return apierrors.NewAlreadyExists(corev1.Resource("secrets"), defaultSecret)
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown, err := replica(cluster(t, tt.objects...).WithInterceptorFuncs(tt.funcs).Build(), birth).fetch(t.Context())
			if len(tt.says) == 0 {
				if err != nil || shown == nil {
					t.Errorf("%v", err)
				}
				return
			}
			if err == nil || slices.ContainsFunc(tt.says, func(says string) bool { return !strings.Contains(err.Error(), says) }) {
				t.Errorf("got %v, want it to say %q", err, tt.says)
			}
		})
	}
}

func TestWebhookOfALaptopIsInstalled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		guard bool
		want  []string
	}{
		"without the guard": {false, []string{ConfigurationName}},
		"with the guard":    {true, []string{GuardName, ConfigurationName}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cluster(t).Build()
			a := replica(c, birth)
			a.cfg.URL, a.cfg.GuardDeletion = "https://127.0.0.1:9443", tt.guard
			for range 2 {
				if _, err := a.fetch(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, reachable(t, c)); diff != "" {
				t.Errorf("configurations (-want +got)\n%s", diff)
			}
		})
	}
}

// reachable are the configurations whose webhooks all have a URL and an
// authority.
func reachable(t *testing.T, c client.Client) []string {
	t.Helper()
	var list admissionregistrationv1.ValidatingWebhookConfigurationList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, configuration := range list.Items {
		lost := slices.ContainsFunc(configuration.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
			return w.ClientConfig.URL == nil || len(w.ClientConfig.CABundle) == 0
		})
		if !lost {
			names = append(names, configuration.Name)
		}
	}
	return names
}
