package apiserver_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
)

// patience is for what the API does in its own time.
const patience = 30 * time.Second

func TestRulesOfACRDAreInForce(t *testing.T) {
	kube := shared.Kube(t)
	namespace := kube.Namespace(t)
	good := host(namespace, 1)
	if err := kube.Client.Create(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	bad := host(namespace, 2)
	bad.Spec.BootMode = "floppy"
	if err := kube.Client.Create(t.Context(), bad); !apierrors.IsInvalid(err) {
		t.Errorf("a boot mode that is none: %v, want invalid", err)
	}
}

func TestWebhooksAreAsked(t *testing.T) {
	kube := shared.Kube(t)
	namespace := kube.Namespace(t)
	hook := httptest.NewTLSServer(http.HandlerFunc(refuse))
	t.Cleanup(hook.Close)
	configuration := webhook(hook, namespace)
	if err := kube.Client.Create(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := kube.Client.Delete(ctx, configuration); err != nil {
			t.Error(err)
		}
	})
	n := 0
	lab.Eventually(t, patience, "be refused by the webhook", func() error {
		n++
		err := kube.Client.Create(t.Context(), configMap(namespace, fmt.Sprint("made-", n)))
		switch {
		case err == nil:
			return errors.New("it was not")
		case strings.Contains(err.Error(), "not today"):
			return nil
		default:
			return err
		}
	})
}

func refuse(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "not today"}}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

func webhook(server *httptest.Server, namespace string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	none := admissionregistrationv1.SideEffectClassNone
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "hook.example.org",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      &server.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			SideEffects:             &none,
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

func TestANamespaceGoesWithAllThatIsInIt(t *testing.T) {
	kube := shared.Kube(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "goes-"}}
	if err := kube.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	h := host(namespace.Name, 1)
	if err := kube.Client.Create(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if err := kube.Client.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	for _, object := range []client.Object{h, namespace} {
		gone(t, kube, object)
	}
}

func TestAnObjectGoesWithItsOwner(t *testing.T) {
	kube := shared.Kube(t)
	namespace := kube.Namespace(t)
	owner := host(namespace, 1)
	if err := kube.Client.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	owned := &v1alpha1.HardwareData{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: owner.Name, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "BareMetalHost", Name: owner.Name, UID: owner.UID,
	}}}}
	if err := kube.Client.Create(t.Context(), owned); err != nil {
		t.Fatal(err)
	}
	if err := kube.Client.Delete(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	gone(t, kube, owned)
}

func gone(t *testing.T, kube *lab.Kube, object client.Object) {
	t.Helper()
	lab.Eventually(t, patience, fmt.Sprintf("%T %s is gone", object, object.GetName()), func() error {
		err := kube.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		switch {
		case err == nil:
			return errors.New("it is there")
		case apierrors.IsNotFound(err):
			return nil
		default:
			return err
		}
	})
}

// What a chart brings is checked by a dry run, and nothing is stored by it.
func TestADryRunChecksWhatAChartBrings(t *testing.T) {
	kube := shared.Kube(t)
	namespace := kube.Namespace(t)
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "part"}
	labels := map[string]string{"app": "part"}
	pods := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "part", Image: "part:1"}}},
	}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	once := *pods.DeepCopy()
	once.Spec.RestartPolicy = corev1.RestartPolicyNever
	for _, object := range []client.Object{
		&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: pods}},
		&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: pods, ServiceName: "part"}},
		&batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: once}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}},
		&corev1.ServiceAccount{ObjectMeta: meta},
		&corev1.Secret{ObjectMeta: meta},
		&networkingv1.NetworkPolicy{ObjectMeta: meta, Spec: networkingv1.NetworkPolicySpec{PodSelector: *selector}},
		&policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector, MinAvailable: &intstr.IntOrString{IntVal: 1}}},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}},
	} {
		t.Run(fmt.Sprintf("%T", object), func(t *testing.T) {
			if err := kube.Client.Create(t.Context(), object, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			if err := kube.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
				t.Errorf("after a dry run: %v, want not found", err)
			}
		})
	}
	wrong := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}, Template: pods}}
	if err := kube.Client.Create(t.Context(), wrong, client.DryRunAll); !apierrors.IsInvalid(err) {
		t.Errorf("a Deployment that does not select its own pods: %v, want invalid", err)
	}
}

func TestLeasesAndEventsAreKept(t *testing.T) {
	kube := shared.Kube(t)
	namespace := kube.Namespace(t)
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "one"}
	for _, object := range []client.Object{
		&coordinationv1.Lease{ObjectMeta: meta},
		&eventsv1.Event{
			ObjectMeta: meta, EventTime: metav1.NowMicro(), Type: corev1.EventTypeNormal, Reason: "Registered", Action: "Register",
			ReportingController: "metalbus.io/projector", ReportingInstance: "one",
			Regarding: corev1.ObjectReference{Kind: "BareMetalHost", APIVersion: v1alpha1.GroupVersion.String(), Namespace: namespace, Name: "host"},
		},
	} {
		if err := kube.Client.Create(t.Context(), object); err != nil {
			t.Errorf("%T: %v", object, err)
		}
	}
	if err := kube.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "one"}, &corev1.Event{}); err != nil {
		t.Errorf("the event by its older name: %v", err)
	}
}
