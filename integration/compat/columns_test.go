package compat_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
)

var rewrite = flag.Bool("update", false, "write the golden files anew")

// golden compares text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); -update writes it anew\n%s", path, diff)
	}
}

// raw is what the API answers to a GET, in the given form.
func raw(t *testing.T, k *lab.Kube, path, accept string) []byte {
	t.Helper()
	c, err := rest.HTTPClientFor(k.Config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, k.Config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s %v\n%s", path, answer.Status, err, text)
	}
	return text
}

// What kubectl get prints comes from the API as a table: one object of each
// kind, with all columns, those for -o wide in brackets.
func TestColumns(t *testing.T) {
	k, _ := guarded(t)
	namespace := k.Namespace(t)
	var text strings.Builder
	for _, o := range samples(namespace) {
		makeWithStatus(t, k.Client, o)
		gvk, err := k.Client.GroupVersionKindFor(o)
		if err != nil {
			t.Fatal(err)
		}
		mapping, err := k.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			t.Fatal(err)
		}
		path := "/apis/metal3.io/v1alpha1/namespaces/" + namespace + "/" + mapping.Resource.Resource
		var table metav1.Table
		if err := json.Unmarshal(raw(t, k, path, "application/json;as=Table;g=meta.k8s.io;v=v1"), &table); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "$ kubectl get %s\n%s\n", mapping.Resource.Resource, printed(table))
	}
	golden(t, "columns.txt", text.String())
}

func printed(table metav1.Table) string {
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	line := func(cells []string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }
	var head []string
	for _, c := range table.ColumnDefinitions {
		name := strings.ToUpper(c.Name)
		if c.Priority > 0 {
			name = "(" + name + ")"
		}
		head = append(head, name)
	}
	line(head)
	for _, row := range table.Rows {
		var cells []string
		for i, cell := range row.Cells {
			switch {
			case cell == nil:
				cell = "" // kubectl prints nothing for what is not there
			case table.ColumnDefinitions[i].Type == "date" || table.ColumnDefinitions[i].Name == "Age":
				cell = "1s"
			}
			cells = append(cells, fmt.Sprint(cell))
		}
		line(cells)
	}
	w.Flush()
	return out.String()
}

// makeWithStatus makes an object, with its status if it has one of its own.
func makeWithStatus(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	filled := o.DeepCopyObject().(client.Object)
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatalf("%T: %v", o, err)
	}
	filled.SetResourceVersion(o.GetResourceVersion())
	switch o.(type) {
	case *v1alpha1.HardwareData, *v1alpha1.FirmwareSchema, *v1alpha1.HostUpdatePolicy, *v1alpha1.HostNetworkAttachment, *v1alpha1.HostDeployPolicy:
		return
	}
	if err := c.Status().Update(t.Context(), filled); err != nil {
		t.Fatalf("status of %T: %v", o, err)
	}
}

// samples is one object of each kind, with the fields that columns show.
func samples(namespace string) []client.Object {
	at := metav1.ObjectMeta{Namespace: namespace, Name: "rack-1"}
	now := metav1.Now()
	condition := func(kind, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: now}}
	}
	h := newHost(func(h *host) {
		h.ObjectMeta = at
		h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Metal3Machine", Namespace: namespace, Name: "worker-7"}
		metav1.SetMetaDataAnnotation(&h.ObjectMeta, v1alpha1.AllowDeletionAnnotation, "")
		h.Status.OperationalStatus, h.Status.ErrorType = v1alpha1.OperationalStatusError, v1alpha1.RegistrationError
		h.Status.Provisioning.State = v1alpha1.StateRegistering
	})
	settings := v1alpha1.HostFirmwareSettings{ObjectMeta: at, Spec: v1alpha1.HostFirmwareSettingsSpec{Settings: v1alpha1.DesiredSettingsMap{"Threads": intstr.FromInt32(2)}}}
	settings.Status.Settings = v1alpha1.SettingsMap{"Threads": "1"}
	subscription := &v1alpha1.BMCEventSubscription{ObjectMeta: at, Spec: v1alpha1.BMCEventSubscriptionSpec{HostName: "rack-1", Destination: "https://192.0.2.90/"}}
	subscription.Status.Error = "failed to create a subscription"
	return []client.Object{
		h,
		&v1alpha1.HardwareData{ObjectMeta: at, Spec: v1alpha1.HardwareDataSpec{HardwareDetails: &v1alpha1.HardwareDetails{Hostname: "rack-1"}}},
		&v1alpha1.PreprovisioningImage{ObjectMeta: at, Status: v1alpha1.PreprovisioningImageStatus{Conditions: condition("Ready", "ImageSuccess")}},
		&settings,
		&v1alpha1.FirmwareSchema{ObjectMeta: at, Spec: v1alpha1.FirmwareSchemaSpec{Schema: map[string]v1alpha1.SettingSchema{"Threads": {AttributeType: "Integer"}}}},
		&v1alpha1.HostFirmwareComponents{ObjectMeta: at, Spec: v1alpha1.HostFirmwareComponentsSpec{Updates: []v1alpha1.FirmwareUpdate{}}},
		subscription,
		&v1alpha1.DataImage{ObjectMeta: at, Spec: v1alpha1.DataImageSpec{URL: "https://192.0.2.80/data.iso"}},
		&v1alpha1.HostUpdatePolicy{ObjectMeta: at, Spec: v1alpha1.HostUpdatePolicySpec{FirmwareUpdates: "onReboot"}},
		&v1alpha1.HostClaim{ObjectMeta: at},
		&v1alpha1.HostDeployPolicy{ObjectMeta: at},
		&v1alpha1.BareMetalSwitch{
			ObjectMeta: at, Spec: v1alpha1.BareMetalSwitchSpec{Address: "192.0.2.20", MACAddress: "00:00:5e:00:53:20", DeviceType: "netmiko_cisco_ios"},
			Status: v1alpha1.BareMetalSwitchStatus{Conditions: condition("Valid", "Reconciled")},
		},
		&v1alpha1.HostNetworkAttachment{ObjectMeta: at, Spec: v1alpha1.HostNetworkAttachmentSpec{Mode: "access", NativeVLAN: 100}},
	}
}

// The words after kubectl get that people have in their fingers.
func TestShortNames(t *testing.T) {
	k, _ := guarded(t)
	for short, kind := range map[string]string{
		"bmh": "BareMetalHost", "bmhost": "BareMetalHost", "hd": "HardwareData", "ppimg": "PreprovisioningImage", "hfs": "HostFirmwareSettings",
		"hfc": "HostFirmwareComponents", "bes": "BMCEventSubscription", "bmcevent": "BMCEventSubscription", "bms": "BareMetalSwitch",
	} {
		if got := kindOf(t, k, short); got != kind {
			t.Errorf("%s is %s, want %s", short, got, kind)
		}
	}
}

func kindOf(t *testing.T, k *lab.Kube, short string) string {
	t.Helper()
	var list metav1.APIResourceList
	if err := json.Unmarshal(raw(t, k, "/apis/metal3.io/v1alpha1", "application/json"), &list); err != nil {
		t.Fatal(err)
	}
	for _, r := range list.APIResources {
		if slices.Contains(r.ShortNames, short) {
			return r.Kind
		}
	}
	return "nothing"
}
