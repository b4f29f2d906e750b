package kube_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube"
	"github.com/metalbus/metalbus/pkg/kube/kubetest"
)

// watched is a cluster that has seen the host lab/host-a.
func watched(t *testing.T, api *kubetest.Server) (*kube.Cluster, *v1alpha1.BareMetalHost) {
	t.Helper()
	kubetest.NewUser(t, api.Config(), "lab").Create(&v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: "host-a"}})
	c, err := kube.New(api.Config(), kube.Config{Identity: "a"}, kube.Options{Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { c.Watch(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	if err := c.Hosts.Synced(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, c.Hosts.All()[0]
}

func TestDroppedFieldsAreNamed(t *testing.T) {
	api := kubetest.New(t)
	api.Drop("status.hardware")
	api.Drop("status.provisioning.raid")
	c, o := watched(t, api)
	status := v1alpha1.BareMetalHostStatus{
		HardwareDetails: &v1alpha1.HardwareDetails{Hostname: "a"},
		Provisioning:    v1alpha1.ProvisionStatus{State: v1alpha1.StatePreparing, RAID: &v1alpha1.RAIDConfig{}},
	}
	w, err := c.WriteStatus(t.Context(), o, status)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"status.hardware", "status.provisioning.raid"}, w.Dropped); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsOfTheAPIAreOurs(t *testing.T) {
	api := kubetest.New(t)
	c, o := watched(t, api)
	api.Terminate("lab")
	if err := c.PutHardware(t.Context(), o, &v1alpha1.HardwareDetails{}); !errors.Is(err, kube.ErrTerminating) {
		t.Errorf("in a namespace that goes: %v", err)
	}
	for code, want := range map[int]error{409: kube.ErrConflict, 404: kube.ErrGone} {
		api.Fault(func(kubetest.Write) int { return code })
		if _, err := c.AddFinalizer(t.Context(), o); !errors.Is(err, want) {
			t.Errorf("after %d: %v", code, err)
		}
	}
	api.Fault(nil)
	if err := c.ReleaseSecret(t.Context(), o, "gone"); err != nil {
		t.Errorf("releasing what is gone: %v", err)
	}
}

func TestALongStatusAnnotationIsKeptAsItsDigest(t *testing.T) {
	api := kubetest.New(t)
	c, o := watched(t, api)
	text := `{"operationalStatus":"OK","errorMessage":"","poweredOn":true,"errorCount":0,"provisioningFailCount":0,"provisioning":{"state":"available","ID":"n"}}`
	o, err := c.EditHost(t.Context(), o, kube.Edit{Set: map[string]string{v1alpha1.StatusAnnotation: text}})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Hosts.Get(string(o.UID)).Annotations[v1alpha1.StatusAnnotation]; got != text {
		t.Errorf("it is needed for a restore, and is %q", got)
	}
	w, err := c.WriteStatus(t.Context(), o, v1alpha1.BareMetalHostStatus{Provisioning: v1alpha1.ProvisionStatus{State: v1alpha1.StateAvailable}})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Hosts.Get(string(w.Host.UID)).Annotations[v1alpha1.StatusAnnotation]; got != kube.Digest(text) {
		t.Errorf("it is not needed, and is %q", got)
	}
}
