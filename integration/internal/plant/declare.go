package plant

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

// LiveISO is what hosts are asked to boot. Simulated BMCs take it on trust.
const LiveISO = "http://images.example/live.iso"

// A Change makes a host, or the Secret with its BMC's password, other than usual.
type Change func(*v1alpha1.BareMetalHost, *corev1.Secret)

// WithImage asks for LiveISO.
func WithImage(h *v1alpha1.BareMetalHost, _ *corev1.Secret) {
	format := v1alpha1.DiskFormatLiveISO
	h.Spec.Image = &v1alpha1.Image{URL: LiveISO, DiskFormat: &format}
}

// Declare puts a machine into the rack, and makes its Secret and its host,
// which are online and have no image if no change says so.
func (p *Plant) Declare(tb testing.TB, changes ...Change) (*v1alpha1.BareMetalHost, *bmcsim.Host) {
	tb.Helper()
	machine, err := p.Rack.Add(bmcsim.HostSpec{})
	if err != nil {
		tb.Fatal(err)
	}
	host, secret := p.Manifests(machine)
	for _, change := range changes {
		change(host, secret)
	}
	if secret.Name != "" {
		p.Create(tb, secret)
	}
	p.Create(tb, host)
	return host, machine
}

// Manifests are the host and the Secret that belong to a machine.
func (p *Plant) Manifests(machine *bmcsim.Host) (*v1alpha1.BareMetalHost, *corev1.Secret) {
	user, password := machine.Credentials()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: machine.Name() + "-bmc", Namespace: p.Namespace},
		StringData: map[string]string{"username": user, "password": password},
	}
	host := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: machine.Name(), Namespace: p.Namespace}}
	host.Spec.Online, host.Spec.BootMACAddress = true, machine.MACs()[0]
	host.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish-virtualmedia+" + p.Rack.URL + machine.SystemPath(), CredentialsName: secret.Name}
	return host, secret
}

// Create makes an object.
func (p *Plant) Create(tb testing.TB, o client.Object) {
	tb.Helper()
	if err := p.Kube.Client.Create(tb.Context(), o); err != nil {
		tb.Fatal(err)
	}
}

// Delete deletes hosts, and does not wait for their end.
func (p *Plant) Delete(tb testing.TB, names ...string) {
	tb.Helper()
	for _, name := range names {
		h := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.Namespace}}
		if err := p.Kube.Client.Delete(tb.Context(), h); err != nil {
			tb.Fatal(err)
		}
	}
}

// Update changes an object as it is now, by a patch of what is changed.
func (p *Plant) Update(tb testing.TB, name string, change func(*v1alpha1.BareMetalHost)) {
	tb.Helper()
	h := &v1alpha1.BareMetalHost{}
	if err := p.Kube.Client.Get(tb.Context(), client.ObjectKey{Namespace: p.Namespace, Name: name}, h); err != nil {
		tb.Fatal(err)
	}
	before := h.DeepCopy()
	change(h)
	if err := p.Kube.Client.Patch(tb.Context(), h, client.MergeFrom(before)); err != nil {
		tb.Fatal(err)
	}
}

// Warnings are the Kubernetes Events of a host that tell of trouble.
func (p *Plant) Warnings(tb testing.TB, host string) []corev1.Event {
	tb.Helper()
	var list corev1.EventList
	if err := p.Kube.Client.List(tb.Context(), &list, client.InNamespace(p.Namespace)); err != nil {
		tb.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
		return e.Type != corev1.EventTypeWarning || e.InvolvedObject.Name != host
	})
}

// SetPassword changes what a host's Secret says is the password of its BMC.
func (p *Plant) SetPassword(tb testing.TB, machine *bmcsim.Host, password string) {
	tb.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: machine.Name() + "-bmc", Namespace: p.Namespace}}
	change := secret.DeepCopy()
	change.StringData = map[string]string{"password": password}
	if err := p.Kube.Client.Patch(tb.Context(), change, client.MergeFrom(secret)); err != nil {
		tb.Fatal(err)
	}
}
