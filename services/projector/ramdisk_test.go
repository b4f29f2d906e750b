package projector_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalbus/metalbus/api/event"
	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/pkg/kube/kubetest"
	"github.com/metalbus/metalbus/pkg/kube/preprov"
	"github.com/metalbus/metalbus/pkg/lifecycle"
)

// What a host's image says is what it is to boot: first it is waited for, and it
// follows the network data. A projector that comes anew tells nothing anew.
func TestAHostBootsAnImageOfItsOwn(t *testing.T) {
	const url = "http://192.0.2.80/agent.iso"
	s := newSite(t)
	s.ramdisks = preprov.Config{Enabled: true, ISO: preprov.Place{All: url}}
	stop := s.start("a")
	network := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "network"}, Data: map[string][]byte{"networkData": []byte("{}")}}
	s.apply("host-a", func(o *v1alpha1.BareMetalHost) { o.Spec.PreprovisioningNetworkDataName = network.Name })
	image := &v1alpha1.PreprovisioningImage{ObjectMeta: metav1.ObjectMeta{Name: "host-a"}}
	s.loaded("host-a", "the missing network data are told", func(h lifecycle.Host) bool {
		return h.Intent.Ramdisk != nil && h.Intent.Ramdisk.Problem == "NetworkData secret not found"
	})
	s.user.Create(network)
	boots := func(h lifecycle.Host) bool {
		return h.Intent.Ramdisk != nil && *h.Intent.Ramdisk == event.RamdiskWish{ISO: url, Plain: true}
	}
	settled := s.loaded("host-a", "the image is there", boots)
	if !s.user.Read(image) || len(image.Finalizers) != 1 || metav1.GetControllerOf(image) == nil {
		t.Fatalf("the image is %+v", image.ObjectMeta)
	}

	stop()
	s.start("b")
	s.apply("host-b")
	s.loaded("host-b", "the new projector serves", func(h lifecycle.Host) bool { return h.Intent.Ramdisk != nil && h.Intent.Ramdisk.ISO == url })
	if h := s.known("host-a"); !boots(h) || h.Rev != settled.Rev {
		t.Errorf("at revision %d the host boots %+v, was at %d", h.Rev, h.Intent.Ramdisk, settled.Rev)
	}

	s.user.Read(network)
	network.Data["networkData"] = []byte("{\"links\": []}")
	s.user.Update(network)
	kubetest.Eventually(t, "the image is of the present network data", func() bool {
		return s.user.Read(image) && image.Status.NetworkData.Version == network.ResourceVersion
	})
	s.loaded("host-a", "it is booted again", boots)
}

// Until the images have been listed a new host waits for them, and does not boot
// what is there for all.
func TestImagesThatAreNotListedYet(t *testing.T) {
	s := newSite(t)
	s.unlisted = true
	s.start("a")
	s.apply("host-a")
	if w := s.known("host-a").Intent.Ramdisk; w == nil || w.Waits == "" {
		t.Errorf("the host boots %+v", w)
	}
}

// unlisted are images that nobody knows of yet.
type unlisted struct{}

func (unlisted) Wish(*v1alpha1.BareMetalHost, string) (w event.RamdiskWish, known bool) {
	return w, false
}
