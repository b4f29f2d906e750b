package kube_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/kube/kubetest"
)

// Secrets that no host names take no memory, however many there are.
func TestForeignSecretsAreNotKept(t *testing.T) {
	api := kubetest.New(t)
	user := kubetest.NewUser(t, api.Config(), "lab")
	for i := range 10 {
		name := fmt.Sprintf("host-%d", i)
		o := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: name}}
		o.Spec.BMC.CredentialsName = name
		user.Create(o, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	without := memory(t, api)
	const foreign = 22_000
	api.Fill(foreign, func(i int) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("ns-%d", i%1000), Name: fmt.Sprintf("foreign-%d", i), Labels: map[string]string{"owner": "somebody else"}},
			Data:       map[string][]byte{"x": make([]byte, 4096)},
		}
	})
	if more := memory(t, api) - without; more > 4<<20 {
		t.Errorf("%d foreign Secrets take %d kB", foreign, more>>10)
	}
}

// memory is what a cluster that serves hosts holds, with all of its watches.
func memory(t *testing.T, api *kubetest.Server) int {
	t.Helper()
	before := heap()
	c, err := kube.New(api.Config(), kube.Config{Identity: "a"}, kube.Options{Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	looked := make(chan string, 100)
	go func() { c.Watch(ctx); done <- struct{}{} }()
	go func() {
		_ = c.Serve(ctx, 1, func(_ context.Context, r kube.Ref) (time.Duration, error) {
			looked <- r.Name
			return 0, nil
		})
		done <- struct{}{}
	}()
	for seen := map[string]bool{}; len(seen) < 10; { // it serves once all has been listed
		seen[<-looked] = true
	}
	for i := range 10 {
		if name := fmt.Sprintf("host-%d", i); c.KnownSecret("lab", name) == "" {
			t.Errorf("the Secret of %s is not known", name)
		}
	}
	held := heap() - before
	cancel()
	<-done
	<-done
	runtime.KeepAlive(c)
	return held
}

// heap is the memory in use after all that can be freed is.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// A Secret that was seen right before its host is claimed without being read.
func TestASecretThatWasSeenIsNotRead(t *testing.T) {
	api := kubetest.New(t)
	user := kubetest.NewUser(t, api.Config(), "lab")
	reads := 0
	access := api.Config()
	access.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/secrets/mine") {
				reads++
			}
			return next.RoundTrip(r)
		})
	})
	c, err := kube.New(access, kube.Config{Identity: "a"}, kube.Options{Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	user.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mine"}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, 2)
	claimed := make(chan string, 16)
	go func() { c.Watch(ctx); done <- struct{}{} }()
	go func() {
		_ = c.Serve(ctx, 1, func(ctx context.Context, r kube.Ref) (time.Duration, error) {
			o := c.Hosts.Get(r.UID)
			if o.Name == "first" {
				claimed <- ""
				return 0, nil
			}
			version, err := c.ClaimSecret(ctx, o, "mine")
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			claimed <- version
			return 0, nil
		})
		done <- struct{}{}
	}()
	user.Create(&v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: "first"}})
	<-claimed // so it serves, and has seen all Secrets
	o := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: "later"}}
	o.Spec.BMC.CredentialsName = "mine"
	user.Create(o)
	version := <-claimed
	cancel()
	<-done
	<-done
	secret := &corev1.Secret{}
	api.Object("secrets", "lab", "mine", secret)
	if version == "" || version != secret.ResourceVersion || len(secret.OwnerReferences) != 1 {
		t.Errorf("version %q is claimed, the Secret is %+v", version, secret.ObjectMeta)
	}
	if reads > 0 {
		t.Errorf("the Secret was read %d times", reads)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
