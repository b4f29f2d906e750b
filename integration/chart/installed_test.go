package chart_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
)

const home = "metalbus-system"

// site is an API in which the chart is installed, as far as an API without
// nodes goes: the rights, and the projector as a process with the account and
// the environment of its Deployment.
type site struct {
	*testing.T
	*lab.Kube
	hosts, claims string // namespaces
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, Kube: shared.StartKube(t, t.TempDir()), hosts: "hosts", claims: "claims"}
	for _, namespace := range []string{home, s.hosts, s.claims} {
		s.makes(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	return s
}

func (s *site) makes(objects ...client.Object) {
	s.Helper()
	for _, o := range objects {
		if err := s.Client.Create(s.Context(), o); err != nil {
			s.Fatalf("%T %s: %v", o, o.GetName(), err)
		}
	}
}

// install makes what the chart brings of the given kinds, and starts the
// projector, which serves its health at the address that is returned.
func (s *site) install(values []string, overrides ...string) (health string) {
	s.Helper()
	objects := render(s.T, home, values)
	kinds := []string{"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ValidatingWebhookConfiguration"}
	for _, o := range objects {
		if slices.Contains(kinds, o.GetKind()) {
			s.makes(o)
		}
	}
	nats := shared.StartNATS(s.T)
	env := append(deploymentEnv(s.T, objects, "release-projector"),
		"NATS_URL="+nats.URL, "STATE_DIR="+s.TempDir(), "POD_NAME=projector-0", "POD_NAMESPACE="+home, "KUBECONFIG="+s.kubeconfigOf("release-projector"))
	env = append(env, overrides...)
	initialize := exec.CommandContext(s.Context(), shared.Program("metalbus"), "bus", "init", "--replicas=1")
	initialize.Env = append(os.Environ(), env...)
	if out, err := initialize.CombinedOutput(); err != nil {
		s.Fatalf("make the streams: %v\n%s", err, out)
	}
	health = fmt.Sprint("127.0.0.1:", lab.FreePort(s.T))
	shared.Start(s.T, "projector", env, "--health-address="+health)
	return health
}

// deploymentEnv is the environment of a Deployment's only container, as far as
// it has values there.
func deploymentEnv(t *testing.T, objects []*unstructured.Unstructured, name string) []string {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() != "Deployment" || o.GetName() != name {
			continue
		}
		d := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
			t.Fatal(err)
		}
		var env []string
		for _, e := range d.Spec.Template.Spec.Containers[0].Env {
			if e.ValueFrom == nil {
				env = append(env, e.Name+"="+e.Value)
			}
		}
		return env
	}
	t.Fatalf("there is no Deployment %s", name)
	return nil
}

// kubeconfigOf is the administrator's kubeconfig with the rights of an account.
func (s *site) kubeconfigOf(account string) string {
	s.Helper()
	config, err := clientcmd.LoadFromFile(s.Kubeconfig)
	if err != nil {
		s.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "system:serviceaccount:" + home + ":" + account
		user.ImpersonateGroups = []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + home}
	}
	path := filepath.Join(s.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		s.Fatal(err)
	}
	return path
}

// With the rights that the chart grants, and nothing else, the projector that
// it starts has every companion kind in hand: wishes that it can fulfil are
// fulfilled, and the others are told that nobody does it.
func TestCompanionsAreInHand(t *testing.T) {
	for name, values := range map[string][]string{
		"in all namespaces": nil,
		"in some":           {"watchNamespaces={hosts,claims}"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.declare()
			s.install(append(values, "webhook.mode=none", "switches.enabled=true"))
			for kind, c := range s.expectations() {
				lab.Eventually(t, patience, kind+" is told of", func() error {
					if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(c.object), c.object); err != nil {
						return err
					}
					if text := c.says(); !strings.Contains(text, c.want) {
						return fmt.Errorf("it says %q", text)
					}
					return nil
				})
			}
		})
	}
}

// declare makes one object of each companion kind that wants something, a host
// that is ready for a claim, and what is needed for both.
func (s *site) declare() {
	s.Helper()
	in := func(namespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: "rack-1"}
	}
	secret := func(name string, data map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosts, Name: name}, StringData: data}
	}
	host := &v1alpha1.BareMetalHost{ObjectMeta: in(s.hosts), Spec: v1alpha1.BareMetalHostSpec{Online: true}}
	host.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish://192.0.2.10/redfish/v1/Systems/1", CredentialsName: "login"}
	s.makes(
		host,
		&v1alpha1.HostFirmwareSettings{ObjectMeta: in(s.hosts), Spec: v1alpha1.HostFirmwareSettingsSpec{Settings: v1alpha1.DesiredSettingsMap{}}},
		&v1alpha1.HostFirmwareComponents{ObjectMeta: in(s.hosts), Spec: v1alpha1.HostFirmwareComponentsSpec{Updates: []v1alpha1.FirmwareUpdate{}}},
		&v1alpha1.PreprovisioningImage{ObjectMeta: in(s.hosts)},
		&v1alpha1.DataImage{ObjectMeta: in(s.hosts), Spec: v1alpha1.DataImageSpec{URL: "https://192.0.2.80/data.iso"}},
		&v1alpha1.BMCEventSubscription{ObjectMeta: in(s.hosts), Spec: v1alpha1.BMCEventSubscriptionSpec{HostName: "rack-1", Destination: "https://192.0.2.90/"}},
		&v1alpha1.HostDeployPolicy{ObjectMeta: in(s.hosts), Spec: v1alpha1.HostDeployPolicySpec{
			HostClaimNamespaces: &v1alpha1.HostClaimNamespaces{HasLabels: []v1alpha1.NameValuePair{{Name: corev1.LabelMetadataName, Value: s.claims}}},
		}},
		&v1alpha1.HostClaim{ObjectMeta: in(s.claims)},
		&v1alpha1.BareMetalSwitch{ObjectMeta: in(s.hosts), Spec: v1alpha1.BareMetalSwitchSpec{
			Address: "192.0.2.20", MACAddress: "00:00:5e:00:53:20", DeviceType: "netmiko_cisco_ios", Credentials: &corev1.SecretReference{Name: "login"},
		}},
		secret("login", map[string]string{"username": "admin", "password": "x"}),
		secret("ironic-switch-configs", nil), secret("ironic-switch-credentials", nil),
	)
	host.Status.Provisioning.State, host.Status.OperationalStatus, host.Status.PoweredOn = v1alpha1.StateAvailable, v1alpha1.OperationalStatusOK, true
	if err := s.Client.Status().Update(s.Context(), host); err != nil {
		s.Fatal(err)
	}
}

// expectation is an object and what it is to say in the end.
type expectation struct {
	object client.Object
	says   func() string
	want   string
}

func (s *site) expectations() map[string]expectation {
	const unread = "nobody has read it yet" // no stage service runs
	at := metav1.ObjectMeta{Namespace: s.hosts, Name: "rack-1"}
	settings, components := &v1alpha1.HostFirmwareSettings{ObjectMeta: at}, &v1alpha1.HostFirmwareComponents{ObjectMeta: at}
	ramdisk, image := &v1alpha1.PreprovisioningImage{ObjectMeta: at}, &v1alpha1.DataImage{ObjectMeta: at}
	subscription, wired := &v1alpha1.BMCEventSubscription{ObjectMeta: at}, &v1alpha1.BareMetalSwitch{ObjectMeta: at}
	host, claim := &v1alpha1.BareMetalHost{ObjectMeta: at}, &v1alpha1.HostClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.claims, Name: "rack-1"}}
	configs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosts, Name: "ironic-switch-configs"}}
	return map[string]expectation{
		"PreprovisioningImage": {ramdisk, func() string { return message(ramdisk.Status.Conditions, v1alpha1.SupportedCondition) }, "--build-preprov-image"},
		"HostFirmwareSettings": {settings, func() string { return message(settings.Status.Conditions, string(v1alpha1.FirmwareSettingsValid)) }, unread},
		"HostFirmwareComponents": {components, func() string {
			return message(components.Status.Conditions, string(v1alpha1.HostFirmwareComponentsValid))
		}, unread},
		"DataImage":            {image, func() string { return strings.Join(image.Finalizers, " ") }, v1alpha1.DataImageFinalizer},
		"BMCEventSubscription": {subscription, func() string { return strings.Join(subscription.Finalizers, " ") }, v1alpha1.BMCEventSubscriptionFinalizer},
		"HostClaim":            {claim, func() string { return reason(claim.Status.Conditions, v1alpha1.AssociatedCondition) }, v1alpha1.BareMetalHostAssociatedReason},
		"the claim's host": {host, func() string {
			if host.Spec.ConsumerRef == nil {
				return ""
			}
			return host.Spec.ConsumerRef.Kind
		}, "HostClaim"},
		"BareMetalSwitch":        {wired, func() string { return reason(wired.Status.Conditions, v1alpha1.SwitchValidCondition) }, v1alpha1.SwitchReconciledReason},
		"the switches' settings": {configs, func() string { return string(configs.Data["switch-configs.conf"]) }, "[switch:rack-1]"},
	}
}

func message(conditions []metav1.Condition, kind string) string {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return c.Message
	}
	return ""
}

func reason(conditions []metav1.Condition, kind string) string {
	if c := meta.FindStatusCondition(conditions, kind); c != nil {
		return c.Reason
	}
	return ""
}

// The projector that the chart starts makes its certificate, tells the API whom
// to trust, and is ready then.
func TestTheWebhookComesUp(t *testing.T) {
	for name, values := range map[string][]string{
		"for all namespaces": {"webhook.guardHostDeletion=true"},
		"for some":           {"webhook.guardHostDeletion=true", "watchNamespaces={hosts,claims}"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			port := lab.FreePort(t)
			health := s.install(values, fmt.Sprint("WEBHOOK_PORT=", port))
			lab.Eventually(t, patience, "be trusted", func() error { return s.trusted(port) })
			lab.Eventually(t, patience, "be ready", func() error { return get(t, "http://"+health+"/readyz") })
		})
	}
}

// trusted reports whether the API would take the certificate that is shown at a
// port for each of its webhooks.
func (s *site) trusted(port int) error {
	var list admissionregistrationv1.ValidatingWebhookConfigurationList
	if err := s.Client.List(s.Context(), &list); err != nil {
		return err
	}
	if len(list.Items) != 2 {
		return fmt.Errorf("%d configurations", len(list.Items))
	}
	for _, c := range list.Items {
		for _, w := range c.Webhooks {
			if err := shown(s.T, w.ClientConfig, port); err != nil {
				return fmt.Errorf("%s: %w", w.Name, err)
			}
		}
	}
	return nil
}

// shown reports whether a caller that was told so would take the certificate
// that is shown at a port.
func shown(t *testing.T, c admissionregistrationv1.WebhookClientConfig, port int) error {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.CABundle) {
		return errors.New("nobody is trusted")
	}
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: c.Service.Name + "." + c.Service.Namespace + ".svc"}}
	connection, err := dialer.DialContext(t.Context(), "tcp", fmt.Sprint("127.0.0.1:", port))
	if err == nil {
		err = connection.Close()
	}
	return err
}

func get(t *testing.T, url string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}
