package kube

import (
	"fmt"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

// NewClient is a client for the packages below this one, which read and write
// kinds that this one has nothing to do with. It knows them beforehand and asks
// the API for none. It makes no request yet.
func (c *Cluster) NewClient() (client.WithWatch, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("collect the kinds: %w", err)
	}
	k, err := client.NewWithWatch(c.rest, client.Options{Scheme: scheme, Mapper: allKinds(), FieldOwner: "metalbus", Log: logr.FromSlogHandler(c.log.Handler())})
	if err != nil {
		return nil, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	return k, nil
}

// allKinds are the kinds that NewClient knows.
func allKinds() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	add := func(gvk schema.GroupVersionKind, plural string, scope meta.RESTScope) {
		r := gvk.GroupVersion().WithResource(plural)
		m.AddSpecific(gvk, r, r, scope)
	}
	add(corev1.SchemeGroupVersion.WithKind("Secret"), "secrets", meta.RESTScopeNamespace)
	add(corev1.SchemeGroupVersion.WithKind("Namespace"), "namespaces", meta.RESTScopeRoot)
	add(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), "validatingwebhookconfigurations", meta.RESTScopeRoot)
	for kind, plural := range map[string]string{
		"BareMetalHost": "baremetalhosts", "BareMetalSwitch": "baremetalswitches", "BMCEventSubscription": "bmceventsubscriptions", "DataImage": "dataimages",
		"FirmwareSchema": "firmwareschemas", "HostClaim": "hostclaims", "HostDeployPolicy": "hostdeploypolicies", "HostFirmwareComponents": "hostfirmwarecomponents",
		"HostFirmwareSettings": "hostfirmwaresettings", "HostUpdatePolicy": "hostupdatepolicies", "PreprovisioningImage": "preprovisioningimages",
	} {
		add(v1alpha1.GroupVersion.WithKind(kind), plural, meta.RESTScopeNamespace)
	}
	return m
}
