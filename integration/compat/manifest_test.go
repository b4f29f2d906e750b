package compat_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/integration/internal/programs"
	"github.com/metalbus/metalbus/pkg/kube/webhook"
)

const home = "metalbus-system"

// What is installed is enough: with its rights and nothing else two replicas
// agree on a certificate, and the API is told whom to trust. What the webhook
// can not be asked about is not stored.
func TestInstalledWebhook(t *testing.T) {
	k := shared.StartKube(t, t.TempDir())
	if err := k.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}}); err != nil {
		t.Fatal(err)
	}
	apply(t, k.Client, "self-made.yaml", "guard-deletion.yaml")
	config := rest.CopyConfig(k.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + home + ":projector"}

	var addresses []string
	for range 2 {
		port := lab.FreePort(t)
		server := newWebhook(t, newCluster(t, config), webhook.Config{
			Port: port, Service: "webhook-service", Namespace: home, Secret: "metalbus-webhook-certificate",
		})
		run(t, server)
		addresses = append(addresses, fmt.Sprint("127.0.0.1:", port))
	}
	shown := map[string]bool{}
	for _, address := range addresses {
		lab.Eventually(t, patience, "show a certificate that the API trusts", func() error {
			leaf, err := trusted(t, k.Client, address)
			if err == nil {
				shown[string(leaf)] = true
			}
			return err
		})
	}
	if len(shown) != 1 {
		t.Errorf("the replicas show %d certificates", len(shown))
	}

	// No Service leads anywhere in this API, so the webhook can not be asked.
	err := k.Client.Create(t.Context(), newHost(named("a"), func(h *host) { h.Namespace = "default" }))
	if err == nil || !strings.Contains(err.Error(), `failed calling webhook "baremetalhost.metal3.io"`) {
		t.Errorf("with a webhook that can not be asked: %v", err)
	}
}

// run serves a webhook until the test ends.
func run(t *testing.T, server *webhook.Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	lab.Eventually(t, patience, "be ready", func() error { return server.Ready(ctx) })
}

// trusted is the certificate that is shown at an address, if the API trusts it
// for every webhook that it has been told of.
func trusted(t *testing.T, c client.Client, address string) ([]byte, error) {
	t.Helper()
	var list admissionregistrationv1.ValidatingWebhookConfigurationList
	if err := c.List(t.Context(), &list); err != nil {
		return nil, err
	}
	if len(list.Items) != 2 {
		return nil, fmt.Errorf("%d configurations", len(list.Items))
	}
	var leaf []byte
	for _, configuration := range list.Items {
		for _, w := range configuration.Webhooks {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(w.ClientConfig.CABundle)
			dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: w.ClientConfig.Service.Name + "." + w.ClientConfig.Service.Namespace + ".svc"}}
			connection, err := dialer.DialContext(t.Context(), "tcp", address)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.Name, err)
			}
			leaf = connection.(*tls.Conn).ConnectionState().PeerCertificates[0].Raw
			connection.Close()
		}
	}
	return leaf, nil
}

// apply makes the objects of files in deploy/webhook.
func apply(t *testing.T, c client.Client, files ...string) {
	t.Helper()
	root, err := programs.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, "deploy", "webhook", file))
		if err != nil {
			t.Fatal(err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			o := &unstructured.Unstructured{}
			err := decoder.Decode(o)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if err := c.Create(t.Context(), o); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
	}
}
