package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// The names of the webhook's configurations.
const (
	// ConfigurationName is the one that is always there.
	ConfigurationName = "validating-webhook-configuration"
	// GuardName is the one that asks before a host is deleted.
	GuardName = "metalbus-host-deletion-guard"
)

// injectAnnotation has cert-manager write the authority.
const injectAnnotation = "cert-manager.io/inject-ca-from"

// Door is how the Kubernetes API reaches the webhook: by a Service in a
// namespace, or by a URL.
type Door struct{ Service, Namespace, URL string }

// Configurations tell the Kubernetes API what to ask the webhook, and to refuse
// what can not be asked about, unless it would only be warned of. The second is
// for the guard of deletions alone. A webhook that is reached by URL is one of a
// laptop, which comes and goes: what it can not be asked about is stored.
func Configurations(d Door) (all, guard *admissionregistrationv1.ValidatingWebhookConfiguration) {
	all, guard = &admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	all.Name, guard.Name = ConfigurationName, GuardName
	for _, h := range hooks(nil, false) {
		all.Webhooks = append(all.Webhooks, d.webhook(h.name(), h, h.operations))
		if h.kind == "BareMetalHost" {
			guard.Webhooks = append(guard.Webhooks, d.webhook("deletion."+h.name(), h, []admissionv1.Operation{admissionv1.Delete}))
		}
	}
	for _, c := range []*admissionregistrationv1.ValidatingWebhookConfiguration{all, guard} {
		c.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"))
	}
	return all, guard
}

func (d Door) webhook(name string, h hook, operations []admissionv1.Operation) admissionregistrationv1.ValidatingWebhook {
	policy, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	if h.warns || d.URL != "" {
		policy = admissionregistrationv1.Ignore
	}
	w := admissionregistrationv1.ValidatingWebhook{
		Name: name, FailurePolicy: &policy, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		Rules: []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{
			APIGroups: []string{v1alpha1.GroupVersion.Group}, APIVersions: []string{v1alpha1.GroupVersion.Version}, Resources: []string{h.plural},
		}}},
	}
	for _, o := range operations {
		w.Rules[0].Operations = append(w.Rules[0].Operations, admissionregistrationv1.OperationType(o))
	}
	path := h.path()
	if d.URL == "" {
		w.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: d.Namespace, Name: d.Service, Path: &path}
		return w
	}
	url := strings.TrimSuffix(d.URL, "/") + path
	w.ClientConfig.URL = &url
	return w
}

// publish writes the authorities into the webhook's configurations.
func (a *authority) publish(ctx context.Context, bundle []byte) error {
	if a.cfg.URL != "" {
		return a.apply(ctx, bundle)
	}
	return errors.Join(a.patch(ctx, ConfigurationName, bundle), a.patch(ctx, GuardName, bundle))
}

// apply writes the configurations as a whole.
func (a *authority) apply(ctx context.Context, bundle []byte) error {
	all, guard := Configurations(Door{URL: a.cfg.URL})
	wanted := []*admissionregistrationv1.ValidatingWebhookConfiguration{all}
	if a.cfg.GuardDeletion {
		wanted = append(wanted, guard)
	}
	for _, c := range wanted {
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig.CABundle = bundle
		}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
		if err != nil {
			return fmt.Errorf("encode the configuration %s: %w", c.Name, err)
		}
		configuration := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: object})
		if err := a.client.Apply(ctx, configuration, client.ForceOwnership, client.FieldOwner("metalbus")); err != nil {
			return fmt.Errorf("apply the configuration %s: %w", c.Name, err)
		}
	}
	return nil
}

// patch writes the authorities into a configuration that somebody else has
// installed, if it is there and has others.
func (a *authority) patch(ctx context.Context, name string, bundle []byte) error {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := a.client.Get(ctx, client.ObjectKey{Name: name}, c); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("read the configuration %s: %w", name, err)
	}
	if c.Annotations[injectAnnotation] != "" {
		return fmt.Errorf("the configuration %s has its authority from cert-manager: mount cert-manager's Secret and give its folder as webhook-cert-dir, or remove the annotation %s",
			name, injectAnnotation)
	}
	stale := slices.DeleteFunc(slices.Clone(c.Webhooks), func(w admissionregistrationv1.ValidatingWebhook) bool {
		return !ours(w.Name) || bytes.Equal(w.ClientConfig.CABundle, bundle)
	})
	if len(stale) == 0 {
		return nil
	}
	var webhooks []map[string]any
	for _, w := range stale {
		webhooks = append(webhooks, map[string]any{"name": w.Name, "clientConfig": map[string]any{"caBundle": bundle}})
	}
	body, err := json.Marshal(map[string]any{"webhooks": webhooks})
	if err != nil {
		return fmt.Errorf("encode the patch of %s: %w", name, err)
	}
	if err := a.client.Patch(ctx, c, client.RawPatch(types.StrategicMergePatchType, body)); err != nil {
		return fmt.Errorf("patch the configuration %s: %w", name, err)
	}
	return nil
}

// ours reports whether a webhook of a configuration is one that is served here.
func ours(name string) bool {
	all, guard := Configurations(Door{})
	return slices.ContainsFunc(append(all.Webhooks, guard.Webhooks...), func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == name })
}
