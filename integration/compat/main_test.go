package compat_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/kube/webhook"
)

var shared lab.Lab

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// patience is for what happens in its own time.
const patience = time.Minute

// guarded is the API that the tests share, with a webhook that it asks. hosts
// are those that the webhook has seen.
func guarded(t *testing.T) (k *lab.Kube, hosts *kube.Hosts) {
	t.Helper()
	k = shared.Kube(t)
	webhookOnce.Do(func() { seenHosts = serveWebhook(t, k) })
	if seenHosts == nil {
		t.Fatal("the webhook could not be started")
	}
	return k, seenHosts
}

var (
	webhookOnce sync.Once
	seenHosts   *kube.Hosts
)

// serveWebhook runs a webhook for as long as the tests run.
func serveWebhook(t *testing.T, k *lab.Kube) *kube.Hosts {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	port := lab.FreePort(t)
	cluster := newCluster(t, k.Config)
	server := newWebhook(t, cluster, webhook.Config{
		Port: port, URL: fmt.Sprint("https://127.0.0.1:", port), Namespace: "default", Secret: "webhook", GuardDeletion: true,
	})
	go cluster.Watch(ctx)
	go func() { _ = server.Start(ctx) }()
	lab.Eventually(t, patience, "be asked before an object is stored", func() error {
		wrong := &v1alpha1.HostClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "wrong-"}}
		wrong.Spec.Image = &v1alpha1.Image{URL: "file:///x"}
		err := k.Client.Create(ctx, wrong, client.DryRunAll)
		if err == nil {
			return errors.New("it is stored")
		}
		if apierrors.IsInvalid(err) {
			return nil
		}
		return err
	})
	return cluster.Hosts
}

func newCluster(t *testing.T, config *rest.Config) *kube.Cluster {
	t.Helper()
	cluster, err := kube.New(config, kube.Config{Identity: "test"}, kube.Options{
		Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

func newWebhook(t *testing.T, cluster *kube.Cluster, cfg webhook.Config) *webhook.Server {
	t.Helper()
	cfg.TLSMinVersion, cfg.TLSMaxVersion = "TLS12", "TLS13"
	server, err := webhook.New(cfg, cluster, webhook.Options{
		Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// newHost is a host in which nothing is wrong, with changes.
func newHost(changes ...func(*v1alpha1.BareMetalHost)) *v1alpha1.BareMetalHost {
	h := &v1alpha1.BareMetalHost{Spec: v1alpha1.BareMetalHostSpec{
		Online:         true,
		BootMACAddress: "00:00:5e:00:53:01",
		BMC:            v1alpha1.BMCDetails{Address: "redfish-virtualmedia+https://192.0.2.10/redfish/v1/Systems/1", CredentialsName: "host-bmc"},
	}}
	for _, change := range changes {
		change(h)
	}
	return h
}

type host = v1alpha1.BareMetalHost

func bmc(address string) func(*host)         { return func(h *host) { h.Spec.BMC.Address = address } }
func bootMAC(mac string) func(*host)         { return func(h *host) { h.Spec.BootMACAddress = mac } }
func named(name string) func(*host)          { return func(h *host) { h.Name = name } }
func image(i v1alpha1.Image) func(*host)     { return func(h *host) { h.Spec.Image = &i } }
func raid(r v1alpha1.RAIDConfig) func(*host) { return func(h *host) { h.Spec.RAID = &r } }

func hints(r v1alpha1.RootDeviceHints) func(*host) {
	return func(h *host) { h.Spec.RootDeviceHints = &r }
}

func inspection(m v1alpha1.InspectionMode) func(*host) {
	return func(h *host) { h.Spec.InspectionMode = m }
}

func nics(n ...v1alpha1.NetworkInterface) func(*host) {
	return func(h *host) { h.Spec.NetworkInterfaces = n }
}

// annotated puts an annotation on a host, key and value in turn.
func annotated(pairs ...string) func(*host) {
	return func(h *host) {
		for i := 0; i < len(pairs); i += 2 {
			metav1.SetMetaDataAnnotation(&h.ObjectMeta, pairs[i], pairs[i+1])
		}
	}
}

// elsewhere is a Secret of another namespace, here one of any.
func elsewhere() *corev1.SecretReference {
	return &corev1.SecretReference{Name: "admin-token", Namespace: "kube-system"}
}

func here() *corev1.SecretReference { return &corev1.SecretReference{Name: "data"} }
