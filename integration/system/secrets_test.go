package system_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
	"github.com/metalbus/metalbus/integration/internal/plant"
	"github.com/metalbus/metalbus/pkg/bmc/bmcsim"
)

// Contents of Secrets, each to be recognized wherever it comes up.
const (
	refusedCanary  = "canary-5Ae1f0b7"
	passwordCanary = "canary-9Bd27c44"
	rotatedCanary  = "canary-e41F7d90"
	addressCanary  = "canary-1c6Ab853"
	urlCanary      = "canary-83cD02f6"
	userDataCanary = "canary-c03e88fa"
	networkCanary  = "canary-77d1b4e2"
)

// No content of a Secret gets anywhere while it serves, while the BMC refuses
// it, when it is changed, or while the machine does not do as it is told; nor a
// password that a user wrote into the address of a BMC or into a URL.
func TestNoSecretGetsOut(t *testing.T) {
	p := newPlant(t)
	p.Start(t, 1)
	h, m := p.Declare(t, withCanaries)
	user, _ := m.Credentials()
	m.SetCredentials(user, passwordCanary)
	for name, content := range map[string]string{"user": userDataCanary, "network": networkCanary} {
		p.Create(t, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-data", Namespace: p.Namespace},
			StringData: map[string]string{"value": "#cloud-config\npassword: " + content, "networkData": content, "userData": content},
		})
	}
	h2, _ := p.Declare(t, passwordInAddress)
	loginsInURLs(t, p)
	p.Await(t, h2.Name, "told off or available", func(l plant.Life) bool {
		return plant.Shows(v1alpha1.StateAvailable)(l) || failed(v1alpha1.RegistrationError)(l)
	})
	p.Await(t, h.Name, "refused", failed(v1alpha1.RegistrationError))
	p.SetPassword(t, m, passwordCanary)
	p.Await(t, h.Name, "in use", plant.InUse)

	m.SetFaults(bmcsim.Faults{RefusePower: true})
	p.Update(t, h.Name, func(h *v1alpha1.BareMetalHost) { h.Spec.Online = false })
	p.Await(t, h.Name, "not switched off", failed(v1alpha1.PowerManagementError))
	m.SetFaults(bmcsim.Faults{})
	m.SetCredentials(user, rotatedCanary)
	p.SetPassword(t, m, rotatedCanary)
	p.Await(t, h.Name, "off", func(l plant.Life) bool { return l.Now != nil && !l.Now.Status.PoweredOn && copied(l) })

	w := &watchdog{tb: t}
	w.bus(p)
	w.kube(p)
	for path, text := range p.Logs(t) {
		w.sniff("the log "+path, []byte(text))
	}
	w.wantSniffed("the bus: METAL_HOST", "the bus: METAL_HISTORY", "the bus: METAL_DATA", "the bus: KV_metal_quarantine", "a host", "a DataImage", "a subscription", "firmware components", "an Event")
}

func withCanaries(h *v1alpha1.BareMetalHost, s *corev1.Secret) {
	plant.WithImage(h, s)
	s.StringData["password"] = refusedCanary
	h.Spec.UserData = &corev1.SecretReference{Name: "user-data"}
	h.Spec.NetworkData = &corev1.SecretReference{Name: "network-data"}
}

// passwordInAddress is what users of other tools do. Their host says so itself.
func passwordInAddress(h *v1alpha1.BareMetalHost, _ *corev1.Secret) {
	h.Spec.BMC.Address = strings.Replace(h.Spec.BMC.Address, "://", "://admin:"+addressCanary+"@", 1)
}

// loginsInURLs declares a host by whose objects logins are written into URLs, and
// waits until each of these says so.
func loginsInURLs(t *testing.T, p *plant.Plant) {
	t.Helper()
	const url = "http://admin:" + urlCanary + "@192.0.2.80/file"
	h, _ := p.Declare(t, plant.WithImage, func(h *v1alpha1.BareMetalHost, _ *corev1.Secret) { h.Spec.Image.URL = url })
	at := metav1.ObjectMeta{Name: h.Name, Namespace: p.Namespace}
	image := &v1alpha1.DataImage{ObjectMeta: at, Spec: v1alpha1.DataImageSpec{URL: url}}
	alerts := &v1alpha1.BMCEventSubscription{ObjectMeta: at, Spec: v1alpha1.BMCEventSubscriptionSpec{HostName: h.Name, Destination: url}}
	updates := &v1alpha1.HostFirmwareComponents{ObjectMeta: at, Spec: v1alpha1.HostFirmwareComponentsSpec{
		Updates: []v1alpha1.FirmwareUpdate{{Component: "bios", URL: url}},
	}}
	for _, o := range []client.Object{image, alerts, updates} {
		p.Create(t, o)
	}
	p.Await(t, h.Name, "told off", failed(v1alpha1.ProvisioningError))
	lab.Eventually(t, plant.Patience, "say that logins are not used", func() error {
		for _, o := range []client.Object{image, alerts} {
			if err := p.Kube.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
		}
		if said := image.Status.Error.Message + alerts.Status.Error; strings.Count(said, "holds a login") < 2 {
			return fmt.Errorf("said %q", said)
		}
		return nil
	})
}

func failed(kind v1alpha1.ErrorType) func(plant.Life) bool {
	return func(l plant.Life) bool { return l.Now != nil && l.Now.Status.ErrorType == kind }
}

// A watchdog finds content of Secrets where it should not be.
type watchdog struct {
	tb      testing.TB
	sniffed map[string]int // how often, by kind of place
}

// sniff wants no canary in a text, as it is or encoded.
func (w *watchdog) sniff(place string, text []byte) {
	w.tb.Helper()
	if w.sniffed == nil {
		w.sniffed = map[string]int{}
	}
	w.sniffed[place]++
	text = bytes.ToLower(text)
	for _, canary := range []string{refusedCanary, passwordCanary, rotatedCanary, addressCanary, urlCanary, userDataCanary, networkCanary} {
		for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary)), fmt.Sprintf("%x", canary)} {
			if bytes.Contains(text, bytes.ToLower([]byte(form))) {
				w.tb.Errorf("%s has the content of a Secret, as %s: %.300s", place, form, text)
			}
		}
	}
}

// wantSniffed wants something to have been found in each kind of place.
func (w *watchdog) wantSniffed(places ...string) {
	w.tb.Helper()
	for _, place := range places {
		if w.sniffed[place] == 0 {
			w.tb.Errorf("nothing was looked at in %s", place)
		}
	}
}

// bus looks at every message of every stream, those of buckets and object stores
// among them, and at how streams and consumers are described.
func (w *watchdog) bus(p *plant.Plant) {
	w.tb.Helper()
	js := stranger(w.tb, p.NATS.URL)
	streams := js.ListStreams(w.tb.Context())
	for info := range streams.Info() {
		place := "the bus: " + info.Config.Name
		w.sniff(place, encoded(w.tb, info))
		s, err := js.Stream(w.tb.Context(), info.Config.Name)
		if err != nil {
			w.tb.Fatal(err)
		}
		consumers := s.ListConsumers(w.tb.Context())
		for c := range consumers.Info() {
			w.sniff(place, encoded(w.tb, c))
		}
		if err := consumers.Err(); err != nil {
			w.tb.Fatal(err)
		}
		w.messages(place, s, info.State)
	}
	if err := streams.Err(); err != nil {
		w.tb.Fatal(err)
	}
}

func (w *watchdog) messages(place string, s jetstream.Stream, state jetstream.StreamState) {
	w.tb.Helper()
	read := uint64(0)
	for seq := state.FirstSeq; seq <= state.LastSeq && state.Msgs > 0; seq++ {
		m, err := s.GetMsg(w.tb.Context(), seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			w.tb.Fatal(err)
		}
		read++
		w.sniff(place, slices.Concat([]byte(m.Subject), encoded(w.tb, m.Header), m.Data))
	}
	if read == 0 && state.Msgs > 0 {
		w.tb.Errorf("%s has %d messages, and none could be read", place, state.Msgs)
	}
}

// kube looks at everything in the namespace but Secrets.
func (w *watchdog) kube(p *plant.Plant) {
	w.tb.Helper()
	for place, list := range map[string]client.ObjectList{
		"a host": &v1alpha1.BareMetalHostList{}, "hardware": &v1alpha1.HardwareDataList{}, "an Event": &corev1.EventList{}, "a ConfigMap": &corev1.ConfigMapList{},
		"firmware settings": &v1alpha1.HostFirmwareSettingsList{}, "firmware components": &v1alpha1.HostFirmwareComponentsList{},
		"a DataImage": &v1alpha1.DataImageList{}, "a subscription": &v1alpha1.BMCEventSubscriptionList{},
	} {
		if err := p.Kube.Client.List(w.tb.Context(), list, client.InNamespace(p.Namespace)); err != nil {
			w.tb.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			w.tb.Fatal(err)
		}
		for _, o := range items {
			w.sniff(place, encoded(w.tb, withoutSpec(o)))
		}
	}
}

// withoutSpec is an object without its user's words.
func withoutSpec(o runtime.Object) runtime.Object {
	switch o := o.(type) {
	case *v1alpha1.BareMetalHost:
		o.Spec = v1alpha1.BareMetalHostSpec{}
	case *v1alpha1.DataImage:
		o.Spec = v1alpha1.DataImageSpec{}
	case *v1alpha1.BMCEventSubscription:
		o.Spec = v1alpha1.BMCEventSubscriptionSpec{}
	case *v1alpha1.HostFirmwareComponents:
		o.Spec = v1alpha1.HostFirmwareComponentsSpec{}
	}
	return o
}

func encoded(tb testing.TB, v any) []byte {
	tb.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}
