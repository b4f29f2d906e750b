package chart_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalbus/metalbus/api/v1alpha1"
	"github.com/metalbus/metalbus/integration/internal/lab"
)

// With the rights that the chart grants, and nothing else, each host gets an image
// of its own, which follows the host, is answered, and is made again.
func TestHostsGetTheirImages(t *testing.T) {
	s := newSite(t)
	host := &v1alpha1.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosts, Name: "rack-1", Labels: map[string]string{"row": "1"}}}
	host.Spec.BMC = v1alpha1.BMCDetails{Address: "redfish://192.0.2.10/redfish/v1/Systems/1", CredentialsName: "login"}
	s.makes(host, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosts, Name: "login"}, StringData: map[string]string{"username": "admin", "password": "x"}})
	s.install([]string{"watchNamespaces={hosts}", "preprovisioningImages=true", "webhook.mode=none"},
		"DEPLOY_KERNEL_URL=http://192.0.2.80/kernel", "DEPLOY_RAMDISK_BY_ARCH=x86_64:http://192.0.2.80/x86,aarch64:http://192.0.2.80/arm")
	image := &v1alpha1.PreprovisioningImage{ObjectMeta: metav1.ObjectMeta{Namespace: s.hosts, Name: host.Name}}
	eventually := func(what string, so func() bool) {
		t.Helper()
		lab.Eventually(t, patience, what, func() error {
			if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(image), image); err != nil {
				return err
			}
			if !so() {
				return fmt.Errorf("it is %+v", image)
			}
			return nil
		})
	}
	ready := func() bool {
		return meta.IsStatusConditionTrue(image.Status.Conditions, "Ready") && image.Status.Format == v1alpha1.ImageFormatInitRD && image.Status.KernelUrl == "http://192.0.2.80/kernel"
	}
	eventually("the image is answered", func() bool { return ready() && metav1.IsControlledBy(image, host) && image.Labels["row"] == "1" })

	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"labels": {"row": "2"}}}`))
	if err := s.Client.Patch(t.Context(), host, patch); err != nil {
		t.Fatal(err)
	}
	eventually("it follows its host", func() bool { return image.Labels["row"] == "2" })

	old := image.UID
	if err := s.Client.Delete(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	eventually("it is made again", func() bool { return image.UID != old && ready() })
}
