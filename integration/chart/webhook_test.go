package chart_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/metalbus/metalbus/pkg/kube/webhook"
)

// What the chart has the API ask is what the projector serves, for the watched
// namespaces.
func TestTheChartAsksWhatIsServed(t *testing.T) {
	const home = "metalbus-system"
	all, guard := webhook.Configurations(webhook.Door{Service: "webhook-service", Namespace: home})
	some := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"},
	}}}
	for name, tt := range map[string]struct {
		values []string
		watch  *metav1.LabelSelector
		want   []*admissionregistrationv1.ValidatingWebhookConfiguration
	}{
		"none":                            {[]string{"webhook.mode=none", "webhook.guardHostDeletion=true"}, nil, nil},
		"a certificate of its own":        {nil, nil, []*admissionregistrationv1.ValidatingWebhookConfiguration{all}},
		"a certificate of cert-manager":   {[]string{"webhook.mode=certManager"}, nil, []*admissionregistrationv1.ValidatingWebhookConfiguration{all}},
		"deletions too":                   {[]string{"webhook.guardHostDeletion=true"}, nil, []*admissionregistrationv1.ValidatingWebhookConfiguration{all, guard}},
		"deletions in some namespaces":    {[]string{"webhook.guardHostDeletion=true", "watchNamespaces={a,b}"}, some, []*admissionregistrationv1.ValidatingWebhookConfiguration{all, guard}},
		"some namespaces, cert-manager's": {[]string{"webhook.mode=certManager", "watchNamespaces={a,b}"}, some, []*admissionregistrationv1.ValidatingWebhookConfiguration{all}},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string][]admissionregistrationv1.ValidatingWebhook{}
			for _, c := range tt.want {
				for _, w := range c.Webhooks {
					w.NamespaceSelector = tt.watch
					want[c.Name] = append(want[c.Name], w)
				}
			}
			if diff := cmp.Diff(want, asked(t, render(t, home, tt.values))); diff != "" {
				t.Errorf("(-served +installed)\n%s", diff)
			}
		})
	}
}

// asked are the webhooks of all configurations, by the configuration's name.
func asked(t *testing.T, objects []*unstructured.Unstructured) map[string][]admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	found := map[string][]admissionregistrationv1.ValidatingWebhook{}
	for _, o := range objects {
		if o.GetKind() != "ValidatingWebhookConfiguration" {
			continue
		}
		c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, c, true); err != nil {
			t.Fatal(err)
		}
		found[c.Name] = c.Webhooks
	}
	return found
}
