package admission_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/admission"
)

func TestValidateSubscription(t *testing.T) {
	t.Parallel()
	type spec = v1alpha1.BMCEventSubscriptionSpec
	good := spec{HostName: "host-a", Destination: "https://192.0.2.90/"}
	with := func(change func(*spec)) spec {
		s := good
		change(&s)
		return s
	}
	headers := func(namespace string) spec {
		return with(func(s *spec) { s.HTTPHeadersRef = &corev1.SecretReference{Name: "h", Namespace: namespace} })
	}
	to := func(url string) spec { return with(func(s *spec) { s.Destination = url }) }
	tests := map[string]struct {
		spec spec
		want *finding
	}{
		"all that is needed":             {spec: good},
		"no host":                        {spec: with(func(s *spec) { s.HostName = "" }), want: &finding{required, "spec.hostName", "hostName cannot be empty"}},
		"headers of the namespace":       {spec: headers("lab")},
		"headers of no namespace":        {spec: headers(""), want: &finding{forbidden, "spec.httpHeadersRef.namespace", "httpHeadersRef secret must be in the same namespace as the BMCEventSubscription"}},
		"headers of another namespace":   {spec: headers("kube-system"), want: &finding{forbidden, "spec.httpHeadersRef.namespace", "httpHeadersRef secret must be in the same namespace"}},
		"no destination":                 {spec: to(""), want: &finding{required, "spec.destination", "destination cannot be empty"}},
		"a destination that is no URL":   {spec: to("somewhere"), want: &finding{invalid, "spec.destination", `destination is invalid: parse "somewhere": invalid URI for request`}},
		"a destination that is only one": {spec: to("https://192.0.2.90"), want: &finding{invalid, "spec.destination", "hostname-only destination must have a trailing slash"}},
		"a destination with a path":      {spec: to("https://192.0.2.90/events?x=1")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, admission.ValidateSubscription(&v1alpha1.BMCEventSubscription{
				ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "s"}, Spec: tt.spec,
			}), tt.want)
		})
	}
}

// Two objects with the same content are the same, whatever they point to: else
// a subscription with headers could not even lose its finalizer.
func TestValidateSubscriptionUpdate(t *testing.T) {
	t.Parallel()
	subscription := func(destination string) *v1alpha1.BMCEventSubscription {
		return &v1alpha1.BMCEventSubscription{Spec: v1alpha1.BMCEventSubscriptionSpec{
			HostName: "host-a", Destination: destination, HTTPHeadersRef: &corev1.SecretReference{Name: "h", Namespace: "lab"},
		}}
	}
	check(t, admission.ValidateSubscriptionUpdate(subscription("https://a/"), subscription("https://a/")), nil)
	check(t, admission.ValidateSubscriptionUpdate(subscription("https://a/"), subscription("https://b/")),
		&finding{forbidden, "spec", "subscriptions cannot be updated, please recreate it"})
}

func TestValidateDataImage(t *testing.T) {
	t.Parallel()
	dataImage := func(url string) *v1alpha1.DataImage {
		return &v1alpha1.DataImage{Spec: v1alpha1.DataImageSpec{URL: url}}
	}
	good, bad := dataImage("https://192.0.2.80/data.iso"), dataImage("nfs://192.0.2.80/data.iso")
	want := &finding{invalid, "spec.url", `URL "nfs://192.0.2.80/data.iso" is invalid: invalid scheme in URL, "nfs" not allowed`}
	check(t, admission.ValidateDataImage(good), nil)
	check(t, admission.ValidateDataImage(bad), want)
	check(t, admission.ValidateDataImageUpdate(good, bad), want)
	check(t, admission.ValidateDataImageUpdate(bad, good), nil)
	check(t, admission.ValidateDataImageUpdate(bad, bad.DeepCopy()), nil)
}

func TestValidateFirmwareComponents(t *testing.T) {
	t.Parallel()
	components := func(url string) *v1alpha1.HostFirmwareComponents {
		return &v1alpha1.HostFirmwareComponents{Spec: v1alpha1.HostFirmwareComponentsSpec{Updates: []v1alpha1.FirmwareUpdate{
			{Component: "bmc", URL: "https://192.0.2.80/bmc.bin"}, {Component: "bios", URL: url},
		}}}
	}
	good, bad := components("http://192.0.2.80/bios.bin"), components("bios.bin")
	want := &finding{invalid, "spec.updates[1].url", `invalid URL "bios.bin" in FirmwareUpdate in component "bios": parse "bios.bin"`}
	check(t, admission.ValidateFirmwareComponents(good), nil)
	check(t, admission.ValidateFirmwareComponents(bad), want)
	check(t, admission.ValidateFirmwareComponentsUpdate(good, bad), want)
	check(t, admission.ValidateFirmwareComponentsUpdate(bad, bad.DeepCopy()), nil)
}

func TestValidateSwitch(t *testing.T) {
	t.Parallel()
	for namespace, want := range map[string]*finding{
		"":            nil,
		"lab":         nil,
		"kube-system": {forbidden, "spec.credentials.namespace", "credentials: cross-namespace Secret references are not allowed"},
	} {
		check(t, admission.ValidateSwitch(&v1alpha1.BareMetalSwitch{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "s"},
			Spec:       v1alpha1.BareMetalSwitchSpec{Credentials: secret(namespace)},
		}), want)
	}
}

func TestValidateSwitchUpdate(t *testing.T) {
	t.Parallel()
	newSwitch := func(namespace, address string) *v1alpha1.BareMetalSwitch {
		return &v1alpha1.BareMetalSwitch{
			ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "s"},
			Spec:       v1alpha1.BareMetalSwitchSpec{Address: address, Credentials: secret(namespace)},
		}
	}
	foreign := &finding{forbidden, "spec.credentials.namespace", "cross-namespace"}
	check(t, admission.ValidateSwitchUpdate(newSwitch("kube-system", "a"), newSwitch("kube-system", "a")), nil)
	check(t, admission.ValidateSwitchUpdate(newSwitch("kube-system", "a"), newSwitch("kube-system", "b")), foreign)
	check(t, admission.ValidateSwitchUpdate(newSwitch("", "a"), newSwitch("kube-system", "a")), foreign)
	check(t, admission.ValidateSwitchUpdate(newSwitch("kube-system", "a"), newSwitch("", "a")), nil)
}

func TestPolicyWarnings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		who  *v1alpha1.HostClaimNamespaces
		want string // a part of the only warning; none if empty
	}{
		"nobody":                         {nil, "spec.hostClaimNamespaces is missing"},
		"everybody":                      {&v1alpha1.HostClaimNamespaces{}, ""},
		"an expression":                  {&v1alpha1.HostClaimNamespaces{NameMatches: "^team-"}, ""},
		"an expression that is not one":  {&v1alpha1.HostClaimNamespaces{NameMatches: "("}, "nameMatches: error parsing regexp"},
		"an expression of another world": {&v1alpha1.HostClaimNamespaces{NameMatches: "(?!x)"}, "lets nobody in"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := admission.PolicyWarnings(&v1alpha1.HostDeployPolicy{Spec: v1alpha1.HostDeployPolicySpec{HostClaimNamespaces: tt.who}})
			if (tt.want == "") != (len(got) == 0) || (len(got) > 0 && !strings.Contains(got[0], tt.want)) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
