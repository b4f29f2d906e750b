package switches

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalbus/metalbus/api/v1alpha1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newSwitch(name string, changes ...func(*v1alpha1.BareMetalSwitchSpec)) *v1alpha1.BareMetalSwitch {
	s := &v1alpha1.BareMetalSwitch{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, Generation: 3}, Spec: v1alpha1.BareMetalSwitchSpec{
		Address: "192.0.2.20", MACAddress: "00:00:5e:00:53:2" + name[len(name)-1:], DeviceType: "netmiko_cisco_ios",
		Credentials: &corev1.SecretReference{Name: name},
	}}
	for _, change := range changes {
		change(&s.Spec)
	}
	return s
}

func newSecret(name string, pairs ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name}, Data: map[string][]byte{}}
	for i := 0; i < len(pairs); i += 2 {
		s.Data[pairs[i]] = []byte(pairs[i+1])
	}
	return s
}

// filled are the Secrets that are filled, with something in them already.
func filled() []client.Object {
	return []client.Object{newSecret("configs", "other.conf", "stays"), newSecret("keys", "old.key", "goes")}
}

type site struct {
	writer *writer
	client client.Client
	writes int
}

func newSite(t *testing.T, objects ...client.Object) *site {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := &site{}
	s.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.BareMetalSwitch{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				s.writes++
				return c.Update(ctx, o, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				s.writes++
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	s.writer = &writer{
		cfg: Config{Enabled: true, ConfigSecret: "configs", KeySecret: "keys", KeyFolder: "/etc/keys"}, client: s.client,
		now: func() time.Time { return now },
		switches: func(namespace string) (all []*v1alpha1.BareMetalSwitch) {
			var list v1alpha1.BareMetalSwitchList
			if err := s.client.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
				t.Fatal(err)
			}
			for i := range list.Items {
				all = append(all, &list.Items[i])
			}
			return all
		},
	}
	return s
}

func (s *site) look(t *testing.T) time.Duration {
	t.Helper()
	again, err := s.writer.look(t.Context(), types.NamespacedName{Namespace: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func (s *site) data(t *testing.T, name string) map[string]string {
	t.Helper()
	var secret corev1.Secret
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: name}, &secret); err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for k, v := range secret.Data {
		text[k] = string(v)
	}
	return text
}

// valid is the condition of a switch: its status, reason and message.
func (s *site) valid(t *testing.T, name string) [3]string {
	t.Helper()
	var o v1alpha1.BareMetalSwitch
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: name}, &o); err != nil {
		t.Fatal(err)
	}
	c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.SwitchValidCondition)
	if c == nil || c.ObservedGeneration != 3 {
		t.Fatalf("%s: %+v", name, c)
	}
	return [3]string{string(c.Status), c.Reason, c.Message}
}

const file = `# This file is managed by the Baremetal Operator

[switch:leaf-1]
address=192.0.2.20
mac_address=00:00:5e:00:53:21
driver_type=generic-switch
device_type=netmiko_cisco_ios
username=admin
password=hunter2
enable_secret=hunter3

[switch:leaf-2]
address=192.0.2.20
mac_address=00:00:5e:00:53:22
port=8443
driver_type=generic-switch
device_type=netmiko_cisco_ios
insecure=true
username=admin
key_file=/etc/keys/00-00-5e-00-53-22.key

`

func TestConfigurationIsWritten(t *testing.T) {
	t.Parallel()
	s := newSite(t, append(filled(),
		newSwitch("leaf-2", func(s *v1alpha1.BareMetalSwitchSpec) {
			s.Port, s.DisableCertificateVerification = new(int32(8443)), true
		}),
		newSwitch("leaf-1"),
		newSecret("leaf-1", "username", "admin", "password", "hunter2", "admin-password", "hunter3"),
		newSecret("leaf-2", "username", "admin", "password", "hunter2", "ssh-privatekey", "KEY\nKEY\n"),
	)...)
	if again := s.look(t); again != 0 {
		t.Errorf("again after %s", again)
	}
	if diff := cmp.Diff(map[string]string{"other.conf": "stays", configKey: file}, s.data(t, "configs")); diff != "" {
		t.Errorf("configuration (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"00-00-5e-00-53-22.key": "KEY\nKEY\n"}, s.data(t, "keys")); diff != "" {
		t.Errorf("keys (-want +got)\n%s", diff)
	}
	for _, name := range []string{"leaf-1", "leaf-2"} {
		if got := s.valid(t, name); got[0] != "True" || got[1] != "Reconciled" {
			t.Errorf("%s: %v", name, got)
		}
	}
	before := s.writes
	s.look(t)
	if s.writes != before {
		t.Errorf("%d writes though nothing has changed", s.writes-before)
	}
	if err := s.client.Delete(t.Context(), newSwitch("leaf-2")); err != nil {
		t.Fatal(err)
	}
	s.look(t)
	if got := s.data(t, "configs"); strings.Contains(got[configKey], "leaf-2") || len(s.data(t, "keys")) > 0 {
		t.Errorf("what was deleted is still there: %v", slices.Sorted(maps.Keys(s.data(t, "keys"))))
	}
}

// A switch that can not be used says why, shows no secret, and holds up nobody.
func TestUnusableSwitches(t *testing.T) {
	t.Parallel()
	good := newSecret("leaf-9", "username", "admin", "password", "hunter2")
	for name, tt := range map[string]struct {
		change func(*v1alpha1.BareMetalSwitchSpec)
		secret *corev1.Secret
		reason string
		says   string
	}{
		"no login":                      {func(s *v1alpha1.BareMetalSwitchSpec) { s.Credentials = nil }, good, "CredentialError", "spec.credentials is missing"},
		"the Secret is not there":       {nil, newSecret("x"), "CredentialError", "The Secret lab/leaf-9 does not exist; create it."},
		"the Secret is another's":       {func(s *v1alpha1.BareMetalSwitchSpec) { s.Credentials.Namespace = "kube-system" }, good, "CredentialError", "is of another namespace and is not read"},
		"no user name":                  {nil, newSecret("leaf-9", "password", "hunter2"), "CredentialError", "it has no username"},
		"neither password nor key":      {nil, newSecret("leaf-9", "username", "admin"), "CredentialError", "neither password nor ssh-privatekey"},
		"a password of two lines":       {nil, newSecret("leaf-9", "username", "admin", "password", "hunter2\ninsecure=true"), "CredentialError", "its password has a line break"},
		"another one's MAC address":     {func(s *v1alpha1.BareMetalSwitchSpec) { s.MACAddress = "00:00:5E:00:53:21" }, good, "ConfigurationError", "BareMetalSwitch leaf-1 has the same spec.macAddress"},
		"an address that smuggles keys": {func(s *v1alpha1.BareMetalSwitchSpec) { s.Address = "a\n[switch:b]" }, good, "ConfigurationError", "spec.address has a line break"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := newSwitch("leaf-9")
			if tt.change != nil {
				tt.change(&bad.Spec)
			}
			s := newSite(t, append(filled(), bad, tt.secret.DeepCopy(), newSwitch("leaf-1"), newSecret("leaf-1", "username", "admin", "password", "hunter2"))...)
			if again := s.look(t); again != retry {
				t.Errorf("again after %s", again)
			}
			got := s.valid(t, "leaf-9")
			if got[0] != "False" || got[1] != tt.reason || !strings.Contains(got[2], tt.says) || strings.Contains(got[2], "hunter") {
				t.Errorf("%v", got)
			}
			if text := s.data(t, "configs")[configKey]; strings.Contains(text, "leaf-9") || !strings.Contains(text, "[switch:leaf-1]") || strings.Contains(text, "switch:b") {
				t.Error(text)
			}
			if other := s.valid(t, "leaf-1"); other[0] != "True" {
				t.Errorf("the other one: %v", other)
			}
		})
	}
}

func TestNowhereToWrite(t *testing.T) {
	t.Parallel()
	for missing, objects := range map[string][]client.Object{"configs": {newSecret("keys")}, "keys": {newSecret("configs")}} {
		s := newSite(t, append(objects, newSwitch("leaf-1"), newSecret("leaf-1", "username", "admin", "password", "hunter2"))...)
		if again := s.look(t); again != retry {
			t.Errorf("again after %s", again)
		}
		if got := s.valid(t, "leaf-1"); got[1] != "ConfigurationError" || !strings.Contains(got[2], "The Secret lab/"+missing+" does not exist") {
			t.Errorf("%v", got)
		}
	}
}

func TestNamespaceWithoutSwitches(t *testing.T) {
	t.Parallel()
	if again := newSite(t).look(t); again != 0 {
		t.Errorf("looked at again after %s", again)
	}
}

func TestTroubleOfTheAPIIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, append(filled(), newSwitch("leaf-1"), newSecret("leaf-1", "username", "a", "password", "b"))...)
	s.writer.client = interceptor.NewClient(s.client.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("timeout")
		},
	})
	if _, err := s.writer.look(t.Context(), types.NamespacedName{Namespace: "lab"}); err == nil {
		t.Error("it is not tried again")
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	all := []string{"--ironic-networking-enabled", "--ironic-switch-configs-secret=a", "--ironic-switch-credentials-secret=b", "--ironic-switch-credentials-path=/c"}
	for name, tt := range map[string]struct {
		args []string
		says []string
	}{
		"off":  {nil, nil},
		"on":   {all, nil},
		"half": {all[:2], []string{"ironic-switch-credentials-secret is empty", "ironic-switch-credentials-path is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var cfg Config
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			cfg.Bind(fs)
			if err := fs.Parse(tt.args); err != nil {
				t.Fatal(err)
			}
			err := cfg.Validate()
			if (err == nil) != (len(tt.says) == 0) {
				t.Fatalf("got %v", err)
			}
			for _, says := range tt.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%v does not say %q", err, says)
				}
			}
		})
	}
}
